"""A connection's client instance is found, whichever of its frames contains the id.

The id may be in the header of every request or only of the first (KIP-1313 can be read both ways),
in the bodies of telemetry requests, or in a broker's response (KIP-714). The expected result comes
from the test's own clients, not from a second reader.
"""

from __future__ import annotations

import random
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec
import numpy as np
import pytest

from flexwire.capture.pairing.pairing import Hindsight, Pairing
from flexwire.capture.reassembly.frames import FrameColumns
from flexwire.kernels import load_kernel
from flexwire.schema.catalog import use_catalog
from flexwire.survey.client_instances import GivenInstance, find_instances
from flexwire.survey.state import SurveyState
from flexwire.survey.survey import AnalysisRequest, RangeContext
from flexwire.tables.frames import Introductions
from flexwire.tables.row_filter import FRAMES
from flexwire.wire.varint import uuid_text
from tests.capture.columns.conversing import HEARTBEAT, heartbeat
from tests.capture.columns.test_clients import Said, frames_of, name_of, write
from tests.capture.columns.test_turns import without_kernels
from tests.protocol.payloads import make, request_payload, response_payload
from tests.schema.trunk import GET_TELEMETRY, OFFSET_DELETE, PUSH_TELEMETRY, trunk_catalog
from tests.searching import in_make_long
from tests.tables.growing import Query, grown
from tests.tables.test_reference import SMALL_RANGES, check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NONE = UUID(int=0)
# How a client names itself. "never" sends no name; "late" sends one only after some requests.
WAYS = ("always", "once", "late", "body", "broker", "never")


@pytest.fixture(scope="module", autouse=True)
def _trunk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    use_catalog(trunk_catalog(tmp_path_factory.mktemp("trunk")))
    yield
    use_catalog(None)


class Client(NamedTuple):
    """A client on its own connection."""

    number: int
    way: str
    # The number of the exchange in which a client sends its id late, or in which a broker assigns
    # it.
    late: int = 4

    @property
    def instance(self) -> UUID:
        return UUID(int=1_000 + self.number)

    @property
    def text(self) -> str | None:
        return None if self.way == "never" else uuid_text(self.instance)


def clients(count: int, late: int = 4) -> list[Client]:
    return [Client(number, WAYS[number % len(WAYS)], late) for number in range(count)]


def offset_delete(turn: int, instance: UUID, **fields: Any) -> bytes:
    header = make(
        "RequestHeader",
        request_api_key=OFFSET_DELETE,
        request_api_version=1,
        correlation_id=turn,
        client_id="a",
        client_instance_id=instance,
        **fields,
    )
    encoded: bytes = header.encode(3) + make("OffsetDeleteRequest", group_id="g").encode(1)
    return encoded


def exchange(client: Client, round_: int, turn: int, *, odd: bool) -> tuple[bytes, bytes]:
    """Return a client's request and the response to it."""
    fields = {"unknown_tagged_fields": {9: b"new"}} if odd else {}
    way, instance = client.way, client.instance
    if way in {"always", "once", "late"}:
        says = way == "always" or round_ == (client.late if way == "late" else 0)
        asked = offset_delete(turn, instance if says else NONE, **fields)
        answer = make("OffsetDeleteResponse")
        return asked, response_payload(OFFSET_DELETE, 1, answer, correlation_id=turn)
    if way == "body" and round_ % 3 == 1:
        asks = make("PushTelemetryRequest", client_instance_id=instance, metrics=b"metrics")
        answer = make("PushTelemetryResponse")
        return (
            request_payload(PUSH_TELEMETRY, 0, asks, correlation_id=turn),
            response_payload(PUSH_TELEMETRY, 0, answer, correlation_id=turn),
        )
    if way == "broker" and round_ % 3 == client.late % 3:
        # Only one response assigns an id.
        assigned = instance if round_ == client.late else NONE
        answer = make("GetTelemetrySubscriptionsResponse", client_instance_id=assigned)
        return (
            request_payload(
                GET_TELEMETRY, 0, make("GetTelemetrySubscriptionsRequest"), correlation_id=turn
            ),
            response_payload(GET_TELEMETRY, 0, answer, correlation_id=turn),
        )
    answer = make("HeartbeatResponse")
    asked = heartbeat(version=4, correlation_id=turn, **fields)
    return asked, response_payload(HEARTBEAT, 4, answer, correlation_id=turn)


