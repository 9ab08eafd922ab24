"""Rehearse an upgrade: clients get the versions of another release, and no broker is changed.

The rehearsed release offers and reads fewer versions than the brokers do. The tap therefore removes
versions from the list in each ApiVersions response. If a client sends a version that the release
does not read, the tap closes its connection without a response, as brokers do. The tap adds
nothing. Brokers themselves refuse versions that they do not read.
`flexwire.protocol.audit.evidence` determines which versions a release offers and reads, and
`flexwire.tap.relay` keeps the order of responses.
"""

from __future__ import annotations

import hashlib
import logging
import struct
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from flexwire.arguments import refuse, to_int
from flexwire.capture.files.comments import MOST_CLIENT_ID, rehearsal_comment
from flexwire.codec import Message, message
from flexwire.errors import CodecError, DecodeError, FlexwireError, FrameError
from flexwire.protocol import api_name, parse_response, read_request, request_header_version
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.audit.evidence import (
    offered_versions,
    role_of,
    stable_versions,
    to_audited_releases,
)
from flexwire.protocol.error_responses import unsupported_answer
from flexwire.protocol.frames import to_frame
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.schema.catalog import catalog
from flexwire.tap.forwarding import ForwardedRequests, PassedResponse
from flexwire.tap.limits import FEWEST_IN_FLIGHT, MOST_DECODED, MOST_WALKED, beginning
from flexwire.versions import HIGHEST, Versions
from flexwire.wire.field_spans import BoundedReader, field_spans
from flexwire.wire.schema import Presence
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from flexwire.capture.files.comments import CaptureFilter
    from flexwire.protocol import RequestFrame, Turn
    from flexwire.tap.log_limit import LogLimiter
    from flexwire.tap.metrics import TapStatistics

log = logging.getLogger("flexwire.tap")

_OF: Final = 1 << 64
# The largest number of clients that are counted separately. A further client ends the rehearsal.
_MOST_CLIENTS: Final = 10_000
_MOST_NAMED: Final = 10
_HEAD: Final = struct.Struct(">hhi")
# The field in which a replica sends its own id.
_REPLICA_PATHS: Final = (("replica_id",), ("replica_state", "replica_id"))
Client = tuple[str, str | None]
"""A client: its host and its client id."""


@dataclass(frozen=True, slots=True)
class RehearsalPlan:
    """The release that the tap rehearses, for which clients, and for how long.

    ``release`` is a final release in the catalog, such as "4.4". The rehearsal applies to a
    ``share`` of all clients, chosen by address and client id. The rehearsal ends after ``seconds``,
    or when more than ``most_failed`` clients were refused. For ``seconds`` and ``most_failed``,
    None means no limit. ``read`` contains the versions of ApiVersions that the brokers read.
    `flexwire.tap.Tap` requests these versions when it starts. Raises `ArgumentError` for an invalid
    value, and `UnknownMessageError` for a release that is not in the catalog.
    """

    release: str
    _: KW_ONLY
    share: float = 1.0
    seconds: float | None = None
    most_failed: int | None = None
    read: Versions = Versions(0, 0)  # noqa: RUF009 - the value is frozen

    def __post_init__(self) -> None:
        object.__setattr__(self, "release", to_audited_releases([self.release])[0])
        if not 0 < self.share <= 1:
            raise refuse("share", "above 0 and at most 1", self.share)
        if self.seconds is not None and not self.seconds > 0:
            raise refuse("seconds", "more than 0", self.seconds)
        if self.most_failed is not None:
            to_int(self.most_failed, "most_failed", least=0)


def missing_apis(release: str, offered: Collection[int]) -> list[str]:
    """Return a release's client APIs that are missing from a broker with these api keys.

    >>> missing_apis("4.0.2", catalog().api_keys())
    []
    >>> missing_apis("4.0.2", set(catalog().api_keys()) - {68})
    ['ConsumerGroupHeartbeat']
    """
    keys = (key for key in catalog().api_keys() if key not in offered)
    return [
        api_name(key)
        for key in keys
        if offered_versions(key, release) and role_of({key}) == "client"
    ]


