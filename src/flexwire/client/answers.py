"""A broker's response: the message, its bytes, its error codes, and the meaning of each byte."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from flexwire.codec import message
from flexwire.protocol.credentials import withhold
from flexwire.protocol.error_codes import NO_ERROR
from flexwire.protocol.frame_explanation import FrameSection, WholeFrame, explain_frame
from flexwire.protocol.readable_json import (
    describe_error_code,
    error_code_names,
    make_readable,
    to_readable_json,
    walk_structures,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.client.notation import HostPort
    from flexwire.codec import Message
    from flexwire.errors import DecodeError
    from flexwire.protocol import RequestFrame, ResponseFrame


MOVED_CODES: Final = frozenset((5, 6, 9, 14, 15, 16, 41))
"""The codes LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, REPLICA_NOT_AVAILABLE and NOT_CONTROLLER,
and three codes about coordinators. They mean that another broker can answer, or that the same
broker can answer later.
"""


class ErrorField(NamedTuple):
    """An error code in an answer: its path in the JSON form, the code, and Kafka's name for it."""

    path: str
    code: int
    name: str

    def __str__(self) -> str:
        return f"{self.path}: {self.code} {self.name}"


class FramePayload(NamedTuple):
    """The payload of a frame, and the position at which its body begins."""

    payload: bytes
    body_offset: int


@dataclass(frozen=True, slots=True, repr=False)
class BrokerAnswer:
    """A request that was sent, and its response, or None if no response is expected (acks 0).

    ``response_version`` is the version of the request, or 0 if the broker does not support the
    version of an ApiVersions request and answers in version 0 (KIP-511).

    ``deviation`` describes how an answer differs from Kafka's format, if the caller accepts such
    answers. If Kafka's Java code can read the answer, ``response`` is the message that this code
    reads. Otherwise, ``response`` is None, and ``read`` is the JSON form of the fields before the
    deviation.
    """

    broker: HostPort
    version: int
    request: Message
    request_frame: FramePayload
    request_header: RequestFrame
    response: Message | None = None
    response_version: int = -1
    response_frame: FramePayload | None = None
    response_header: ResponseFrame | None = None
    deviation: DecodeError | None = None
    read: dict[str, Any] | None = None

    def __repr__(self) -> str:
        # Bodies may contain secrets.
        return f"<Answer to {self.api_name} v{self.version} from {self.broker}>"

    def exact(self) -> Self:
        """Return the answer. Raises `DecodeError` if the answer is not in Kafka's format."""
        if self.deviation is not None:
            raise self.deviation
        return self

    def readable(self) -> Message | None:
        """Return the response. Raises `DecodeError` if even Kafka's Java code cannot read it."""
        return self.exact().response if self.response is None else self.response

    @property
    def api_name(self) -> str:
        """The name of the request, without its suffix."""
        return self.request_header.api_name

    @property
    def error_codes(self) -> list[ErrorField]:
        """The nonzero error codes, in the order of the message."""
        return [field for field in self._codes() if field.code != NO_ERROR]

    @property
    def is_moved(self) -> bool:
        """True if an error code means that another broker can answer, or this one later."""
        return any(field.code in MOVED_CODES for field in self.error_codes)

    @property
    def did_nothing(self) -> bool:
        """True if every part of the request failed. A retry then cannot repeat an effect."""
        fields = list(self._codes())
        # The error code of a structure does not apply to the structures inside it.
        inmost = [
            field
            for field in fields
            if not any(_is_inside(outer.path, field.path) for outer in fields if outer is not field)
        ]
        return bool(inmost) and all(field.code != NO_ERROR for field in inmost)

    def to_json(self, *, names: bool = False, records: bool = False) -> dict[str, Any] | None:
        """Return the response's JSON form, or None if there is no response.

        With ``names``, each error code is followed by Kafka's name for it, as ``"_errorName"``.
        With ``records``, the records in a field are returned as JSON, in the form that
        `Broker.call` accepts.
        """
        if self.response is not None:
            return to_readable_json(
                self.response, self.response_version, names=names, records=records
            )
        if self.read is None or self._kind is None:
            return None
        form = copy.deepcopy(self.read)
        return make_readable(form, self._kind, self.response_version, names=names, records=records)

    @property
    def _kind(self) -> type[Message] | None:
        if self.response is not None:
            return type(self.response)
        header = self.response_header
        return None if header is None else message(header.message_name)

    def _codes(self) -> list[ErrorField]:
        form = self.to_json()
        if form is None or self._kind is None:
            return []
        schema = self._kind.definition.schema(self.response_version)
        return [
            ErrorField(structure.at(name), code, describe_error_code(code))
            for structure in walk_structures(form, schema)
            for name in error_code_names(structure.schema)
            if (code := structure.form.get(name)) is not None
        ]


def _is_inside(path: str, outer: str) -> bool:
    """Return whether a field is in a structure that is nested inside another field's structure."""
    structure = outer.rpartition(".")[0]
    rest = path.removeprefix(f"{structure}.") if structure else path
    return (rest != path or not structure) and "." in rest


def explain_request(answer: BrokerAnswer) -> Iterator[FrameSection]:
    """Yield the header and body of the request that was sent, without credentials."""
    payload = answer.request_frame.payload
    frame = WholeFrame(
        payload, had_length=False, header=answer.request_header, version=answer.version
    )
    return explain_frame(frame, withheld=True)


def explain_response(answer: BrokerAnswer) -> Iterator[FrameSection]:
    """Yield the header and body of the response, even if it cannot be decoded.

    The result is empty if no response came. The request's credentials, and any text that may quote
    credentials, are not shown.
    """
    header, came = answer.response_header, answer.response_frame
    if header is None or came is None:
        return
    frame = WholeFrame(
        came.payload, had_length=False, header=header, version=answer.response_version
    )
    asked_plainly = withhold(copy.deepcopy(answer.request)) == 0
    yield from explain_frame(frame, withheld=True, asked_plainly=asked_plainly)
