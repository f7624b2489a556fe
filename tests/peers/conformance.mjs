// Runs the official conformance suite against one server and prints what each check said, so that
// two runs can be compared as multisets.
//
//   node conformance.mjs URL 2025-11-25|2026-07-28
//
// One line a check, `scenario<TAB>check id<TAB>status`, sorted; then `exit<TAB>CODE`, the suite's
// own. Must run on the Node.js that is pinned in package.json: the suite needs 22 or later.

import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SUITE = fileURLToPath(
    new URL('node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);

/** The exit code of the suite, run against `url` with its results in `folder`. */
function runSuite(url, requirements, folder) {
    const options = ['server', '--url', url, '--requirements', requirements, '-o', folder];
    const stdio = ['ignore', 'pipe', 'inherit'];
    const suite = spawn(process.execPath, [SUITE, ...options], { stdio });
    let said = '';
    suite.stdout.on('data', (piece) => (said += piece));
    return new Promise((resolve, reject) => {
        suite.on('error', reject);
        suite.on('close', (code) => {
            if (code !== 0) {
                process.stderr.write(said);
            }
            resolve(code);
        });
    });
}

/** The lines of one result folder, whose name is `server-SCENARIO-TIME`. */
async function readChecks(folder, name) {
    const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
    const checks = JSON.parse(await readFile(join(folder, name, 'checks.json'), 'utf8'));
    return checks.map(({ id, status }) => `${scenario}\t${id}\t${status}`);
}

const [url, requirements] = process.argv.slice(2);
const folder = await mkdtemp(join(tmpdir(), 'conformance-'));
try {
    const code = await runSuite(url, requirements, folder);
    const names = await readdir(folder);
    const lines = (await Promise.all(names.map((name) => readChecks(folder, name)))).flat();
    console.log([...lines.sort(), `exit\t${code}`].join('\n'));
} finally {
    await rm(folder, { recursive: true });
}