class Rehearsal:
    """A running rehearsal in one process: its clients, its refused clients, and its end.

    If there are several processes, all except one are ``quiet`` and do not log the end.
    """

    def __init__(self, plan: RehearsalPlan, only: CaptureFilter, *, quiet: bool = False) -> None:
        self.plan = plan
        self.over: str | None = None
        """The reason for the end of the rehearsal, or None while it is running."""
        self.failed: dict[Client, str] = {}
        """The clients that were refused, each with its first refused request."""
        self._only = only
        self._quiet = quiet

    def takes(self, host: str, client_id: str | None) -> bool:
        """Return whether the rehearsal applies to a client.

        All processes and all runs choose the same clients.
        """
        if self.over is not None or not self._only.takes_client(client_id):
            return False
        if self.plan.share == 1:
            return True
        named = repr((host, client_id)).encode()
        number = int.from_bytes(hashlib.sha256(named).digest()[:8], "big")
        return number < self.plan.share * _OF

    def fail(self, client: Client, request: str) -> None:
        """Record a client's refused request, and end the rehearsal after too many such clients."""
        if self.over is not None or client in self.failed:
            return
        self.failed[client] = request
        most = _MOST_CLIENTS if self.plan.most_failed is None else self.plan.most_failed
        if len(self.failed) > min(most, _MOST_CLIENTS):
            self.end(f"more than {min(most, _MOST_CLIENTS):,} clients failed")

    def end(self, reason: str) -> None:
        """End the rehearsal, so that all later requests pass. Calling this again has no effect."""
        if self.over is not None:
            return
        self.over = reason
        if self._quiet:
            return
        named = [
            f"{client_id or ''!r} ({host}) by {request}"
            for (host, client_id), request in self.failed.items()
        ][:_MOST_NAMED]
        more = ", …" if len(self.failed) > _MOST_NAMED else ""
        log.warning(
            "the rehearsal of %s has ended: %s; clients that failed: %d%s",
            self.plan.release,
            reason,
            len(self.failed),
            f": {', '.join(named)}{more}" if named else "",
        )


Did = Literal["narrowed", "sent on", "unsupported", "closed"]
"""What the tap did with a request.

The tap removed versions from the response, forwarded the request in the broker's version, answered
that the version is unsupported, or closed the connection.
"""


