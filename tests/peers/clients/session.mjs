// Holds a whole conversation with each of some servers, using a client of the TypeScript SDK, and
// prints what it saw, so that one held directly can be compared with one through a proxy.
//
//   node session.mjs v1 legacy|v2 legacy|v2 modern NAME=URL...
//
// Prints sorted lines, `NAME<TAB>what`, without anything that differs from run to run. It calls each
// tool of `calls.json` that a server offers. In the handshake revisions it also waits for an event
// on the stream it opened with GET, has a cut stream resumed, and ends the session.

import { readFile } from 'node:fs/promises';

import { isFromServer, loadSdk } from './sdk.mjs';

const WAIT_MS_MAX = 10_000;
const TRIGGER_EVERY_MS = 200;

const [line, era, ...targets] = process.argv.slice(2);
const CALLS = JSON.parse(await readFile(new URL('calls.json', import.meta.url), 'utf8'));
const { Client, StreamableHTTPClientTransport, callTool, onRequest, onNotification } =
    await loadSdk(line);

const ANSWERS = {
    'sampling/createMessage': () => ({
        model: 'none',
        role: 'assistant',
        content: { type: 'text', text: 'a test' },
    }),
    // Accepts, with a value for each property that must have one.
    'elicitation/create': ({ requestedSchema: { properties, required = [] } }) => ({
        action: 'accept',
        content: Object.fromEntries(
            required.map((key) => [key, properties[key].type === 'boolean' ? true : 'a test']),
        ),
    }),
};

/** A connected client that tells everything it is asked or notified of. */
async function connect(url, tell) {
    const client = new Client(
        { name: 'ringgate-tests', version: '1' },
        {
            capabilities: { sampling: {}, elicitation: {} },
            versionNegotiation: era === 'modern' ? { mode: 'auto' } : undefined,
        },
    );
    for (const [method, answer] of Object.entries(ANSWERS)) {
        onRequest(client, method, ({ params }) => {
            tell(`asked ${method}`);
            return answer(params);
        });
    }
    onNotification(client, 'notifications/message', ({ params }) => {
        tell(`logged ${JSON.stringify(params.data)}`);
    });
    const transport = new StreamableHTTPClientTransport(new URL(url));
    await client.connect(transport);
    const spoken = isModern(client) ? 'modern' : 'legacy';
    tell(`connected to ${client.getServerVersion().name}, ${spoken}`);
    return { client, transport };
}

// A client of both eras falls back where a server has but one, and 1.x does not know the question.
const isModern = (client) => client.getProtocolEra?.() === 'modern';

async function callAll(client, tools, tell) {
    for (const [name, args] of Object.entries(CALLS).filter(([name]) => tools.includes(name))) {
        const steps = [];
        const onprogress = ({ progress, total }) => steps.push(`${progress}/${total}`);
        try {
            const { content, isError = false } = await callTool(client, name, args, {
                onprogress,
                timeout: WAIT_MS_MAX,
            });
            tell(`called ${name}: ${isError ? 'failed' : 'done'} ${JSON.stringify(content)}`);
        } catch (error) {
            if (!isFromServer(error)) {
                throw error;
            }
            tell(`called ${name}: refused ${error.code} ${error.message}`);
        }
        if (steps.length > 0) {
            tell(`progress of ${name}: ${steps.join(' ')}`);
        }
    }
}

/** Has the server announce another list of tools until the announcement arrives. */
async function awaitAnnouncement(client, tell) {
    let announced = false;
    onNotification(client, 'notifications/tools/list_changed', () => {
        announced = true;
    });
    const subscription = isModern(client)
        ? await client.listen({ toolsListChanged: true })
        : undefined;
    const deadline = performance.now() + WAIT_MS_MAX;
    // Again and again: the stream that GET opens may not stand yet when the first is sent.
    while (!announced && performance.now() < deadline) {
        await callTool(client, 'test_trigger_tool_change', {}, { timeout: WAIT_MS_MAX });
        await new Promise((resolve) => setTimeout(resolve, TRIGGER_EVERY_MS));
    }
    tell(announced ? 'was told of another list of tools' : 'was NOT told of another list of tools');
    await subscription?.close();
}

/** Ends the session and looks whether it can still be used. */
async function endSession(url, transport, tell) {
    const session = transport.sessionId;
    if (session === undefined) {
        tell('had no session');
        return;
    }
    await transport.terminateSession();
    const { status } = await fetch(url, {
        method: 'POST',
        headers: {
            'accept': 'application/json, text/event-stream',
            'content-type': 'application/json',
            'mcp-session-id': session,
        },
        body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    });
    // The rule is 404, yet some servers say 400.
    tell([400, 404].includes(status) ? 'ended the session' : `STILL HAS a session: ${status}`);
}

async function converse(url, tell) {
    const { client, transport } = await connect(url, tell);
    const tools = (await client.listTools()).tools.map(({ name }) => name);
    tell(`listed ${tools.sort().join(' ')}`);
    await callAll(client, tools, tell);
    if (tools.includes('resumptions')) {
        const { content } = await callTool(client, 'resumptions', {}, { timeout: WAIT_MS_MAX });
        tell(content[0].text);
    }
    if (tools.includes('test_trigger_tool_change')) {
        await awaitAnnouncement(client, tell);
    }
    await endSession(url, transport, tell);
    await client.close();
}

const said = [];
for (const target of targets) {
    const [name, url] = target.split(/=(.*)/);
    try {
        await converse(url, (what) => said.push(`${name}\t${what}`));
    } catch (error) {
        console.error(`${name}:`, error);
        process.exit(1);
    }
}
console.log(said.sort().join('\n'));
// A stream that was left open must not keep the process.
process.exit(0);
