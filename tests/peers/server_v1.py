"""A server on the Python SDK 1.x, which knows the handshake revisions only.

    python server_v1.py [--json]

With `--json` a request is answered with one JSON body, never with an event stream. Tools are named
as in the fixture, so that the same conversation fits both.
"""

import asyncio

from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

from python_server import ONLY_JSON, RECONNECT_MS, EventLog, serve

events = EventLog()
server = FastMCP(
    "python-v1",
    json_response=ONLY_JSON,
    event_store=None if ONLY_JSON else events,
    retry_interval=RECONNECT_MS,
)


class Form(BaseModel):
    response: str


@server.tool()
async def test_simple_text() -> str:
    return "text"


@server.tool()
async def test_error_handling() -> str:
    raise ValueError("this tool always fails")


@server.tool()
async def test_tool_with_logging(context: Context) -> str:
    await context.info("started")
    await context.info("done")
    return "logged two lines"


@server.tool()
async def test_tool_with_progress(context: Context) -> str:
    for step in range(3):
        await context.report_progress(step, 2)
    return "went all the way"


@server.tool()
async def test_trigger_tool_change(context: Context) -> str:
    await context.session.send_tool_list_changed()
    return "announced"


# What needs a stream of its own.
if not ONLY_JSON:

    @server.tool()
    async def test_sampling(prompt: str, context: Context) -> str:
        content = types.TextContent(type="text", text=prompt)
        answer = await context.session.create_message(
            [types.SamplingMessage(role="user", content=content)],
            max_tokens=10,
            related_request_id=context.request_id,
        )
        return answer.content.text

    @server.tool()
    async def test_elicitation(message: str, context: Context) -> str:
        answer = await context.elicit(message, Form)
        return f"{answer.action}: {answer.data.response}"

    @server.tool()
    async def test_reconnection(context: Context) -> str:
        await context.close_sse_stream()
        await asyncio.sleep(0.1)
        return "answered after the cut"

    @server.tool()
    async def resumptions() -> str:
        resumed, events.resumptions = events.resumptions, 0
        return f"resumed {resumed} times since asked last"


serve(server.streamable_http_app())
