"""Holds a whole conversation with each of some servers, using a client of the Python SDK.

    python session.py v1 legacy|v2 legacy|v2 modern NAME=URL...

Prints what it saw as `session.mjs` does, which says more. Each line of the SDK lives in its own
virtual environment.
"""

import asyncio
import contextlib
import json
import logging
import pathlib
import sys
import time
import warnings

WAIT_SECONDS_MAX = 10
TRIGGER_EVERY_SECONDS = 0.2

LINE, ERA, *TARGETS = sys.argv[1:]
CALLS = json.loads(pathlib.Path(__file__).with_name("calls.json").read_text())

logging.disable(logging.CRITICAL)
# What is deprecated is in use, so it is tested.
warnings.simplefilter("ignore")

if LINE == "v1":
    import httpx
    from mcp import ClientSession, McpError as ServerError, types
    from mcp.client.streamable_http import streamablehttp_client
else:
    import httpx2 as httpx
    import mcp_types as types
    from mcp import Client, MCPError as ServerError
    from mcp.client.streamable_http import streamable_http_client


class Conversation:
    """One client's side: answers what it is asked and tells what it sees."""

    def __init__(self, tell):
        self.tell = tell
        self.announced = False
        self.session_id = None

    async def answer_sampling(self, _context, _params):
        self.tell("asked sampling/createMessage")
        content = types.TextContent(type="text", text="a test")
        return types.CreateMessageResult(model="none", role="assistant", content=content)

    async def answer_elicitation(self, _context, params):
        self.tell("asked elicitation/create")
        schema = getattr(params, "requested_schema", None) or params.requestedSchema
        # Accepts, with a value for each property that must have one.
        content = {
            key: True if schema["properties"][key].get("type") == "boolean" else "a test"
            for key in schema.get("required", [])
        }
        return types.ElicitResult(action="accept", content=content)

    async def take_log(self, params):
        self.tell(f"logged {json.dumps(params.data)}")

    async def take_message(self, message):
        method = getattr(getattr(message, "root", message), "method", None)
        if method == "notifications/tools/list_changed":
            self.announced = True

    def handlers(self):
        return {
            "sampling_callback": self.answer_sampling,
            "elicitation_callback": self.answer_elicitation,
            "logging_callback": self.take_log,
            "message_handler": self.take_message,
        }


@contextlib.asynccontextmanager
async def connect_v1(url, conversation):
    async with streamablehttp_client(url) as (reader, writer, session_id):
        async with ClientSession(reader, writer, **conversation.handlers()) as session:
            greeting = await session.initialize()
            conversation.tell(f"connected to {greeting.serverInfo.name}, legacy")
            yield session
            conversation.session_id = session_id()


@contextlib.asynccontextmanager
async def connect_v2(url, conversation):
    async def note_session(response):
        found = response.headers.get("mcp-session-id")
        conversation.session_id = found or conversation.session_id

    async with httpx.AsyncClient(timeout=30, event_hooks={"response": [note_session]}) as http:
        transport = streamable_http_client(url, http_client=http)
        mode = "legacy" if ERA == "legacy" else "auto"
        async with Client(transport, mode=mode, **conversation.handlers()) as client:
            spoken = "modern" if is_modern(client) else "legacy"
            conversation.tell(f"connected to {client.server_info.name}, {spoken}")
            yield client


def is_modern(client):
    return getattr(client, "protocol_version", "") >= "2026"


async def call_all(client, tools, tell):
    for name, arguments in CALLS.items():
        if name not in tools:
            continue
        steps = []

        async def take_progress(progress, total, _message):
            steps.append(f"{progress:g}/{total or 0:g}")

        try:
            result = await client.call_tool(name, arguments, progress_callback=take_progress)
        except ServerError as refusal:
            tell(f"called {name}: refused {refusal.error.code} {refusal.error.message}")
            continue
        failed = getattr(result, "is_error", None) or getattr(result, "isError", False)
        content = [
            block.model_dump(mode="json", by_alias=True, exclude_none=True)
            for block in result.content
        ]
        tell(f"called {name}: {'failed' if failed else 'done'} {json.dumps(content)}")
        if steps:
            tell(f"progress of {name}: {' '.join(steps)}")


async def await_announcement(client, conversation):
    """Has the server announce another list of tools until the announcement arrives."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    async with contextlib.AsyncExitStack() as stack:
        if is_modern(client):
            await stack.enter_async_context(client.listen(tools_list_changed=True))
        # Again and again: the stream that GET opens may not stand yet when the first is sent.
        while not conversation.announced and time.monotonic() < deadline:
            await client.call_tool("test_trigger_tool_change", {})
            await asyncio.sleep(TRIGGER_EVERY_SECONDS)
    told = "was told" if conversation.announced else "was NOT told"
    conversation.tell(f"{told} of another list of tools")


async def tell_session_end(url, conversation):
    """Looks whether the session can still be used, now that the client has ended it."""
    if conversation.session_id is None:
        conversation.tell("had no session")
        return
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-session-id": conversation.session_id,
    }
    async with httpx.AsyncClient() as http:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        status = (await http.post(url, headers=headers, json=message)).status_code
    # The rule is 404, yet some servers say 400.
    ended = status in (400, 404)
    conversation.tell("ended the session" if ended else f"STILL HAS a session: {status}")


async def converse(url, tell):
    conversation = Conversation(tell)
    connect = connect_v1 if LINE == "v1" else connect_v2
    async with connect(url, conversation) as client:
        tools = sorted(tool.name for tool in (await client.list_tools()).tools)
        tell(f"listed {' '.join(tools)}")
        await call_all(client, tools, tell)
        if "resumptions" in tools:
            tell((await client.call_tool("resumptions", {})).content[0].text)
        if "test_trigger_tool_change" in tools:
            await await_announcement(client, conversation)
    await tell_session_end(url, conversation)


async def main():
    said = []
    for target in TARGETS:
        name, url = target.split("=", 1)
        try:
            async with asyncio.timeout(3 * WAIT_SECONDS_MAX):
                await converse(url, lambda what: said.append(f"{name}\t{what}"))
        except BaseException:
            print(f"in the conversation with {name}:", file=sys.stderr)
            raise
    print("\n".join(sorted(said)))


asyncio.run(main())
