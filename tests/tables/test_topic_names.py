"""Responses with equal bytes that name topics are decoded only once, with the same result."""

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
from flexwire.tables.row_filter import RECORDS
from tests.spark.test_inside_captures import fetched
from tests.spark.traffic import TOPIC_ID, Traffic, made, nested
from tests.tables.growing import Query
from tests.tables.test_following import ASKED
from tests.tables.test_ranges import surveyed

if TYPE_CHECKING:
    from pathlib import Path

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
    """Return requests and responses. One response differs, and one request is in version 9."""
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
    # Two different responses of version 12, and one of version 9. A response without a request is
    # not read.
    assert sum(decoded) == 3


def test_of_several_names_for_an_id_the_one_that_sorts_last_is_kept(tmp_path: Path) -> None:
    """A stream and a batch keep the same name, whatever the order of a set."""
    names = [f"topic-{number:02}" for number in range(12)]
    topics = [
        nested("MetadataResponse", "MetadataResponseTopic", name=one, topic_id=TOPIC_ID)
        for one in names
    ]
    traffic = Traffic(tmp_path / "made")
    connection = traffic.connect()
    answer = made("MetadataResponse", topics=topics)
    traffic.exchange(connection, made("MetadataRequest"), answer, 12, 1)
    asked = made("FetchRequest", max_wait_ms=5, min_bytes=1)
    traffic.exchange(connection, asked, fetched([(b"k", b"v")], topic_id=TOPIC_ID), 15, 2)
    traffic.close()
    query = Query(tmp_path / "made", ASKED)
    query.run()
    assert [row["topic"] for row in query.rows[RECORDS]] == [names[-1]]
    assert [*surveyed([*traffic.directory.iterdir()])[1].topic_names.values()] == [names[-1]]
