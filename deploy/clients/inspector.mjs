// The inspector's command line: one process per request, so a legacy session lives for one of them only.
//
// In the modern era the handle carries the session from call to call. In the legacy era the address
// `/mcp/x/memory:write` opens a session with the write tools in it.
import { execFile } from 'node:child_process';
import { check, command, includesAll, modules, names, note, run, same, text, token, url, wanted } from './checks.mjs';

const era = process.argv[2];
const program = `${modules}/@modelcontextprotocol/inspector/clients/launcher/build/index.js`;

// Resolves with the exit code and what was printed; the result of a request is one JSON text.
function inspect(target, ...more) {
  const server = command ? [...command, '--transport', 'stdio'] : [target, '--transport', 'http', '--stored-auth-only'];
  const args = [program, '--cli', ...server, '--protocol-era', era, '--format', 'json', '--quiet'];
  return new Promise((resolve) => {
    execFile(process.execPath, [...args, ...more], { timeout: 60_000 }, (error, stdout, stderr) => {
      let result;
      try {
        result = JSON.parse(stdout);
        result = result.result ?? result;
      } catch {
        result = undefined;
      }
      resolve({ code: error ? error.code : 0, result, stdout, stderr });
    });
  });
}

const bearer = command ? [] : ['--header', `Authorization: Bearer ${token}`];
const list = (target, ...more) => inspect(target, ...bearer, '--method', 'tools/list', ...more);
const call = (target, name, args, ...more) => inspect(target, ...bearer, '--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args), ...more);

await run(async () => {
  if (!command) {
    const bare = await inspect(url, '--method', 'tools/list');
    check('without a token it asks for one', bare.code === 3, bare);
  }

  const listed = await list(url, '--strict');
  check('the schemas are portable', listed.code === 0, listed);
  const before = names(listed.result);
  check('the list has memory_read and load_toolset', includesAll(before, ['memory_read', 'load_toolset']), before);
  check('the list has no write tool', !before.includes('memory_remember'), before);

  const unknown = await call(url, 'load_toolset', { toolset: 'no_such_set' });
  check('an unknown toolset is an error result', unknown.result?.isError === true, unknown);
  const wrong = await call(url, 'memory_read', { way: 1 });
  check('bad arguments are an error result', wrong.result?.isError === true, wrong);

  const loaded = await call(url, 'load_toolset', wanted);
  const { added, session } = loaded.result.structuredContent;
  check('load_toolset returns the schema of memory_remember', added.some((tool) => tool.name === 'memory_remember'), loaded);

  if (era === 'modern') {
    const again = await list(url);
    check('the list is unchanged', same(names(again.result), before), again);
    // The inspector itself refuses a tool that is not listed, so the loaded one is reached through call_tool.
    const saved = await call(url, 'call_tool', { session, tool: 'memory_remember', arguments: note });
    check('memory_remember saves in the session', saved.code === 0 && !saved.result.isError, saved);
    const read = await call(url, 'memory_read', { path: note.path }, '--tool-metadata', `quartermaster/session=${session}`);
    check('memory_read gives it back', read.code === 0 && read.result.structuredContent?.content === note.content, read);
  } else if (!command) {
    const writing = `${url}/x/memory:write`;
    const grown = await list(writing);
    check('the list at /mcp/x/memory:write has memory_remember', includesAll(names(grown.result), ['memory_read', 'load_toolset', 'memory_remember']), grown);
    const saved = await call(writing, 'memory_remember', note);
    check('memory_remember saves in the session', saved.code === 0 && text(saved.result).includes(note.path), saved);
  }
});
