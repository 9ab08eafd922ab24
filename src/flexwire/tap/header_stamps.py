"""Stamp request headers: add tagged fields to requests, and change nothing else.

KIP-482 intends tagged fields in request headers for data that is not part of the request itself,
such as a trace id or the name of a proxy. Brokers accept tags that they do not know. The functions
in this module take a frame and return a frame. The tap handles sockets and files. A frame passes
unchanged unless it is certainly a request that a broker also accepts with additional tags. The
reasons for passing frames unchanged are counted.
"""

from __future__ import annotations

import copy
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.arguments import refuse, to_int
from flexwire.capture.files.comments import MOST_HEADER_TAGS
from flexwire.client.notation import split_header_tag
from flexwire.codec import message
from flexwire.errors import ArgumentError
from flexwire.protocol import SENT_FRAME_LIMIT
from flexwire.protocol.sasl import begins_raw_tokens, is_sasl
from flexwire.schema.catalog import catalog
from flexwire.wire.limits import HIGHEST_TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from flexwire.protocol import RequestFrame, Turn

LOWEST_HEADER_TAG: Final = 10_000
"""The lowest tag that a tap may add. Kafka numbers its own tags from 0, and a broker parses the
tags that it knows.
"""
MOST_VALUE_BYTES: Final = 256

# The placeholders, each with the longest text that may replace it.
_PLACEHOLDERS: Final = {
    "{client}": "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
    "{connection}": "9" * 19,
    "{trace_id}": "f" * 32,
}
_PLACEHOLDER: Final = re.compile("|".join(map(re.escape, _PLACEHOLDERS)))


@dataclass(frozen=True, slots=True)
class HeaderTag:
    """A tag, and its value for request headers.

    A text value may contain ``{client}``, the address of the client that sent a request,
    ``{connection}``, the number of its connection in this run, and ``{trace_id}``, which is 32 new
    hexadecimal digits for each request.
    """

    tag: int
    value: str | bytes

    def __post_init__(self) -> None:
        tag = to_int(self.tag, "tag")
        if not LOWEST_HEADER_TAG <= tag <= HIGHEST_TAG:
            raise refuse("tag", f"{LOWEST_HEADER_TAG} to {HIGHEST_TAG}", tag)
        if not isinstance(self.value, str | bytes):
            raise refuse("value", "text or bytes", self.value)
        try:
            most = len(self.filled(_PLACEHOLDERS))
        except UnicodeEncodeError:
            raise refuse("value", "text that UTF-8 can encode", self.value) from None
        if most > MOST_VALUE_BYTES:
            raise ArgumentError(
                f"header tag {tag}: expected a value of at most {MOST_VALUE_BYTES} bytes, got "
                f"{most}"
            )

    def filled(self, placeholders: Mapping[str, str]) -> bytes:
        """Return the bytes, with each placeholder replaced by its text."""
        if isinstance(self.value, bytes):
            return self.value
        return _PLACEHOLDER.sub(lambda match: placeholders[match[0]], self.value).encode()


def parse_header_tag(text: str) -> HeaderTag:
    r"""Parse a string such as "10042=text" or "10042=hex:00ff"; raises `ArgumentError`.

    >>> parse_header_tag("10042=from {client}"), parse_header_tag("10043=hex:00ff").value
    (HeaderTag(tag=10042, value='from {client}'), b'\x00\xff')
    """
    return HeaderTag(*split_header_tag(text))


class StampConfig:
    """The tags to add to request headers, on all connections.

    Each tag may occur only once, and must not be defined by any release. ``limit`` is the largest
    size of a request that brokers accept (``socket.request.max.bytes``, by default 100 MiB). Raises
    `ArgumentError` for invalid tags.
    """

    def __init__(self, tags: Iterable[HeaderTag], limit: int | None = None) -> None:
        self.tags = tuple(sorted(tags, key=lambda tag: tag.tag))
        self.limit = SENT_FRAME_LIMIT if limit is None else to_int(limit, "limit", least=1)
        if len(self.tags) > MOST_HEADER_TAGS:
            raise refuse("header tags", f"at most {MOST_HEADER_TAGS}", len(self.tags))
        numbers = {tag.tag for tag in self.tags}
        if len(numbers) < len(self.tags):
            raise refuse("header tags", "each tag once", [tag.tag for tag in self.tags])
        if defined := numbers & _defined_tags():
            raise ArgumentError(
                f"header tag {min(defined)} is defined by Kafka, and a broker would parse the value"
            )


def _new_trace_id() -> str:
    return secrets.token_hex(16)


def _defined_tags() -> set[int]:
    """Return the tags that are defined in any version of the request header."""
    header = message("RequestHeader")
    versions = catalog().entry(header.__name__).versions
    schemas = [header.definition.schema(version) for version in versions]
    return {tag for schema in schemas for tag in (*schema.tagged, *schema.refused_tags)}


class StampedRequest(NamedTuple):
    """A request as the tap forwards it.

    ``added`` contains the tagged fields that the client did not send. If no field was added,
    ``payload`` is unchanged, and ``reason`` is the name of a count in `TapStatistics`.
    """

    payload: bytes
    added: Mapping[int, bytes]
    reason: str | None = None


class Stamper:
    """Stamps the requests of one connection.

    ``client`` is the client's address, and ``number`` is the connection's number. ``new_trace_id``
    returns 32 digits.
    """

    def __init__(
        self,
        stamping: StampConfig,
        client: str,
        number: int,
        *,
        new_trace_id: Callable[[], str] = _new_trace_id,
    ) -> None:
        self._stamping = stamping
        self._placeholders = {"{client}": client, "{connection}": str(number)}
        self._new_trace_id = new_trace_id
        # True if any later frame may be a token, even if it decodes as a request.
        self._is_over = False

    def stamp(self, payload: bytes, turn: Turn) -> StampedRequest:
        """Stamp a frame of the client. ``turn`` is the frame's role in the conversation.

        If a frame is not certainly a request, it passes unchanged, and so do all later frames.
        """
        request = turn.request
        if request is None or turn.kind != "request" or begins_raw_tokens(request):
            self._is_over = True
        if self._is_over or request is None or is_sasl(request):
            return StampedRequest(payload, {}, "unstamped_sasl")
        # For an unreleased version, a broker does not read tags.
        if not _has_tags(request):
            return StampedRequest(payload, {}, "unstamped_not_flexible")
        fields: Any = request.header
        if any(
            header_tag.tag in fields.unknown_tagged_fields for header_tag in self._stamping.tags
        ):
            return StampedRequest(payload, {}, "unstamped_tag_taken")
        added = self._added()
        header = copy.copy(fields)
        header.unknown_tagged_fields = fields.unknown_tagged_fields | added
        # A header that was read strictly is written unchanged, except for the tag section.
        head = header.encode(request.header_version)
        if len(head) + len(payload) - request.body_offset > self._stamping.limit:
            return StampedRequest(payload, {}, "unstamped_too_large")
        return StampedRequest(head + payload[request.body_offset :], added)

    def _added(self) -> dict[int, bytes]:
        values = self._placeholders | {"{trace_id}": self._new_trace_id()}
        return {header_tag.tag: header_tag.filled(values) for header_tag in self._stamping.tags}


def _has_tags(request: RequestFrame) -> bool:
    return type(request.header).definition.schema(request.header_version).flexible
