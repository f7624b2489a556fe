// The reference server of the TypeScript SDK 1.x, `server-everything`, on a free port of loopback.
//
//   node everything.mjs

import { Server } from 'node:net';

// It takes a port from the environment and says which it took, not which it got. So its call of
// `listen` is replaced by one for any free port, and the answer is printed the way our servers do.
const { listen } = Server.prototype;
Server.prototype.listen = function () {
    return listen.call(this, 0, '127.0.0.1', () => {
        process.stdout.write(`listening on http://127.0.0.1:${this.address().port}/mcp\n`);
    });
};
console.log = () => {};
await import('@modelcontextprotocol/server-everything/dist/transports/streamableHttp.js');
