"""What the servers on both lines of the Python SDK share: where they listen, and what they keep."""

import socket
import sys

import uvicorn

ONLY_JSON = "--json" in sys.argv[1:]
RECONNECT_MS = 200


class EventLog:
    """Events of all streams, in the order they were sent, so that a cut stream can be resumed."""

    def __init__(self):
        self.events = []
        self.resumptions = 0

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events) - 1)

    async def replay_events_after(self, last_event_id, send_callback):
        from mcp.server.streamable_http import EventMessage

        self.resumptions += 1
        last = int(last_event_id)
        stream_id = self.events[last][0]
        for index in range(last + 1, len(self.events)):
            stream, message = self.events[index]
            # The event that opens a stream has an id and no message.
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(index)))
        return stream_id


def serve(app):
    """Serves `app` on a free port of loopback until the process is ended."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    print(f"listening on http://127.0.0.1:{port}/mcp", flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])