class RehearsingForwarder:
    """Forward requests when they are complete, unless the rehearsed release would refuse them."""

    holds = True

    def __init__(
        self, rehearsal: Rehearsal, host: str, statistics: TapStatistics, saying: LogLimiter
    ) -> None:
        self._rehearsal = rehearsal
        self._release = rehearsal.plan.release
        self._host = host
        self._statistics = statistics
        self._saying = saying
        self._is_closed = False
        # The highest version of each API that was sent on the connection.
        self._sent: dict[int, int] = {}
        # The versions of each ApiVersions request, by pair: the client's version, and the forwarded
        # version.
        self._asked: dict[int, tuple[int, int]] = {}

    def at_once(self, data: bytes) -> bytes:  # noqa: ARG002  # `Forwarder` requires this argument
        """Return nothing, because an incomplete frame may be a request to refuse."""
        return b""

    def requests(self, payloads: Sequence[bytes], turns: Sequence[Turn]) -> ForwardedRequests:
        """Return the bytes to forward, and the tap's own responses to other requests."""
        outgoing: list[bytes] = []
        comments: list[bytes] = []
        answers: dict[int, bytes | None] = {}
        for number, (payload, turn) in enumerate(zip(payloads, turns, strict=True)):
            comments.append(b"")
            if self._is_closed:
                continue
            request = turn.request if turn.kind == "request" else None
            did = None if turn.kind == "token" else self._decide(request, payload)
            passed: bytes | None = payload
            if did == "sent on" and request is not None:
                passed = self._sent_on(request, payload)
                did = "closed" if passed is None else did
            if did == "unsupported":
                answers[number] = self._unsupported(payload)
            elif did == "closed":
                answers[number] = None
                self._close(request)
            elif passed is not None:
                outgoing.append(to_frame(passed))
                if did is not None and request is not None and turn.pair is not None:
                    self._await(turn.pair, request)
            comments[-1] = self._noted(did, payload, request)
        return ForwardedRequests(b"".join(outgoing), comments, answers)

    def beginning(self, data: bytes) -> ForwardedRequests:
        """Return the bytes to forward for a request that is not kept completely."""
        if self._is_closed:
            return ForwardedRequests()
        payload = data[PREFIX_LENGTH:]
        try:
            request = read_request(beginning(payload))
        except (FrameError, CodecError):
            return ForwardedRequests(data)
        # An ApiVersions request is never this long. The body of such a long request cannot be
        # read, so the request is refused.
        if self._decide(request, payload) not in {"closed", "sent on"}:
            return ForwardedRequests(data)
        self._close(request)
        self._noted("closed", payload, request)
        return ForwardedRequests(answers={0: None})

    def rest(self, data: bytes) -> bytes:
        """Return the bytes unchanged, until the connection is to be closed."""
        return b"" if self._is_closed else data

    def alters(self, request: RequestFrame) -> bool:
        """Return whether the response to this kind of request may lose versions."""
        return bool(self._asked) and request.message_name == NEGOTIATES

    def response(self, payload: bytes, turn: Turn) -> PassedResponse:
        """Return the response without the versions that the release does not offer."""
        asked = self._asked.pop(turn.pair, None) if turn.pair is not None else None
        if asked is None:
            return PassedResponse(payload)
        try:
            return PassedResponse(narrow(payload, *asked, self._release))
        except FlexwireError as error:
            self._rehearsal.end(f"a broker's list of versions cannot be read: {error}")
            return PassedResponse(payload)

    def _decide(self, request: RequestFrame | None, payload: bytes) -> Did | None:
        """Return the decision about a frame, or None if it passes unchanged."""
        if request is None:
            return self._decide_unread(payload)
        self._look_for_brokers(request, payload)
        if not self._rehearsal.takes(self._host, request.client_id):
            return None
        is_read = request.api_version in stable_versions(request.api_key, self._release)
        if request.message_name != NEGOTIATES:
            return None if is_read else "closed"
        if not is_read:
            return "unsupported"
        above = request.api_version > self._rehearsal.plan.read.highest
        return "sent on" if above else "narrowed"

    def _decide_unread(self, payload: bytes) -> Did | None:
        """Decide about a frame that is not a request. Brokers answer only negative versions."""
        if len(payload) < _HEAD.size:
            return None
        api_key, version, _ = _HEAD.unpack_from(payload)
        if version >= 0 or api_key != api_key_of(NEGOTIATES):
            return None
        try:
            header, _ = message("RequestHeader").decode_prefix(
                payload[:MOST_DECODED], request_header_version(api_key, version)
            )
        except CodecError:
            return None
        fields: Any = header
        return "unsupported" if self._rehearsal.takes(self._host, fields.client_id) else None

    def _look_for_brokers(self, request: RequestFrame, payload: bytes) -> None:
        """End the rehearsal if a broker or a controller uses the connection."""
        key, version = request.api_key, request.api_version
        if self._rehearsal.over is not None or self._sent.get(key, -1) >= version:
            return
        self._sent[key] = version
        role = role_of(self._sent, is_replica=_is_replicas(request, payload), highest=self._sent)
        if role != "client":
            self._rehearsal.end(
                f"one of the clients is a {role}: {self._host} sent {request.api_name} "
                f"v{version}; let brokers connect to each other directly"
            )

    def _await(self, pair: int, request: RequestFrame) -> None:
        if len(self._asked) >= FEWEST_IN_FLIGHT:
            del self._asked[next(iter(self._asked))]
        version = request.api_version
        self._asked[pair] = version, min(version, self._rehearsal.plan.read.highest)

    def _sent_on(self, request: RequestFrame, payload: bytes) -> bytes | None:
        """Return a request in the brokers' highest version, or None if it cannot be read."""
        try:
            return translate(payload, request, self._rehearsal.plan.read.highest)
        except FlexwireError:
            return None

    def _unsupported(self, payload: bytes) -> bytes:
        api_key, _, correlation_id = _HEAD.unpack_from(payload)
        return unsupported_answer(correlation_id, api_key, offered_versions(api_key, self._release))

    def _close(self, request: RequestFrame | None) -> None:
        self._is_closed = True
        if request is None:
            return
        client_id = request.client_id and request.client_id[:MOST_CLIENT_ID]
        what = _named(request)
        self._rehearsal.fail((self._host, client_id), what)
        self._saying.say(
            logging.WARNING,
            "clients that were refused in the rehearsal",
            f"{self._host}, client id {client_id or ''!r}: connection closed, because "
            f"{self._release} does not read {what}",
        )

    def _noted(self, did: Did | None, payload: bytes, request: RequestFrame | None) -> bytes:
        """Count a decision, and return the comment about it."""
        if did is None:
            return b""
        name = f"rehearsed_{did.replace(' ', '_')}"
        setattr(self._statistics, name, getattr(self._statistics, name) + 1)
        named = () if request is None else (_named(request), request.client_id)
        return rehearsal_comment(_HEAD.unpack_from(payload)[2], self._release, did, *named)


