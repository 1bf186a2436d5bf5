// `@modelcontextprotocol/sdk`, the first TypeScript SDK: legacy only.
import { check, command, includesAll, inTime, load, names, refusals, remembers, run, token, url, wanted } from './checks.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { ToolListChangedNotificationSchema } = load('@modelcontextprotocol/sdk/types.js');

await run(async () => {
  const client = new Client({ name: 'client-tests', version: '1' });
  const told = new Promise((resolve) => client.setNotificationHandler(ToolListChangedNotificationSchema, resolve));
  const transport = command
    ? new StdioClientTransport({ command: command[0], args: command.slice(1) })
    : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
  await client.connect(transport);
  if (!command) {
    check('the session is ours', transport.sessionId?.startsWith('ses_'), transport.sessionId);
  }

  const before = names(await client.listTools());
  check('the list has memory_read and load_toolset', includesAll(before, ['memory_read', 'load_toolset']), before);
  check('the list has no write tool', !before.includes('memory_remember'), before);
  await refusals(client);

  const loaded = await client.callTool({ name: 'load_toolset', arguments: wanted });
  const added = loaded.structuredContent?.added ?? [];
  check('load_toolset returns the schema of memory_remember', added.some((tool) => tool.name === 'memory_remember' && tool.inputSchema.type === 'object'), loaded);
  check('list_changed was received', await inTime(told));

  const after = names(await client.listTools());
  check('the list has grown by memory_remember', includesAll(after, [...before, 'memory_remember']), after);
  await remembers(client);

  await transport.terminateSession?.();
  await client.close();
  if (!command) {
    check('the session ends when asked to', transport.sessionId === undefined, transport.sessionId);
  }
});
