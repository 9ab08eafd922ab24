"""The client is known for the whole connection, even if only one captured request contains the id.

The expected result comes from the test's own clients, not from a second reader.
"""

from __future__ import annotations

import pickle
import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.capture.pairing.pairing import Hindsight, Pairing, build_paired
from flexwire.capture.reassembly.connections import CapturedFrame
from flexwire.capture.reassembly.frames import FrameColumns
from flexwire.survey.survey import AnalysisRequest
from flexwire.tables.row_filter import FRAMES, RowFilter
from tests.capture.columns.conversing import API_VERSIONS, HEARTBEAT, METADATA, heartbeat
from tests.capture.columns.test_turns import without_kernels
from tests.protocol.payloads import frame, make, request_payload, response_payload
from tests.searching import in_make_long
from tests.tables.growing import Query, grown
from tests.tables.test_reference import SMALL_RANGES, check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.capture.files.packets import Direction


BEGIN_US = 1_700_000_000_000_000


class Said(NamedTuple):
    """A frame of a connection, and the client id in its row."""

    connection: int
    direction: Direction
    payload: bytes
    client_id: str | None


def clients(seed: int, connections: int = 8, requests: int = 40) -> list[Said]:
    """Draw parallel clients at one address, which send their client id once, always, or too early.

    Every third connection began before the capture, and every fourth client always names itself.
    """
    chance = random.Random(seed)
    waiting: dict[int, list[tuple[int, int, str | None]]] = {}
    known: dict[int, str | None] = {}
    found: list[Said] = []
    for turn in range(connections * requests):
        number = chance.randrange(connections)
        own = f"client {number}"
        asked = waiting.setdefault(number, [])
        if asked and chance.random() < 0.5:
            key, correlation_id, client_id = asked.pop(0)
            answer = metadata_answer() if key == METADATA else make("HeartbeatResponse")
            version = 9 if key == METADATA else 4
            payload = response_payload(key, version, answer, correlation_id=correlation_id)
            found.append(Said(number, "response", payload, client_id))
            continue
        is_first = number not in known
        says = number % 4 == 0 or (is_first and number % 3 != 1)
        if says:
            known[number] = own
        client_id = known.setdefault(number, None)
        named: dict[str, Any] = {"client_id": own if says else None, "correlation_id": turn}
        if chance.random() < 0.1:
            # A header with unknown tags is read by Python objects.
            named["unknown_tagged_fields"] = {5: b"tag"}
        if chance.random() < 0.3:
            key, payload = METADATA, request_payload(METADATA, 9, make("MetadataRequest"), **named)
        else:
            key, payload = HEARTBEAT, heartbeat(version=4, **named)
        asked.append((key, turn, client_id))
        found.append(Said(number, "request", payload, client_id))
    return found


def metadata_answer() -> Any:
    return make("MetadataResponse", cluster_id="east")


def frames_of(said: list[Said]) -> list[CapturedFrame]:
    counts: dict[tuple[int, str], int] = {}
    found = []
    for now, one in enumerate(said):
        index = counts[one[:2]] = counts.get(one[:2], -1) + 1
        found.append(
            CapturedFrame(
                connection=name_of(one.connection),
                direction=one.direction,
                timestamp_us=now,
                first_us=now,
                index=index,
                size=len(one.payload) + 4,
                payload=one.payload,
            )
        )
    return found


def name_of(number: int) -> str:
    return f"10.0.0.9:{50000 + number}>10.0.0.1:9092"


def write(said: list[Said], directory: Path) -> list[Path]:
    """Write a capture that consists of several files."""
    with PcapngWriter(directory, max_bytes=20_000) as writer:
        opened = {
            one: writer.open_connection(
                ("10.0.0.9", 50000 + one), ("10.0.0.1", 9092), timestamp_us=BEGIN_US
            )
            for one in sorted({one.connection for one in said})
        }
        for now, one in enumerate(said):
            opened[one.connection].send(one.direction, frame(one.payload), BEGIN_US + now)
    return sorted(directory.iterdir())


def rows_of(said: list[Said]) -> Iterator[tuple[str, str, int, str | None]]:
    """Yield the connection, direction, index and client id of each frame."""
    for one, frame_ in zip(said, frames_of(said), strict=True):
        yield frame_.connection, one.direction, frame_.index, one.client_id


