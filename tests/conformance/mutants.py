"""A proxy that plants deviations in a broker's responses. A seed determines the deviations.

The proxy finds a case by its correlation id, and does not know how the case is judged.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.codec import message
from flexwire.conformance import Case, CaseExpectation, Kind, rules
from flexwire.errors import FrameError
from flexwire.protocol import FrameSplitter, parse_response, response_header_version
from flexwire.protocol.error_responses import set_errors
from flexwire.protocol.headers import parse_correlation_id
from tests.conformance.brokers import SILENCE, with_correlation_id
from tests.net.answering import served
from tests.protocol.payloads import frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flexwire.conformance import ConformanceRule

CHUNK_BYTES = 65536
OF_KIND = {
    Kind.PLAIN: rules.ANSWERED,
    Kind.BODY_TAGS: rules.TAGS,
    Kind.HEADER_TAGS: rules.TAGS,
    Kind.NULL_CLIENT_ID: rules.CLIENT_ID,
    Kind.EMPTY: rules.LISTS,
    Kind.MANY: rules.LISTS,
}
INVALID_REQUEST = 42


class Mutation(NamedTuple):
    """A change to a response's payload, and the rules that may report this change.

    ``alter`` returns the bytes to send, `SILENCE`, None to close, or raises `Impossible`. The
    payload is None if the broker closes.
    """

    words: str
    alter: Callable[[Case, bytes | None], bytes | None]
    broken: Callable[[Case], set[ConformanceRule]]
    fits: Callable[[Case], bool]
    is_slow: bool = False
    """True if no response arrives, or only an incomplete one."""


class Impossible(Exception):  # noqa: N818 - only these tests use the exception
    """The error for a response in which there is no place for the mutation."""


def taken(case: Case) -> bool:
    """Return whether a broker must accept the request."""
    return case.expected is CaseExpectation.TAKEN


def _body(case: Case, payload: bytes) -> tuple[bytes, Any]:
    """Return the header of a response, and its body."""
    found = parse_response(payload, case.api_key, case.version)
    body = message(found.message_name).decode(payload[found.body_offset :], case.version)
    return payload[: found.body_offset], body


def _sound(payload: bytes | None) -> bytes:
    if payload is None:
        raise Impossible
    return payload


def other_id(_: Case, payload: bytes | None) -> bytes:
    return frame(with_correlation_id(_sound(payload), -1))


def short_id(_: Case, payload: bytes | None) -> bytes:
    return frame(b"\0\0" + _sound(payload)[2:])


def longer(_: Case, payload: bytes | None) -> bytes:
    return frame(_sound(payload) + b"\0")


def shorter(_: Case, payload: bytes | None) -> bytes:
    return frame(_sound(payload)[:-1])


def other_header(case: Case, payload: bytes | None) -> bytes:
    has_tags = response_header_version(case.api_key, case.version)
    sound = _sound(payload)
    return frame(sound[:4] + (sound[5:] if has_tags else b"\0" + sound[4:]))


def closes(_: Case, __: bytes | None) -> None:
    return None


def silent(_: Case, __: bytes | None) -> bytes:
    return SILENCE


def huge(_: Case, payload: bytes | None) -> bytes:
    return b"\x7f\xff\xff\xff" + _sound(payload)


def cut_frame(_: Case, payload: bytes | None) -> bytes:
    return frame(_sound(payload))[:-1]


def nameless(case: Case, payload: bytes | None) -> bytes:
    header, _ = _body(case, _sound(payload))
    empty = message(f"{case.api_name}Response")()
    return frame(header + empty.encode(case.version))


def invalid(case: Case, payload: bytes | None) -> bytes:
    header, body = _body(case, _sound(payload))
    if not set_errors(body, case.version, INVALID_REQUEST):
        raise Impossible
    return frame(header + body.encode(case.version))


def without_error(_: Case, payload: bytes | None) -> bytes:
    sound = _sound(payload)
    return frame(sound[:4] + b"\0\0" + sound[6:])


def answered(case: Case, payload: bytes | None) -> bytes:
    if payload is not None:
        raise Impossible
    return frame(case.correlation_id.to_bytes(4, "big") + bytes(8))


MUTATIONS = (
    Mutation("another correlation id", other_id, lambda _: {rules.CORRELATION_ID}, taken),
    Mutation("two bytes of the correlation id", short_id, lambda _: {rules.CORRELATION_ID}, taken),
    # With the other header, one byte more or less, or a response of zeros, may be valid.
    Mutation("a byte too many", longer, lambda _: {rules.END, rules.RESPONSE_HEADER}, taken),
    Mutation("a byte too few", shorter, lambda _: {rules.BODY, rules.RESPONSE_HEADER}, taken),
    Mutation("the other header", other_header, lambda _: {rules.RESPONSE_HEADER}, taken),
    Mutation("closes", closes, lambda case: {OF_KIND[case.kind]}, taken),
    Mutation("is silent", silent, lambda case: {OF_KIND[case.kind]}, taken, is_slow=True),
    Mutation("a huge length", huge, lambda _: {rules.FRAME}, taken),
    Mutation("a frame cut", cut_frame, lambda case: {OF_KIND[case.kind]}, taken, is_slow=True),
    Mutation(
        "names are left out",
        nameless,
        lambda _: {rules.ECHO},
        lambda case: taken(case) and bool(case.asked) and case.api_name == "Metadata",
    ),
    Mutation(
        "an error because of tags",
        invalid,
        lambda _: {rules.TAGS},
        # The plain request may have changed something, so a different error code proves nothing.
        lambda case: (
            taken(case) and case.kind in {Kind.BODY_TAGS, Kind.HEADER_TAGS} and not case.writes
        ),
    ),
    Mutation(
        "a fallback without its error",
        without_error,
        lambda _: {rules.FALLBACK},
        lambda case: case.expected is CaseExpectation.FALLEN_BACK,
    ),
    Mutation(
        "an answer in a version that is not offered",
        answered,
        lambda _: {rules.REFUSED},
        lambda case: case.expected is CaseExpectation.REFUSED and case.kind is Kind.UNOFFERED,
    ),
    Mutation(
        "an answer to a damaged request",
        answered,
        lambda _: {rules.DAMAGED},
        lambda case: (
            case.expected is CaseExpectation.REFUSED
            and case.kind is Kind.HOSTILE
            and not case.damage.startswith("a frame of")
        ),
    ),
)


class Mutant(NamedTuple):
    """A mutation of the response to one case."""

    case: Case
    mutation: Mutation

    @property
    def words(self) -> str:
        """The planted mutation and its position."""
        return f"{self.case.name}: {self.mutation.words}"


def draw(cases: Sequence[Case], seed: int, count: int) -> list[Mutant]:
    """Return mutants: each mutation that fits any case in turn, each with a random case."""
    source = random.Random(seed)
    fitting = [one for one in MUTATIONS if any(map(one.fits, cases))]
    found = []
    for number in range(count):
        mutation = fitting[(seed + number) % len(fitting)]
        found.append(Mutant(source.choice([*filter(mutation.fits, cases)]), mutation))
    return found


class _Proxy:
    """Pass bytes on, except the response to the request with one correlation id."""

    def __init__(self, address: str, mutant: Mutant | None) -> None:
        self._address = address
        self._mutant = mutant
        self.planted = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self._address.split(":")
        upstream, onward = await asyncio.open_connection(host, int(port))
        with closing(onward):
            asked: set[int] = set()
            requests = asyncio.create_task(self._requests(reader, onward, asked))
            try:
                await self._responses(upstream, writer, asked)
            finally:
                requests.cancel()
                await asyncio.gather(requests, return_exceptions=True)

    async def _requests(
        self, reader: asyncio.StreamReader, onward: asyncio.StreamWriter, asked: set[int]
    ) -> None:
        while data := await reader.read(CHUNK_BYTES):
            # A client waits for each answer, so the arriving bytes are one request, or no frame at
            # all.
            asked.add(int.from_bytes(data[8:12], "big", signed=True))
            onward.write(data)
            await onward.drain()
        onward.write_eof()

    async def _responses(
        self, upstream: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: set[int]
    ) -> None:
        splitter = FrameSplitter()
        with suppress(ConnectionError, FrameError):
            while data := await upstream.read(CHUNK_BYTES):
                for payload in splitter.feed(data):
                    sent = self._altered(parse_correlation_id(payload), payload)
                    if sent is None:
                        return
                    writer.write(sent)
                    await writer.drain()
        mutant = self._mutant
        if mutant is not None and mutant.case.correlation_id in asked:
            sent = self._altered(mutant.case.correlation_id, None)
            writer.write(sent or b"")
            await writer.drain()

    def _altered(self, correlation_id: int, payload: bytes | None) -> bytes | None:
        mutant = self._mutant
        if mutant is not None and correlation_id == mutant.case.correlation_id:
            try:
                sent = mutant.mutation.alter(mutant.case, payload)
            except Impossible:
                pass
            else:
                self.planted += 1
                return sent
        return None if payload is None else frame(payload)


@contextmanager
def mutated(address: str, mutant: Mutant | None) -> Iterator[tuple[str, _Proxy]]:
    """Serve a proxy before a broker; yield its address and the proxy."""
    proxy = _Proxy(address, mutant)
    with served(proxy) as own:
        yield str(own), proxy