def conversations(seed: int, count: int = 12, rounds: int = 10, late: int = 4) -> list[Said]:
    """Draw parallel clients; each frame contains the final id of its row."""
    chance, said = random.Random(seed), []
    waiting: dict[int, list[bytes]] = {number: [] for number in range(count)}
    done = dict.fromkeys(range(count), 0)
    everyone = clients(count, late)
    turn = 0
    while done:
        client = everyone[chance.choice(list(done))]
        number = client.number
        if waiting[number] and chance.random() < 0.6:
            said.append(Said(number, "response", waiting[number].pop(0), client.text))
            continue
        if done[number] == rounds:
            said += [Said(number, "response", one, client.text) for one in waiting.pop(number)]
            del done[number]
            waiting[number] = []
            continue
        turn += 1
        asked, answer = exchange(client, done[number], turn, odd=chance.random() < 0.2)
        done[number] += 1
        said.append(Said(number, "request", asked, client.text))
        waiting[number].append(answer)
    return said


def expected_frames(said: list[Said]) -> dict[tuple[str, str, int], str | None]:
    return {
        (frame.connection, frame.direction, frame.index): one.client_id
        for frame, one in zip(frames_of(said), said, strict=True)
    }


def found_frames(rows: list[dict[str, Any]]) -> dict[tuple[str, str, int], str | None]:
    return {
        (one["connection"], one["direction"], one["frame_index"]): one["client_instance_id"]
        for one in rows
    }


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"range_bytes": 3_000, "chunk_bytes": 700}])
@pytest.mark.parametrize("kernels", ["kernels", "objects"])
def test_every_frame_and_connection_has_it(
    how: dict[str, int], kernels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels == "objects":
        without_kernels(monkeypatch)
    said = conversations(1)
    tables = check(write(said, tmp_path), **how)
    assert found_frames(tables["frames"]) == expected_frames(said)
    of_connections = {one["connection"]: one["client_instance_id"] for one in tables["connections"]}
    assert of_connections == {name_of(client.number): client.text for client in clients(12)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rounds", "late", "piece_bytes"),
    [(10, 4, 2_000), *in_make_long((60, 31, 10_000), (60, 46, 20_000))],
)
@pytest.mark.parametrize("seed", [0, *in_make_long(1)])
def test_pieces_say_the_same(
    seed: int, rounds: int, late: int, piece_bytes: int, tmp_path: Path
) -> None:
    said = conversations(seed + 10, 12 if rounds == 10 else 6, rounds, late)
    how = SMALL_RANGES | {"range_bytes": piece_bytes + 1_000, "chunk_bytes": 700}
    tables = check(write(said, tmp_path), piece_bytes=piece_bytes, **how)
    assert found_frames(tables["frames"]) == expected_frames(said)


@pytest.mark.long
def test_where_its_part_was_not_captured_it_is_null(tmp_path: Path) -> None:
    said = conversations(2, rounds=120, late=1)
    files = write(said, tmp_path)
    assert len(files) > 2
    tables = check(files[1:])
    found = {one["connection"]: one["client_instance_id"] for one in tables["connections"]}
    by_way = {client.way: found[name_of(client.number)] for client in clients(6)}
    # These clients send the id repeatedly. The other clients sent the id once.
    assert {way for way, text in by_way.items() if text is not None} == {"always", "body"}


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_knows_it_from_the_frame_on_that_gives_it(seed: int, tmp_path: Path) -> None:
    source, said = random.Random(seed), conversations(seed + 20)
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
    found = found_frames(query.sorted()[FRAMES])
    expected = expected_frames(said)
    known: dict[str, str] = {}
    for frame, one in zip(frames_of(said), said, strict=True):
        key = frame.connection, frame.direction, frame.index
        if key not in found:
            continue
        client = clients(12)[one.connection]
        if expected[key] is not None and gives(client, frame.direction, frame.index):
            known[frame.connection] = expected[key] or ""
        assert found[key] == known.get(frame.connection), (client, key)
    assert len(known) > 8
    assert len(found) > 150


def gives(client: Client, direction: str, index: int) -> bool:
    """Return whether this frame is the first one that contains the client's instance id."""
    if client.way == "broker":
        return direction == "response" and index == client.late
    first = {"always": 0, "once": 0, "late": client.late, "body": 1}
    return direction == "request" and index == first.get(client.way)


def test_the_first_id_of_a_connection_counts(tmp_path: Path) -> None:
    # Source: KIP-1313. A broker keeps the first id and refuses any other.
    ids = [UUID(int=5), UUID(int=4), UUID(int=6)]
    said = [Said(0, "request", offset_delete(one, ids[one]), None) for one in range(3)]
    tables = check(write(said, tmp_path))
    assert {one["client_instance_id"] for one in tables["frames"]} == {uuid_text(ids[0])}
    assert [one["client_instance_id"] for one in tables["connections"]] == [uuid_text(ids[0])]


def test_the_earliest_frame_counts_in_whatever_order_they_are_noted() -> None:
    given = [GivenInstance(5, False, 3, "b"), GivenInstance(4, True, 9, "c")]
    given += [GivenInstance(4, False, 9, "a"), GivenInstance(4, False, 8, "d")]
    for order in permutations(given):
        state = SurveyState(AnalysisRequest(()), lambda *_: None)
        for one in order:
            state.note_instance("a>b", one)
        assert state._instances == {"a>b": given[3]}


def test_the_first_is_that_by_time_and_in_a_stream_that_by_row() -> None:
    """If a clock goes back, a stream's rows must not depend on where the stream was cut."""
    ids = [UUID(int=5), UUID(int=4), UUID(int=6)]
    frames = frames_of([Said(0, "request", offset_delete(one, ids[one]), None) for one in range(3)])
    times = [8, 3, 5]
    moved = [
        msgspec.structs.replace(frame, timestamp_us=at, first_us=at)
        for frame, at in zip(frames, times, strict=True)
    ]
    chunk = FrameColumns.from_frames(moved, "a.pcapng")
    headers = Pairing().read_headers(chunk)

    def first(known: dict[str, GivenInstance], *, by_row: bool) -> list[str]:
        found = find_instances(chunk, headers, known, by_row=by_row)
        return [given.text for _, given in found]

    assert first({}, by_row=False) == [uuid_text(ids[1])]
    assert first({}, by_row=True) == [uuid_text(ids[0])]
    known = {name_of(0): GivenInstance(4, False, 0, "known")}
    assert first(known, by_row=False) == [uuid_text(ids[1])]
    assert first(known, by_row=True) == []
    assert first({name_of(0): GivenInstance(2, False, 0, "known")}, by_row=False) == []


def test_ranges_that_are_joined_know_the_ids_of_all() -> None:
    parts = [
        RangeContext((), None, Hindsight(), Introductions(instances={name: name.upper()}))
        for name in ("a", "b")
    ]
    assert RangeContext.joined(parts).introductions.instances == {"a": "A", "b": "B"}


def test_the_kernel_reads_the_id_as_plain() -> None:
    """The kernel reads headers whose only tag is the id. Python reads headers with other tags."""
    if load_kernel("pairing") is None:
        pytest.skip("this installation has no kernels")
    payloads = [
        offset_delete(1, UUID(int=5)),
        offset_delete(2, NONE),
        offset_delete(3, UUID(int=5), unknown_tagged_fields={9: b"new"}),
        # The field is written although it is zero.
        bytes.fromhex("002f0001000000040001610100 10".replace(" ", "")) + bytes(16) + b"\x02g\1\0",
    ]
    chunk = FrameColumns.from_frames(
        frames_of([Said(0, "request", one, None) for one in payloads]), "a.pcapng"
    )
    headers = Pairing().read_headers(chunk)
    assert set(headers.odd) == {2}
    assert headers.instance_at.tolist() == [14, 0, 0, 14]
    assert headers.header_version.tolist() == [3] * 4
    assert headers.body_offset.tolist() == [30, 12, 35, 30]
    assert [row for row, _ in find_instances(chunk, headers, {})] == [0]


@pytest.mark.parametrize("size", range(11, 30))
def test_a_header_that_breaks_off_within_the_id_is_no_plain_one(size: int) -> None:
    payload = offset_delete(1, UUID(int=5))[:size]
    chunk = FrameColumns.from_frames(frames_of([Said(0, "request", payload, None)]), "a.pcapng")
    headers = Pairing().read_headers(chunk)
    assert headers.odd[0]["outcome"] == "failed"
    assert not np.any(headers.instance_at)
    assert not list(find_instances(chunk, headers, {}))
