// The client halves of the two lines of the TypeScript SDK behind one face.

/**
 * The client classes of one line, `v1` or `v2`, and `callTool(client, name, args, options)`, whose
 * arguments the lines order differently.
 */
export async function loadSdk(line) {
    if (line === 'v1') {
        return {
            ...(await import('@modelcontextprotocol/sdk/client/index.js')),
            ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
            callTool: (client, name, args, options) =>
                client.callTool({ name, arguments: args }, undefined, options),
        };
    }
    return {
        ...(await import('@modelcontextprotocol/client')),
        callTool: (client, name, args, options) =>
            client.callTool({ name, arguments: args }, options),
    };
}
