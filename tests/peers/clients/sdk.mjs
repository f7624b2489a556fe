// The client halves of the two lines of the TypeScript SDK behind one face.

/**
 * The client classes of one line, `v1` or `v2`, and three functions that the lines spell
 * differently: `callTool(client, name, args, options)`, `onRequest(client, method, answer)` and
 * `onNotification(client, method, take)`.
 */
export async function loadSdk(line) {
    return line === 'v1' ? loadV1() : loadV2();
}

/** Whether a client gave up on an answer. In 1.x servers use the code of that error as well. */
export const isTimeout = ({ code, message }) =>
    [-32001, 'REQUEST_TIMEOUT'].includes(code) && /timed out/i.test(message);

/** Whether a server sent the error, rather than the client made it up. */
export const isFromServer = (error) =>
    ['McpError', 'ProtocolError'].includes(error.constructor.name) && !isTimeout(error);

async function loadV1() {
    const types = await import('@modelcontextprotocol/sdk/types.js');
    const schemas = {
        'sampling/createMessage': types.CreateMessageRequestSchema,
        'elicitation/create': types.ElicitRequestSchema,
        'notifications/message': types.LoggingMessageNotificationSchema,
        'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
    };
    return {
        ...(await import('@modelcontextprotocol/sdk/client/index.js')),
        ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
        callTool: (client, name, args, options) =>
            client.callTool({ name, arguments: args }, undefined, options),
        onRequest: (client, method, answer) => client.setRequestHandler(schemas[method], answer),
        onNotification: (client, method, take) =>
            client.setNotificationHandler(schemas[method], take),
    };
}

async function loadV2() {
    return {
        ...(await import('@modelcontextprotocol/client')),
        callTool: (client, name, args, options) =>
            client.callTool({ name, arguments: args }, options),
        onRequest: (client, method, answer) => client.setRequestHandler(method, answer),
        onNotification: (client, method, take) => client.setNotificationHandler(method, take),
    };
}
