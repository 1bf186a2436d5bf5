// An MCP client without a model, with the package `@modelcontextprotocol/client`: every step by hand.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const url = new URL('/mcp', process.env.QM_URL ?? 'http://127.0.0.1:8080');
const headers = { Authorization: `Bearer ${process.env.QM_TOKEN}` };
const checkout = { kind: 'Deployment', name: 'checkout' };

const client = new Client({ name: 'example', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));

async function call(name: string, args: Record<string, unknown>): Promise<any> {
    const result = await client.callTool({ name, arguments: args }, { timeout: 70_000 });
    if (result.isError) throw new Error(`${name}: ${JSON.stringify(result.content)}`);
    return result.structuredContent;
}

const { tools } = await client.listTools();
console.log('tools at first:', tools.map((tool) => tool.name).join(', '));

const status = await call('k8s_rollout_status', checkout);
console.log('checkout has failed:', status.failed);

// The session's list grows by the write tools; they are called by name from here on.
await call('load_toolset', { toolset: 'k8s', include_write_tools: true });

let outcome = await call('k8s_rollout', { action: 'undo', ...checkout });
const run: string = outcome.run.id;
console.log(`waits for a person: quartermaster runs approve ${run}`);

while (['pending_approval', 'approved', 'executing'].includes(outcome.run.state)) {
    outcome = await call('await_run', { run_id: run, wait_ms: 20_000 });
}
console.log('the run:', outcome.run.state);

const waited = await call('k8s_wait', { ...checkout, until: 'rollout', timeout_s: 30 });
console.log(waited.met ? 'checkout is well again.' : 'checkout has not recovered.');
await client.close();