def _named(request: RequestFrame) -> str:
    return f"{request.api_name} v{request.api_version}"


def _is_replicas(request: RequestFrame, payload: bytes) -> bool:
    """Return whether a replica sent a request, or whether the request is too long to tell."""
    kind = message(request.message_name)
    if request.api_version not in kind.entry.versions:
        return False
    schema = kind.definition.schema(request.api_version)
    present = {field.attribute for field in schema.fields if field.presence is not Presence.ABSENT}
    paths = tuple(path for path in _REPLICA_PATHS if path[0] in present)
    if not paths:
        return False
    reader = BoundedReader(payload, request.body_offset, MOST_WALKED)
    try:
        return any(span.value >= 0 for span in field_spans(schema, reader, paths))
    except DecodeError:
        return len(payload) > MOST_DECODED


def translate(payload: bytes, request: RequestFrame, version: int) -> bytes:
    """Return a request in another version of its API, with the same client and correlation id.

    Fields that the version lacks are left out. Raises `FlexwireError` if the request cannot be
    read.
    """
    if len(payload) > MOST_DECODED:
        raise FrameError(f"expected a request of at most {MOST_DECODED} bytes, got {len(payload)}")
    kind = message(request.message_name)
    body, end = kind.decode_prefix(payload, request.api_version, request.body_offset)
    written = kind(
        **{
            field.attribute: getattr(body, field.attribute)
            for field in kind.definition.schema(version).fields
            if field.presence is not Presence.ABSENT
        }
    )
    _keep_unknown(body, written)
    header_version = request_header_version(request.api_key, version)
    header = message("RequestHeader")(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=request.correlation_id,
        client_id=request.client_id,
    )
    if header_version == request.header_version:
        _keep_unknown(request.header, header)
    return header.encode(header_version) + written.encode(version) + payload[end:]


def _keep_unknown(old: Message, new: Message) -> None:
    fields_of_old: Any = old
    fields_of_new: Any = new
    fields_of_new.unknown_tagged_fields = dict(fields_of_old.unknown_tagged_fields)


def narrow(payload: bytes, version: int, sent_version: int, release: str) -> bytes:
    """Return a broker's list of versions, without those that the release does not offer.

    The list is the response to a request that arrived in ``version`` and was forwarded in
    ``sent_version``. The result is encoded in ``version``. All other bytes remain the same. Raises
    `FlexwireError` if the response cannot be read, or is not encoded the way Kafka encodes it.
    """
    frame = parse_response(beginning(payload), api_key_of(NEGOTIATES), sent_version)
    if len(payload) > MOST_DECODED:
        raise FrameError(f"a response of {len(payload)} bytes is too long")
    start, answered = frame.body_offset, frame.body_version
    body, end = message(frame.message_name).decode_prefix(payload, answered, start)
    if body.encode(answered) != payload[start:end]:
        raise FrameError("the encoding differs from Kafka's encoding")
    fields: Any = body
    fields.api_keys = [kept for offer in fields.api_keys if (kept := _narrowed(offer, release))]
    written = version if answered == sent_version else answered
    return payload[:start] + body.encode(written) + payload[end:]


def _narrowed(offer: Any, release: str) -> Any | None:
    """Return the part of an API's range that the release offers, or None if there is none."""
    if not 0 <= offer.min_version <= offer.max_version <= HIGHEST:
        return offer
    common = Versions(offer.min_version, offer.max_version) & offered_versions(
        offer.api_key, release
    )
    if not common:
        return None
    offer.min_version, offer.max_version = common.lowest, common.highest
    return offer
