"""The rows of frames equal the reference's rows, which are made one by one."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from flexwire.capture.pairing.rows import PAIRED
from flexwire.capture.pairing.state import FAILED
from flexwire.tables.frames import (
    BODY_OUTCOMES,
    DECODED,
    LENIENT,
    Introductions,
    connection_parties,
    frame_rows,
)
from flexwire.tables.keys import FRAME_KEY
from flexwire.tables.schema import FRAMES_TABLE
from tests.reference.tables import as_stored, frame_row

CONNECTIONS = [
    "10.0.0.9:50000>10.0.0.1:9092",
    "10.0.0.9:50000>10.0.0.1:9092#2",
    "[fe80::1]:4>[::1]:9092#12",
    "a>b>c#1",
    "neither",
]
KNOWN = Introductions(
    {CONNECTIONS[0]: ("librdkafka", "2.3.0"), CONNECTIONS[2]: ("franz-go", None)},
    {CONNECTIONS[2]: "AAAAAAAAAAAAAAAAAAAABw", CONNECTIONS[3]: "AAAAAAAAAAAAAAAAAAAACA"},
)
TAGGED = [{"tag": 7, "data": b"\1\2"}]


def paired_rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Return frames of every kind."""
    source = random.Random(seed)
    return [
        {
            "source": "a.pcap",
            "connection": source.choice(CONNECTIONS),
            "direction": source.choice(["request", "response"]),
            "frame_index": number,
            "time": 1_700_000_000_000_000 + number,
            "size": number,
            "payload": source.choice([None, b"", b"payload-%d" % number]),
            "outcome": None if has_body else source.choice([None, FAILED, "token", "not Kafka"]),
            "error": None if has_body else source.choice([None, "too short"]),
            "message": "FetchRequest" if has_body else source.choice([None, "RequestResponse"]),
            "api_key": source.choice([None, 1]),
            "api_version": source.choice([None, 12]),
            "correlation_id": source.choice([None, -5]),
            "client_id": source.choice([None, "billing"]),
            "header_version": source.choice([None, 2]),
            "body_offset": source.choice([None, 10]),
            "header_unknown_tagged_fields": source.choice([None, [], TAGGED]),
            "withheld_credentials": source.choice([0, 1]),
            "is_guarded": False,
            "answered": source.choice([None, True, False]),
            "latency_us": source.choice([None, 17]),
            "body": "FetchRequest" if has_body else None,
        }
        for number in range(count)
        for has_body in [source.random() < 0.6]
    ]


def outcome_rows(paired: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Return the outcomes of the bodies, reordered."""
    source = random.Random(seed)
    rows = [
        {
            "row": row,
            **{name: one[name] for name in FRAME_KEY},
            "header_version": source.choice([0, 1]),
            "header_unknown_tagged_fields": source.choice([[], TAGGED]),
            "body_version": source.choice([None, 3]),
            "withheld_credentials": source.choice([0, 5]),
            "error": source.choice([None, None, "trailing bytes"]),
            "bytes": source.choice([None, b"frame-%d" % row]),
        }
        for row, one in enumerate(paired)
        if one["body"] is not None
    ]
    source.shuffle(rows)
    return rows


def in_columns(paired: list[dict[str, Any]], outcomes: list[dict[str, Any]]) -> pa.RecordBatch:
    frames = pa.RecordBatch.from_pylist(paired, schema=PAIRED)
    made = frame_rows(
        frames,
        pa.RecordBatch.from_pylist(outcomes, schema=BODY_OUTCOMES),
        connection_parties(frames["connection"], KNOWN),
    )
    made.validate(full=True)
    return made


def test_the_rows_are_those_of_the_reference() -> None:
    paired = paired_rows(400, 1)
    outcomes = outcome_rows(paired, 2)
    of_row = {one["row"]: one for one in outcomes}
    made = (frame_row(one, of_row.get(row), KNOWN) for row, one in enumerate(paired))
    expected = as_stored(made, FRAMES_TABLE)
    assert in_columns(paired, outcomes).to_pylist() == expected
    assert {row["outcome"] for row in expected} >= {DECODED, LENIENT, FAILED, "token", None}


def test_every_row_stays_in_its_place() -> None:
    paired = paired_rows(50, 3)
    rows = in_columns(paired, outcome_rows(paired, 4))
    assert rows["frame_index"].to_pylist() == [one["frame_index"] for one in paired]
    decoded = [row for row in rows.to_pylist() if row["outcome"] == DECODED]
    assert decoded
    assert {row["bytes"] for row in decoded} == {None}


def test_frames_that_all_decoded_are_as_beside_one_that_did_not() -> None:
    paired = [one for one in paired_rows(80, 6) if one["body"] is not None]
    outcomes = [one | {"error": None} for one in outcome_rows(paired, 7)]
    other = next(one for one in paired_rows(80, 8) if one["body"] is None)
    beside = in_columns([*paired, other], outcomes).to_pylist()
    assert in_columns(paired, outcomes).to_pylist() == beside[:-1]
    lenient = [outcomes[0] | {"error": "trailing bytes", "body_version": 3}, *outcomes[1:]]
    row = outcomes[0]["row"]
    assert in_columns(paired, lenient).to_pylist()[row]["outcome"] == LENIENT


def test_no_frames_give_no_rows() -> None:
    assert len(in_columns([], [])) == 0
    only_tokens = [one | {"body": None} for one in paired_rows(3, 5)]
    assert len(in_columns(only_tokens, [])) == 3