@pytest.mark.parametrize("kernels", ["kernels", "objects"])
@pytest.mark.parametrize("seed", range(6))
def test_at_any_cut_a_row_has_the_client_id_that_its_connection_gave(
    seed: int, kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels == "objects":
        without_kernels(monkeypatch)
    said, chance = clients(seed), random.Random(seed)
    frames, found, at, pairing = frames_of(said), [], 0, Pairing()
    while at < len(frames):
        size = chance.choice([1, 2, 7, 60])
        chunk = FrameColumns.from_frames(frames[at : at + size], "a.pcapng")
        at += size
        rows = build_paired(chunk, pairing.read_headers(chunk), Hindsight())
        found += rows["client_id"].to_pylist()
        pairing = pickle.loads(pickle.dumps(pairing))  # noqa: S301 - this line also pickled the data
    assert found == [one.client_id for one in said]
    assert {None, "client 0", "client 2"} <= set(found)


@pytest.mark.slow
@pytest.mark.parametrize("piece_bytes", [None, *in_make_long(3_000)])
def test_ranges_and_pieces_have_the_client_ids_of_the_whole(
    piece_bytes: int | None, tmp_path: Path
) -> None:
    said = clients(11)
    how = SMALL_RANGES | {"range_bytes": 6_000, "chunk_bytes": 900}
    tables = check(write(said, tmp_path), piece_bytes=piece_bytes, **how)
    found = {
        (one["connection"], one["direction"], one["frame_index"]): one["client_id"]
        for one in tables["frames"]
    }
    assert found == {(*key, index): client for *key, index, client in rows_of(said)}
    of_messages = {one["client_id"] for one in tables["messages/HeartbeatRequest"]}
    assert of_messages == {one.client_id for one in said}


def test_where_the_request_that_said_it_was_not_captured_it_is_null(tmp_path: Path) -> None:
    files = write(clients(11), tmp_path)
    assert len(files) > 1
    tables = check(files[1:], **SMALL_RANGES)
    by_name: dict[str, set[str | None]] = {}
    for one in tables["frames"]:
        if one["outcome"] == "decoded":
            by_name.setdefault(one["connection"], set()).add(one["client_id"])
    assert by_name[name_of(2)] == {None}
    assert by_name[name_of(0)] == {"client 0"}
    assert not any(one["seen_from_start"] for one in tables["connections"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_stream_that_is_started_again_has_them_too(seed: int, tmp_path: Path) -> None:
    source, said = random.Random(seed), clients(seed + 20)
    files = write(said, tmp_path / "made")
    query: Query | None = None
    for _ in grown(source, files, tmp_path / "grown", 6):
        query = query or Query(
            tmp_path / "grown", AnalysisRequest((), chunk_bytes=900, range_bytes=6_000)
        )
        query.restart()
        query.run()
    assert query is not None
    query.run()
    found = {
        (one["connection"], one["direction"], one["frame_index"]): one["client_id"]
        for one in query.sorted()[FRAMES]
    }
    expected = {(*key, index): client for *key, index, client in rows_of(said)}
    assert found
    assert found.items() <= expected.items()


def test_a_filter_by_client_id_takes_the_requests_that_do_not_name_it(tmp_path: Path) -> None:
    said = clients(5)
    write(said, tmp_path / "made")
    wanted = RowFilter(client_ids={"client 2"})
    query = Query(tmp_path / "made", AnalysisRequest(()), wanted)
    query.run()
    rows = query.sorted()[FRAMES]
    assert {one["client_id"] for one in rows} == {"client 2"}
    assert len(rows) == sum(one.client_id == "client 2" for one in said)


def test_a_client_id_of_an_unknown_version_is_shown_if_the_connection_gave_it() -> None:
    payloads = [
        request_payload(API_VERSIONS, 3, make("ApiVersionsRequest"), client_id="a"),
        request_payload(HEARTBEAT, 77, client_id=None),
        request_payload(HEARTBEAT, 77, client_id="other"),
        request_payload(HEARTBEAT, 4, client_id=None),
        request_payload(HEARTBEAT, 4, client_id="b"),
        request_payload(HEARTBEAT, 4, client_id=None),
    ]
    chunk = FrameColumns.from_frames(
        frames_of([Said(0, "request", one, None) for one in payloads]), "a.pcapng"
    )
    rows = build_paired(chunk, Pairing().read_headers(chunk), Hindsight())
    assert rows["client_id"].to_pylist() == ["a", "a", None, "a", "b", "b"]
