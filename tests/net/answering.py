"""Run a broker in a thread, for blocking clients. It sends a test's responses, or defaults."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flexwire.client.broker import read_body
from flexwire.codec import message
from flexwire.schema.catalog import catalog
from tests.net.broker import PATIENCE, Broker, serving
from tests.protocol.payloads import response_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from ssl import SSLContext

    from flexwire.protocol import RequestFrame
    from flexwire.tap import HostPort
    from tests.net.broker import Handler

    Says = Callable[[dict[str, Any]], dict[str, Any] | None] | dict[str, Any] | None


@contextmanager
def served(handler: Handler, tls: SSLContext | None = None) -> Iterator[HostPort]:
    """Serve in a thread while the block runs."""
    ready: Future[tuple[HostPort, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        async with serving(handler, tls) as address:
            ready.set_result((address, asyncio.get_running_loop(), stop))
            await stop.wait()
            # Waiting connections are accepted first, because a server that closes first would drop
            # them.
            for _ in range(20):
                await asyncio.sleep(0)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    address, loop, stop = ready.result(PATIENCE)
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)


class Answers:
    """Answer requests by API name: with a JSON form, or with a function of the request.

    A field that a form leaves out has its default, as do all fields of an API without a form.
    ApiVersions offers ``offered``. None as an answer closes the connection, or sends nothing if no
    response is expected.
    """

    def __init__(self, offered: dict[str, tuple[int, int]] | None = None, **says: Says) -> None:
        self.offered = offered
        self.says = says
        self.asked: list[tuple[str, int, dict[str, Any]]] = []
        self.frames: list[bytes] = []
        self.headers: list[RequestFrame] = []

    def names(self) -> list[str]:
        """Return the APIs of the received requests, in order."""
        return [name for name, _, _ in self.asked]

    def __call__(self, request: RequestFrame, payload: bytes) -> bytes | None:
        version, name = request.api_version, request.api_name
        body = message(request.message_name).decode(payload[request.body_offset :], version)
        form = body.to_json(version)
        self.asked.append((name, version, form))
        self.frames.append(payload)
        self.headers.append(request)
        said = self.says.get(
            name, {"apiKeys": ranges(self.offered)} if name == "ApiVersions" else {}
        )
        said = said(form) if callable(said) else said
        if said is None:
            return None
        answer = read_body(message(f"{name}Response"), said, version)
        return response_payload(
            request.api_key, version, answer, correlation_id=request.correlation_id
        )


def ranges(offered: dict[str, tuple[int, int]] | None) -> list[dict[str, int]]:
    """Return the content of an ApiVersions response for these APIs, or for all APIs of
    the catalog.
    """
    if offered is None:
        entries = map(catalog().entry, catalog().names())
        offered = {
            entry.name.removesuffix("Request"): (entry.versions.lowest, entry.versions.highest)
            for entry in entries
            if entry.type.value == "request"
        }
    keys = {name: catalog().entry(f"{name}Request").api_key for name in offered}
    found = {
        key: {"apiKey": key, "minVersion": offered[name][0], "maxVersion": offered[name][1]}
        for name, key in keys.items()
        if key is not None
    }
    return list(found.values())


@contextmanager
def answering(
    answers: Answers | None = None, tls: SSLContext | None = None
) -> Iterator[tuple[str, Answers]]:
    """Yield a broker's address as a string, and its answers."""
    answers = answers or Answers()
    with served(Broker(answers), tls) as address:
        yield str(address), answers
