// An upstream that shakes hands properly and then answers each call at `/CASE/mcp` with the broken
// or unusual answer of that name; `hostile/answers.mjs` has them all.
//
//   [LEGACY=1] node hostile.mjs [--list]
//
// With `--list` it prints the names of the cases instead, one a line, in the order of the tables.
// With `LEGACY=1` it refuses `server/discover`, so that a client of both eras falls back to the
// handshake. Uses no package, so nothing repairs what it says.

import { createServer } from 'node:http';

import { ANSWERS, CASES } from './hostile/answers.mjs';

const CUT_AFTER_MS = 100;
const speaksLegacyOnly = process.env.LEGACY === '1';

const serverInfo = { name: 'hostile', version: '1' };
const capabilities = { tools: {} };
const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };

/** The proper results, by method; an unknown method gets an empty one. */
const RESULTS = {
    'initialize': ({ protocolVersion }) => ({ protocolVersion, capabilities, serverInfo }),
    'server/discover': () => ({
        ...complete,
        supportedVersions: ['2026-07-28'],
        capabilities,
        _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
    }),
    'tools/list': () => ({ ...complete, tools: [{ name: 't', inputSchema: { type: 'object' } }] }),
};

function sendProperly(response, status, message) {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', ...message }));
}

function sendHostile(response, { status, fields, body, cut }) {
    if (status === undefined) {
        response.destroy();
        return;
    }
    response.writeHead(status, fields);
    if (cut) {
        response.write(body);
        // Later, so that what came before the cut has left and is not dropped with the socket.
        setTimeout(() => response.destroy(), CUT_AFTER_MS);
    } else {
        response.end(body);
    }
}

function answer(response, name, { id, method, params }) {
    if (id === undefined) {
        response.writeHead(202).end();
    } else if (method === 'tools/call') {
        sendHostile(response, ANSWERS[name](id));
    } else if (method === 'server/discover' && speaksLegacyOnly) {
        sendProperly(response, 404, { id, error: { code: -32601, message: 'not served here' } });
    } else {
        sendProperly(response, 200, { id, result: RESULTS[method]?.(params) ?? complete });
    }
}

const server = createServer(async (request, response) => {
    const name = request.url.split('/')[1];
    if (!(name in ANSWERS)) {
        response.writeHead(404).end();
        return;
    }
    if (request.method !== 'POST') {
        response.writeHead(405, { allow: 'POST' }).end();
        return;
    }
    try {
        const body = await Array.fromAsync(request);
        answer(response, name, JSON.parse(Buffer.concat(body).toString()));
    } catch {
        response.writeHead(400).end();
    }
});
if (process.argv.includes('--list')) {
    console.log(CASES.join('\n'));
} else {
    server.listen(0, '127.0.0.1', () => {
        console.log(`listening on http://127.0.0.1:${server.address().port}`);
    });
}
