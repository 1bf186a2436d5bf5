// A server of the modern era alone, on the TypeScript SDK: a client of the legacy era is turned away.
//
//   weather.mjs PORT, with what npm brought in QM_MODULES
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const load = createRequire(`${process.env.QM_MODULES}/package.json`);
const { McpServer, createMcpHandler } = load('@modelcontextprotocol/server');
const { toNodeHandler } = load('@modelcontextprotocol/node');
const { z } = load('zod');

const alarms = [];

function told(structuredContent) {
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
}

function weather() {
  const server = new McpServer({ name: 'weather', version: '1.0.0' });
  server.registerTool(
    'fahrenheit',
    {
      description: 'Celsius in Fahrenheit.',
      inputSchema: z.object({ celsius: z.number() }),
      outputSchema: z.object({ fahrenheit: z.number() }),
      annotations: { readOnlyHint: true },
    },
    async ({ celsius }) => told({ fahrenheit: celsius * 1.8 + 32 }),
  );
  server.registerTool(
    'alarm',
    { description: 'Sound an alarm at a place.', inputSchema: z.object({ place: z.string() }), outputSchema: z.object({ alarms: z.number() }) },
    async ({ place }) => told({ alarms: alarms.push(place) }),
  );
  return server;
}

createServer(toNodeHandler(createMcpHandler(weather, { legacy: 'reject' }))).listen(Number(process.argv[2]), '127.0.0.1');
