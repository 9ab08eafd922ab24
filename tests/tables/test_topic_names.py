"""Of responses that name topics, equal bytes are decoded only once, with the same result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from flexwire.capture.pairing.pairing import Pairing
from flexwire.capture.reassembly.connections import CapturedFrame
from flexwire.capture.reassembly.frames import FrameColumns
from flexwire.codec import message
from flexwire.protocol import request_header_version, response_header_version
from flexwire.survey.bodies import find_topic_names
from flexwire.tables.messages import message_rows

if TYPE_CHECKING:
    import pytest

_KEY = 3
_CONNECTION = "10.0.0.9:50000>10.0.0.1:9092"


def _body(*names: str) -> bytes:
    made = message("MetadataResponse")
    topics = [
        made.MetadataResponseTopic(name=one, topic_id=UUID(int=number + 1))  # type: ignore[attr-defined]
        for number, one in enumerate(names)
    ]
    return made(topics=topics).encode(12)


def _asked(number: int, version: int) -> bytes:
    header = message("RequestHeader")(
        request_api_key=_KEY, request_api_version=version, correlation_id=number, client_id="a"
    ).encode(request_header_version(_KEY, version))
    return header + message("MetadataRequest")().encode(version)


def _told(number: int, body: bytes) -> bytes:
    header = message("ResponseHeader")(correlation_id=number)
    return header.encode(response_header_version(_KEY, 12)) + body


def _frames() -> tuple[FrameColumns, Any]:
    """Return requests and responses; the first of the last two has another version and no equal."""
    same, other = _body("orders", "paid"), _body("users")
    asked = [12, 12, 12, 12, 9]
    answers = [same, other, same, same, same, same]
    payloads = [("request", _asked(number, version)) for number, version in enumerate(asked)]
    payloads += [("response", _told(number, body)) for number, body in enumerate(answers)]
    counts = {"request": 0, "response": 0}
    frames = []
    for at, (direction, payload) in enumerate(payloads):
        frames.append(
            CapturedFrame(
                connection=_CONNECTION,
                direction=direction,  # type: ignore[arg-type]  # one of the two
                timestamp_us=at,
                first_us=at,
                index=counts[direction],
                size=len(payload) + 4,
                payload=payload,
                error=None,
                is_placed=True,
            )
        )
        counts[direction] += 1
    columns = FrameColumns.from_frames(frames, "a.pcapng")
    return columns, Pairing(show_credentials=False).read_headers(columns)


def test_each_row_says_what_it_says_alone() -> None:
    frames, headers = _frames()
    alone = {}
    for row in range(len(frames)):
        rows = np.array([row])
        for _, topics in find_topic_names(frames.take(rows), headers.take(rows), None):
            alone[row] = topics
    assert dict(find_topic_names(frames, headers, None)) == alone
    found = [sorted(name for _, name in topics) for topics in alone.values()]
    assert found == [["orders", "paid"], ["users"], ["orders", "paid"], ["orders", "paid"]]


def test_only_rows_that_are_wanted_are_read() -> None:
    frames, headers = _frames()
    wanted = np.zeros(len(frames), np.bool_)
    wanted[7] = True
    assert [row for row, _ in find_topic_names(frames, headers, None, wanted)] == [7]


def test_what_repeats_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    frames, headers = _frames()
    decoded = []

    def counted(carried: Any, *given: Any, **named: Any) -> Any:
        decoded.append(len(carried))
        return message_rows(carried, *given, **named)

    monkeypatch.setattr("flexwire.survey.bodies.message_rows", counted)
    assert len(list(find_topic_names(frames, headers, None))) == 4
    # Two different responses of version 12, and one of version 9; one without a request is not
    # read.
    assert sum(decoded) == 3
