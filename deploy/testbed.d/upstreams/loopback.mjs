// Loaded before a server that would listen on every address of the machine: it listens on loopback alone.
import net from 'node:net';

const { listen } = net.Server.prototype;

net.Server.prototype.listen = function (port, ...rest) {
  const called = rest.find((each) => typeof each === 'function');
  return listen.call(this, port, '127.0.0.1', called);
};
