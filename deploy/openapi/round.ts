// One round with a client made from the description: open a session, take the tools, call, approve, learn the outcome.
// The compiler has checked every path, body and answer against the description before this runs.

import { readFileSync } from 'node:fs';
import createClient from 'openapi-fetch';
import type { paths } from './service.ts';

const baseUrl = process.env.QM_URL!;
const client = (name: string) => {
    const token = readFileSync(`${process.env.QM_DATA}/${name}.token`, 'utf8').trim();
    return createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
};
const [agent, approver] = [client('agent'), client('approver')];

function done<T>(what: string, { data, error, response }: { data?: T; error?: unknown; response: Response }): T {
    if (data === undefined) throw new Error(`${what}: ${response.status} ${JSON.stringify(error)}`);
    console.log(`  ok      ${what}: ${response.status}`);
    return data;
}

const session = done('open a session', await agent.POST('/v1/sessions', { body: { mode: 'write' } })).id;
const path = { session };
const { tools } = done('take the tools', await agent.GET('/v1/sessions/{session}/tools', { params: { path, query: { format: 'openai' } } }));
if (tools.length === 0) throw new Error('there are no tools');

const call = async (tool: string, args: Record<string, unknown>) => {
    const body = { tool, arguments: args };
    return done(tool, await agent.POST('/v1/sessions/{session}/calls', { params: { path }, body })).result as any;
};
await call('load_toolset', { toolset: 'k8s', include_write_tools: true });
const asked = await call('k8s_rollout', { action: 'undo', kind: 'Deployment', name: 'checkout' });
const run: string = asked.run.id;
const decided = await approver.POST('/v1/runs/{run}/approve', { params: { path: { run } }, body: { reason: 'one round' } });
done('approve', decided);
const outcome = await call('await_run', { run_id: run });
if (outcome.run.state !== 'succeeded') throw new Error(JSON.stringify(outcome));

const refused = await agent.POST('/v1/runs/{run}/approve', { params: { path: { run } }, body: {} });
if (refused.response.status !== 403 || refused.error?.error.code !== 'insufficient_scope') throw new Error('an agent decided');
console.log('  ok      an agent cannot decide: 403');
