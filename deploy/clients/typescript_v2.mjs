// `@modelcontextprotocol/client`, the second TypeScript SDK: `legacy`, or `auto`, which finds the modern era.
import { check, command, includesAll, inTime, load, names, note, refusals, remembers, run, same, text, token, url, wanted } from './checks.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');
const mode = process.argv[2];
const modern = mode === 'auto';

await run(async () => {
  let tell;
  const told = new Promise((resolve) => {
    tell = resolve;
  });
  const client = new Client(
    { name: 'client-tests', version: '1' },
    { versionNegotiation: { mode }, listChanged: { tools: { onChanged: (error, tools) => tell(error ?? tools) } } },
  );
  const transport = command
    ? new StdioClientTransport({ command: command[0], args: command.slice(1) })
    : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
  await client.connect(transport);
  check('the era is the one asked for', client.getProtocolEra() === (modern ? 'modern' : 'legacy'), client.getProtocolEra());

  const before = names(await client.listTools());
  check('the list has memory_read and load_toolset', includesAll(before, ['memory_read', 'load_toolset']), before);
  check('the list has no write tool', !before.includes('memory_remember'), before);
  await refusals(client);

  const loaded = await client.callTool({ name: 'load_toolset', arguments: wanted });
  const { added, session } = loaded.structuredContent;
  check('load_toolset returns the schema of memory_remember', added.some((tool) => tool.name === 'memory_remember' && tool.inputSchema.type === 'object'), loaded);

  if (modern) {
    const after = names(await client.listTools(undefined, { cacheMode: 'refresh' }));
    check('the list is unchanged', same(after, before), after);
    await remembers(client, { 'quartermaster/session': session });
    const through = await client.callTool({ name: 'call_tool', arguments: { session, tool: 'memory_read', arguments: { path: note.path } } });
    check('call_tool gives it back too', text(through).includes(note.content), through);
  } else {
    check('list_changed was received', await inTime(told));
    const after = names(await client.listTools());
    check('the list has grown by memory_remember', includesAll(after, [...before, 'memory_remember']), after);
    await remembers(client);
  }
  await client.close();
});
