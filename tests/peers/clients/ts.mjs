// Calls every case of the hostile server with a client of the TypeScript SDK and prints one JSON
// line a case, in the order given: what the caller saw of the answer, and whether the session could
// still be used afterwards (`"session": "alive"`).
//
//   BASE=http://127.0.0.1:PORT node ts.mjs v1 legacy|v2 legacy|v2 modern CASE...

import { isFromServer, isTimeout, loadSdk } from './sdk.mjs';

const CALL_MS_MAX = 2500;
// A call that waits for its time-out costs the group that long, so many wait together.
const CALLS_AT_ONCE = 28;

const [line, era, ...cases] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport, callTool } = await loadSdk(line);

const options = era === 'modern' ? { versionNegotiation: { mode: 'auto' } } : {};
const patience = { timeout: CALL_MS_MAX };

async function use(url) {
    const client = new Client({ name: 'ringgate-tests', version: '1' }, options);
    try {
        await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    } catch (error) {
        return { outcome: 'connect-failed', message: error.message, session: 'lost' };
    }
    const seen = await callTool(client, 't', {}, patience).then(
        () => ({ outcome: 'delivered' }),
        (error) => ({ outcome: judge(error), code: error.code, message: error.message }),
    );
    const session = await client.listTools({}, patience).then(
        () => 'alive',
        () => 'lost',
    );
    await client.close();
    return { ...seen, session };
}

function judge(error) {
    if (isTimeout(error)) {
        return 'hang';
    }
    return isFromServer(error) ? 'error' : 'rejected';
}

async function runCase(name) {
    const started = performance.now();
    const seen = await use(`${process.env.BASE}/${name}/mcp`);
    const elapsed_ms = Math.round(performance.now() - started);
    return JSON.stringify({ case: name, ...seen, elapsed_ms });
}

for (let first = 0; first < cases.length; first += CALLS_AT_ONCE) {
    const group = cases.slice(first, first + CALLS_AT_ONCE);
    console.log((await Promise.all(group.map(runCase))).join('\n'));
}
// A stream that was left open must not keep the process.
process.exit(0);
