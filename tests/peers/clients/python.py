"""Calls every case of the hostile server with a client of the Python SDK.

    BASE=http://127.0.0.1:PORT python python.py v1 legacy|v2 legacy|v2 modern CASE...

Prints one JSON line a case, in the order given: what the caller saw of the answer, and whether the
session could still be used afterwards (`"session": "alive"`). Each line of the SDK lives in its own
virtual environment.
"""

import asyncio
import json
import logging
import os
import sys
import time

CALL_SECONDS_MAX = 2.5
# Covers the handshake and the call after the call; the client has no time-out of its own.
CASE_SECONDS_MAX = 8
# A call that waits for its time-out costs the group that long, so many wait together.
CALLS_AT_ONCE = 28

# How errors begin that the client makes up, although they look like those that a server sends.
MADE_BY_CLIENT = (
    "Connection closed",
    "Failed to parse",
    "Not Found",
    "SSE stream ended",
    "Server returned an error response",
    "Session terminated",
    "Unexpected content type",
    "server answered a request with",
)

LINE, ERA, *CASES = sys.argv[1:]
BASE = os.environ["BASE"]

# The SDK reports broken answers as log lines, and here nearly all are broken.
logging.disable(logging.CRITICAL)


class Seen:
    """What one caller saw."""

    def __init__(self):
        self.is_connected = False
        self.call = None
        self.session = "lost"

    async def use(self, session):
        self.is_connected = True
        try:
            await asyncio.wait_for(session.call_tool("t", {}), CALL_SECONDS_MAX)
            self.call = {"outcome": "delivered"}
        except Exception as error:
            self.call = judge(error)
        try:
            await asyncio.wait_for(session.list_tools(), CALL_SECONDS_MAX)
            self.session = "alive"
        except Exception:
            pass

    def end_with(self, error):
        """Takes in an error that ended the whole session."""
        if not self.is_connected:
            self.call = {"outcome": "connect-failed", "message": str(innermost(error))}
        elif self.call is None:
            self.call = judge(error)


async def use_v1(url, seen):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as (reader, writer, _):
        async with ClientSession(reader, writer) as session:
            await session.initialize()
            await seen.use(session)


async def use_v2(url, seen):
    from mcp import Client

    async with Client(url, mode="legacy" if ERA == "legacy" else "auto") as client:
        await seen.use(client)


def innermost(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def judge(error):
    """Tells an error that the server sent from one that the client made up."""
    cause = innermost(error)
    message = (str(cause) or type(cause).__name__).splitlines()[0]
    code = getattr(getattr(cause, "error", None), "code", None)
    if isinstance(cause, TimeoutError):
        outcome = "hang"
    elif code is None or message.startswith(MADE_BY_CLIENT):
        outcome = "rejected"
    else:
        outcome = "error"
    return {"outcome": outcome, "code": code, "message": message}


async def run_case(name):
    use = use_v1 if LINE == "v1" else use_v2
    seen = Seen()
    started = time.monotonic()
    try:
        await asyncio.wait_for(use(f"{BASE}/{name}/mcp", seen), CASE_SECONDS_MAX)
    except BaseException as error:
        seen.end_with(error)
    elapsed = round((time.monotonic() - started) * 1000)
    return {"case": name, **seen.call, "session": seen.session, "elapsed_ms": elapsed}


async def main():
    for first in range(0, len(CASES), CALLS_AT_ONCE):
        group = CASES[first : first + CALLS_AT_ONCE]
        for row in await asyncio.gather(*map(run_case, group)):
            print(json.dumps(row), flush=True)


asyncio.run(main())
