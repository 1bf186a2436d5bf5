// Adds the fixture tenant's token to every request and changes nothing else.
//
//   node authproxy.mjs TARGET_PORT TOKEN_FILE PORT_FILE
//
// Listens on a free loopback port and writes it to PORT_FILE. `Host`, `Origin`, the spelling of header
// names and repeated headers arrive as they were sent: the suite tests what the server makes of them.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import http from 'node:http';

const [target, tokenFile, portFile] = process.argv.slice(2);
const token = readFileSync(tokenFile, 'utf8').trim();
// A fresh connection each time: a kept one could be closed by the server just as we write to it.
const agent = new http.Agent({ keepAlive: false });
const ours = new Set(['authorization', 'connection', 'keep-alive']);

function forwarded(raw) {
  const headers = [];
  for (let i = 0; i < raw.length; i += 2) {
    if (!ours.has(raw[i].toLowerCase())) headers.push(raw[i], raw[i + 1]);
  }
  return [...headers, 'Authorization', `Bearer ${token}`, 'Connection', 'close'];
}

const server = http.createServer((incoming, outgoing) => {
  const upstream = http.request(
    { host: '127.0.0.1', port: Number(target), method: incoming.method, path: incoming.url, headers: forwarded(incoming.rawHeaders), setHost: false, agent },
    (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      // The head of an event stream must not wait for its first event.
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      answer.on('error', () => outgoing.destroy());
    },
  );
  upstream.on('error', () => outgoing.destroy());
  // A client that hangs up hangs up on the server too.
  outgoing.on('close', () => upstream.destroy());
  incoming.pipe(upstream);
});

server.listen(0, '127.0.0.1', () => {
  writeFileSync(`${portFile}.new`, String(server.address().port));
  renameSync(`${portFile}.new`, portFile);
});
process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  server.closeAllConnections();
});
