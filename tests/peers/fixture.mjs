// A dual-era MCP server on the TypeScript SDK 2.x: it keeps sessions for clients of the handshake
// revisions and answers requests of 2026-07-28 without any. It offers everything that the official
// conformance suite asks a server for, and passes that suite on its own, so that whatever fails
// through the proxy is the proxy's doing.
//
//   node fixture.mjs [--json]
//
// With `--json` a request is answered with one JSON body, never with an event stream.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import {
    localhostHostValidation,
    localhostOriginValidation,
    NodeStreamableHTTPServerTransport,
    toNodeHandler,
} from '@modelcontextprotocol/node';
import {
    classifyInboundRequest,
    createMcpHandler,
    createRequestStateCodec,
    isInitializeRequest,
    McpServer,
} from '@modelcontextprotocol/server';

import { offerContent } from './fixture/content.mjs';
import { EventLog } from './fixture/event-log.mjs';
import { offerQuestions } from './fixture/questions.mjs';
import { offerRounds } from './fixture/rounds.mjs';
import { offerTools } from './fixture/tools.mjs';

const BODY_BYTES_MAX = 4 * 1024 * 1024;
const RECONNECT_MS = 200;

const onlyJson = process.argv.includes('--json');
const sessions = new Map();
const states = createRequestStateCodec({ key: crypto.getRandomValues(new Uint8Array(32)) });

/** One server, for a session or, in 2026-07-28, for one request (`session` is then undefined). */
function makeServer(session) {
    const server = new McpServer(
        { name: 'ringgate-fixture', version: '1.0.0' },
        {
            capabilities: {
                tools: { listChanged: true },
                prompts: { listChanged: true },
                resources: { subscribe: true, listChanged: true },
                logging: {},
                completions: {},
            },
            requestState: { verify: states.verify },
        },
    );
    offerTools(server, { session, modern: modern.notify });
    offerContent(server);
    // A question to the client needs a stream to travel on in the handshake revisions.
    if (!onlyJson) {
        offerQuestions(server);
        offerRounds(server, states);
    }
    return server;
}

const modern = createMcpHandler(() => makeServer(undefined), {
    legacy: 'reject',
    responseMode: onlyJson ? 'json' : 'auto',
});
const answerModern = toNodeHandler(modern);
const isHostAllowed = localhostHostValidation();
const isOriginAllowed = localhostOriginValidation();

async function openSession(request, response, body) {
    const session = {
        resumptions: 0,
        // Without streams the SDK would take the cut for the end of the exchange.
        cutStream: (id) => onlyJson || session.transport.closeSSEStream(id),
    };
    session.transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        enableJsonResponse: onlyJson,
        eventStore: onlyJson ? undefined : new EventLog(),
        retryInterval: RECONNECT_MS,
        onsessioninitialized: (id) => {
            sessions.set(id, session);
        },
    });
    session.transport.onclose = () => sessions.delete(session.transport.sessionId);
    await makeServer(session).connect(session.transport);
    await session.transport.handleRequest(request, response, body);
}

async function answerLegacy(request, response, body) {
    const id = request.headers['mcp-session-id'];
    if (id === undefined) {
        if (isInitializeRequest(body)) {
            return openSession(request, response, body);
        }
        return refuse(response, 400, -32000, 'a session id is required');
    }
    const session = sessions.get(id);
    if (session === undefined) {
        return refuse(response, 404, -32001, 'no such session');
    }
    if (request.method === 'GET' && request.headers['last-event-id'] !== undefined) {
        session.resumptions += 1;
    }
    return session.transport.handleRequest(request, response, body);
}

async function answer(request, response) {
    // Each guard has answered by itself when it says no.
    if (!isHostAllowed(request, response) || !isOriginAllowed(request, response)) {
        return;
    }
    if (request.url !== '/mcp') {
        response.writeHead(404).end();
        return;
    }
    if (request.method !== 'POST') {
        await answerLegacy(request, response, undefined);
        return;
    }
    const body = await readJson(request);
    if (body === undefined) {
        refuse(response, 400, -32700, 'the body is not JSON');
        return;
    }
    const { kind } = classifyInboundRequest({
        httpMethod: request.method,
        protocolVersionHeader: request.headers['mcp-protocol-version'],
        mcpMethodHeader: request.headers['mcp-method'],
        body,
    });
    if (kind === 'legacy') {
        await answerLegacy(request, response, body);
    } else {
        await answerModern(request, response, body);
    }
}

/** The body as a value; undefined when it is too long or is not JSON. */
async function readJson(request) {
    const pieces = [];
    let bytes = 0;
    for await (const piece of request) {
        bytes += piece.length;
        if (bytes > BODY_BYTES_MAX) {
            return undefined;
        }
        pieces.push(piece);
    }
    try {
        return JSON.parse(Buffer.concat(pieces).toString());
    } catch {
        return undefined;
    }
}

function refuse(response, status, code, message) {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }));
}

const http = createServer((request, response) => {
    answer(request, response).catch((error) => {
        console.error(error);
        response.destroy();
    });
});
http.listen(0, '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`);
});
