// An agent with Vercel's `ai` that gets its tools over MCP.

import { createMCPClient } from '@ai-sdk/mcp';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs } from 'ai';

const service = await createMCPClient({
    transport: {
        type: 'http',
        // The address names the toolsets, because the tools of a call of generateText are fixed.
        url: `${process.env.QM_URL ?? 'http://127.0.0.1:8080'}/mcp/x/k8s:write`,
        headers: { Authorization: `Bearer ${process.env.QM_TOKEN}` },
    },
});
const models = createOpenAICompatible({
    name: 'models',
    baseURL: process.env.OPENAI_BASE_URL ?? 'https://api.openai.com/v1',
    apiKey: process.env.OPENAI_API_KEY,
});

const { text } = await generateText({
    model: models(process.env.MODEL ?? 'scripted'),
    tools: await service.tools(),
    stopWhen: stepCountIs(50),
    system: 'A result with a run in state pending_approval waits for a person: call await_run.',
    prompt: 'The deployment checkout is broken. Find out why, and mend it.',
    onStepFinish: ({ toolCalls }) => toolCalls.forEach((call) => console.log(call.toolName, JSON.stringify(call.input))),
});
console.log(text);
await service.close();
