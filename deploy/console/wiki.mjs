// An external MCP server on loopback for the console's tests. Its tools say what the tests want them to say.
import { createServer } from "node:http";

const token = "a token of the wiki";
let tools = [];

const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "wiki", version: "1" } }),
  "tools/list": () => ({ tools }),
  ping: () => ({}),
};

// Starts it; `offer` replaces its tools.
export const startWiki = (port) => new Promise((done) => {
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    if (request.headers.authorization !== `Bearer ${token}`) return response.writeHead(401).end();
    if (request.method !== "POST") return response.writeHead(405).end();
    const { id, method, params } = JSON.parse(text);
    if (id === undefined) return response.writeHead(202).end();
    const answer = answers[method];
    const body = answer ? { jsonrpc: "2.0", id, result: answer(params ?? {}) } : { jsonrpc: "2.0", id, error: { code: -32601, message: "no such method" } };
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
  });
  server.listen(port, "127.0.0.1", () => done({ token, offer: (next) => { tools = next; }, stop: () => server.close() }));
});

export const tool = (name, description) => ({ name, description, inputSchema: { type: "object", properties: { text: { type: "string" } } } });
