// The answers of the hostile server: each is what one broken or unusual upstream says to a call.
//
// An answer is `{ status, fields, body }`, made from the id of the request that is answered. `cut`
// instead of a body stands for a connection that is torn down at that point of the answer.

const JSON_TYPE = 'application/json';
const STREAM_TYPE = 'text/event-stream';

// Bodies are put together as text, since most of them are what a JSON writer never writes.
const idMember = (id) => `,"id":${JSON.stringify(id)}`;
const message = (id, rest) => `{"jsonrpc":"2.0"${idMember(id)},${rest}}`;
const GOOD = '"result":{"resultType":"complete","content":[{"type":"text","text":"hi"}]}';
const EMPTY = '"result":{"content":[]}';

const result = (id, more = '') => message(id, GOOD + more);
const errorWith = (id, code = '-32000', more = '') =>
    `{"jsonrpc":"2.0"${id},"error":{"code":${code},"message":"boom"${more}}}`;
const error = (id, code, more) => errorWith(idMember(id), code, more);
const NO_ID = '';
const NULL_ID = ',"id":null';

const answer = (status, type, body, more = {}) => ({
    status,
    fields: { ...more, ...(type && { 'content-type': type }) },
    body,
});
const json = (body, status = 200, more = {}) => answer(status, JSON_TYPE, body, more);
const stream = (body, status = 200) => answer(status, STREAM_TYPE, body);
const text = (body, status = 200) => answer(status, 'text/plain', body);
const event = (data) => `event: message\ndata: ${data}\n\n`;

const sound = {
    'ok-json': (id) => json(result(id)),
    'ok-sse': (id) => stream(event(result(id))),
    '201-json': (id) => json(result(id), 201),
    'err200': (id) => json(error(id)),
};

const members = {
    'no-resulttype': (id) => json(message(id, EMPTY)),
    'unknown-resulttype': (id) => json(message(id, '"result":{"resultType":"zzz","content":[]}')),
    'err200-idnull': () => json(errorWith(NULL_ID)),
    'err200-noid': () => json(errorWith(NO_ID)),
    'err200-extra-top': (id) =>
        json(message(id, '"error":{"code":-32000,"message":"boom"},"x":1')),
    'err200-extra-in-error': (id) => json(error(id, '-32000', ',"x":1')),
    'ok-extra-top': (id) => json(result(id, ',"x":1')),
    'both-result-error': (id) => json(result(id, ',"error":{"code":1,"message":"m"}')),
    'result-and-error-null': (id) => json(result(id, ',"error":null')),
    'missing-jsonrpc': (id) => json(`{"id":${JSON.stringify(id)},${EMPTY}}`),
    'jsonrpc-1.0': (id) => json(result(id).replace('"2.0"', '"1.0"')),
    'id-as-string': (id) => json(result(String(id))),
    'id-float-text': (id) => json(result(id).replace(`"id":${id}`, `"id":${id}.0`)),
    'id-wrong': () => json(result(99999)),
    'id-null-result': () => json(result(null)),
    'code-float': (id) => json(error(id, '1.5')),
    'code-string': (id) => json(error(id, '"x"')),
    'code-huge': (id) => json(error(id, '12345678901234567890')),
    'msg-missing': (id) => json(message(id, '"error":{"code":-32000}')),
    'result-null': (id) => json(message(id, '"result":null')),
    'result-array': (id) => json(message(id, '"result":[]')),
    'dup-id-last-right': (id) => json(message(99999, `"id":${JSON.stringify(id)},${EMPTY}`)),
    'dup-id-first-right': (id) => json(message(id, `"id":99999,${EMPTY}`)),
};

const bodies = {
    'batch1': (id) => json(`[${result(id)}]`),
    'empty-array': () => json('[]'),
    'trailing-garbage': (id) => json(`${result(id)} {}`),
    'bom': (id) => json(`\ufeff${result(id)}`),
    'empty200': () => json(''),
    '202': () => answer(202, null, ''),
    '204': () => answer(204, null, ''),
    'truncated': (id) => ({ ...json(result(id), 200, { 'content-length': '500' }), cut: true }),
    'gzip-bad': (id) => json(result(id), 200, { 'content-encoding': 'gzip' }),
    'reset': () => ({ cut: true }),
};

