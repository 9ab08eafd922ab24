"""A broker that resembles Kafka 0.10 and answers only a few APIs, in old versions.

For all other APIs, the broker closes the connection. The mock cluster accepts all requests from the
demo's clients, and offers newer versions than those clients use. An audit of an old cluster's
clients requires an old broker.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from flexwire.codec import message
from flexwire.errors import CodecError, FrameError
from flexwire.protocol import FrameSplitter, read_request, response_header_version
from flexwire.schema.catalog import catalog
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from flexwire.protocol import RequestFrame

# The versions that the broker offers and reads, by API. The ApiVersions range is newer, so that
# clients can send the name of their software.
OFFERS = {
    "Produce": Versions(0, 2),
    "Fetch": Versions(0, 3),
    "Metadata": Versions(0, 2),
    "OffsetFetch": Versions(1, 1),
    "SaslHandshake": Versions(0, 1),
    "ApiVersions": Versions(0, 3),
}
_MECHANISM = "GSSAPI"
_CHUNK = 65536


@asynccontextmanager
async def run_old_broker() -> AsyncIterator[tuple[str, int]]:
    """Serve on a port on 127.0.0.1, and yield the address.

    All connections are closed at the end of the block.
    """
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()
        yield host, port
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    splitter = FrameSplitter()
    with contextlib.closing(writer), contextlib.suppress(OSError, FrameError, CodecError):
        while data := await reader.read(_CHUNK):
            for payload in splitter.feed(data):
                request = read_request(payload)
                if request.api_version not in OFFERS.get(request.api_name, Versions.NONE):
                    return
                answer = _answer(request)
                writer.write(len(answer).to_bytes(4, "big") + answer)
            await writer.drain()


def _answer(request: RequestFrame) -> bytes:
    version = response_header_version(request.api_key, request.api_version)
    header = message("ResponseHeader")(correlation_id=request.correlation_id)
    body = message(f"{request.api_name}Response")(**_fields(request.api_name))
    return header.encode(version) + body.encode(request.api_version)


def _fields(api_name: str) -> dict[str, Any]:
    """Return those fields of an answer that differ from the defaults."""
    if api_name == "SaslHandshake":
        return {"mechanisms": [_MECHANISM]}
    if api_name != "ApiVersions":
        return {}
    kind: Any = message("ApiVersionsResponse")
    return {
        "api_keys": [
            kind.ApiVersion(
                api_key=catalog().entry(f"{name}Request").api_key,
                min_version=versions.lowest,
                max_version=versions.highest,
            )
            for name, versions in OFFERS.items()
        ]
    }
