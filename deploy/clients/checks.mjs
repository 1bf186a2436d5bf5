// What every JavaScript client checks with: one line per check, and an exit code that tells.
import { createRequire } from 'node:module';

export const url = process.env.QM_URL;
export const token = process.env.QM_TOKEN;
// A command and its arguments: then the server is a child of the client, and speaks on its standard streams.
export const command = JSON.parse(process.env.QM_COMMAND ?? 'null');
export const modules = `${process.env.QM_MODULES}/node_modules`;
// The packages live in the cache, not beside these scripts.
export const load = createRequire(`${modules}/`);

export const wanted = { toolset: 'memory', include_write_tools: true };
export const note = {
  path: 'session/notes/hello',
  type: 'note',
  content: 'hello from a foreign client',
  evidence: 'written by the client tests',
};

let failed = 0;

export function check(what, holds, seen) {
  if (holds) {
    console.log(`  ok      ${what}`);
  } else {
    failed += 1;
    console.log(`  FAILED  ${what}: ${seen instanceof Error ? seen.stack : JSON.stringify(seen)}`);
  }
}

export async function rejects(what, promise, holds) {
  try {
    check(what, false, await promise);
  } catch (error) {
    check(what, holds(error), error);
  }
}

export const names = (list) => list.tools.map((tool) => tool.name);
export const text = (result) => result.content[0]?.text ?? '';
export const includesAll = (list, some) => some.every((name) => list.includes(name));
export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// Resolves with whether `promise` did, within five seconds.
export function inTime(promise) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, 5000, false);
  });
  return Promise.race([promise.then(() => true), late]).finally(() => clearTimeout(timer));
}

export async function run(story) {
  try {
    await story();
  } catch (error) {
    check('the story ends without an exception', false, error);
  }
  process.exit(failed ? 1 : 0);
}

// The same for both SDKs: what a client is refused before it has loaded anything.
export async function refusals(client) {
  const early = await client.callTool({ name: 'memory_remember', arguments: note });
  check('a tool that is not loaded is refused', early.isError && text(early).includes('load_toolset'), early);
  const wrong = await client.callTool({ name: 'memory_read', arguments: { way: 1 } });
  check('bad arguments are an error result', wrong.isError === true, wrong);
  await rejects('an unknown tool rejects', client.callTool({ name: 'no_such_tool', arguments: {} }), (error) => error.code === -32602);
}

// And what it may do afterwards, with the handle in `_meta` where the era has no session of its own.
export async function remembers(client, _meta) {
  const saved = await client.callTool({ name: 'memory_remember', arguments: note, _meta });
  check('memory_remember saves in the session', !saved.isError && saved.structuredContent.path === note.path, saved);
  const read = await client.callTool({ name: 'memory_read', arguments: { path: note.path }, _meta });
  check('memory_read gives it back', !read.isError && read.structuredContent.content === note.content, read);
}