const types = {
    'ct-text': (id) => text(result(id)),
    'ct-none': (id) => answer(200, null, result(id)),
    'ct-charset': (id) => answer(200, 'application/json; charset=utf-8', result(id)),
    'ct-json-rpc': (id) => answer(200, 'application/json-rpc', result(id)),
    'ct-upper': (id) => answer(200, 'Application/JSON', result(id)),
    'ct-html': () => answer(200, 'text/html', '<html>x</html>'),
    'sse-ct-upper': (id) => answer(200, 'Text/Event-Stream; charset=UTF-8', event(result(id))),
};

const statuses = {
    '400-json': (id) => json(error(id, '-32602'), 400),
    '400-json-noid': () => json(errorWith(NO_ID, '-32602'), 400),
    '400-32020': (id) => json(error(id, '-32020'), 400),
    '400-text': () => text('nope', 400),
    '401': () => json(errorWith(NO_ID), 401),
    '403-json': (id) => json(error(id), 403),
    '404-json': (id) => json(error(id, '-32601'), 404),
    '404-session': (id) => json(error(id, '-32001'), 404),
    '404-text': () => text('nf', 404),
    '405': () => json(errorWith(NO_ID), 405),
    '413-json': (id) => json(error(id), 413),
    '415': () => json(errorWith(NO_ID), 415),
    '429-json': (id) => json(error(id), 429, { 'retry-after': '1' }),
    '500-json': (id) => json(error(id), 500),
    '502-json': (id) => json(error(id), 502),
    '502-json-noid': () => json(errorWith(NO_ID), 502),
    '502-text': () => text('bad gateway', 502),
    '503-json': (id) => json(error(id), 503, { 'retry-after': '1' }),
    '504-json': (id) => json(error(id), 504),
    'sse-502': (id) => stream(event(error(id)), 502),
};

const streams = {
    'sse-err': (id) => stream(event(error(id))),
    'sse-err-noid': () => stream(event(errorWith(NO_ID))),
    'sse-err-idnull': () => stream(event(errorWith(NULL_ID))),
    'sse-bare-json': (id) => stream(`${result(id)}\n`),
    'sse-garbage-then-ok': (id) => stream(event('{oops') + event(result(id))),
    'sse-garbage-only': () => stream('data: {oops\n\n'),
    'sse-close-early': () => stream(': hi\n\n'),
    'sse-prime-close': () => stream('id: e1\nretry: 100\ndata: \n\n'),
    'sse-multiline': (id) => stream(`data: ${result(id).replace('"2.0",', '"2.0",\ndata: ')}\n\n`),
    'sse-crlf': (id) => stream(`: c\r\nevent: message\r\ndata: ${result(id)}\r\n\r\n`),
    'sse-no-event-field': (id) => stream(`data: ${result(id)}\n\n`),
    'sse-no-space': (id) => stream(`data:${result(id)}\n\n`),
    'sse-event-error': (id) => stream(`event: error\ndata: ${error(id)}\n\n`),
    'sse-event-custom-then-ok': (id) => stream(`event: ping\ndata: x\n\n${event(result(id))}`),
    'sse-unterminated': (id) => stream(`data: ${result(id)}\n`),
    'sse-batch': (id) => stream(event(`[${result(id)}]`)),
    'sse-unknown-notif-then-ok': (id) =>
        stream(event('{"jsonrpc":"2.0","method":"notifications/xyz"}') + event(result(id))),
    'sse-ok-extra-top': (id) => stream(event(result(id, ',"x":1'))),
    'sse-reset': () => ({ ...stream(': x\n\n'), cut: true }),
};

/** The answer of each case, by the case's name. */
export const ANSWERS = { ...sound, ...members, ...bodies, ...types, ...statuses, ...streams };

/** The names of the cases, in the order of the tables. */
export const CASES = Object.keys(ANSWERS);
