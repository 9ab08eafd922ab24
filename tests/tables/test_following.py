"""A stream of captures returns the same rows as a batch, wherever the stream is cut.

Facts that are not yet known are exceptions: whether a request will be answered, frames that only
the end of a capture shows, and names and software that come later.
"""

from __future__ import annotations

import gzip
import random
import shutil
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.segments import SegmentColumns, SegmentReader
from flexwire.errors import CaptureError, FlexwireError
from flexwire.storage.file_search import list_captures
from flexwire.survey.follower import CaptureFollower
from flexwire.survey.ranges import decode_range
from flexwire.survey.survey import AnalysisRequest, Surveyor
from flexwire.tables.row_filter import EVERYTHING, FRAMES, RECORDS, RowFilter
from tests.capture.interleaved import SHAPES, write_capture
from tests.spark.traffic import TOPIC_ID, Traffic, made, nested, record_batch, request, response
from tests.tables.growing import Query, Rows, grown, in_order

if TYPE_CHECKING:
    from pathlib import Path

ASKED = AnalysisRequest((), chunk_bytes=5000, range_bytes=30_000)
_FRAME = ("connection", "direction", "frame_index")


def batch_rows(directory: Path) -> Rows:
    asked = AnalysisRequest(tuple(list_captures([directory])))
    kept: dict[str, bytes] = {}
    Surveyor(asked, kept.__setitem__).run()
    found: Rows = defaultdict(list)
    for table, rows in decode_range(asked, 0, kept.__getitem__):
        found[table] += rows.to_pylist()
    return {table: in_order(rows) for table, rows in found.items()}


def identity(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _FRAME)


def given_in_the_end(directory: Path) -> set[tuple[Any, ...]]:
    """Return the frames that are returned only at the end of the capture."""
    flows = Flows(endless=True)
    for item in SegmentReader([one.name for one in list_captures([directory])]):
        if isinstance(item, SegmentColumns):
            flows.push(item)
    return {
        (frames.connections[connection], "response" if is_response else "request", index)
        for frames in flows.finish()
        for connection, is_response, index in zip(
            frames.connection.tolist(),
            frames.is_response.tolist(),
            frames.index.tolist(),
            strict=True,
        )
    }


def streamed(files: list[Path], directory: Path, seed: int) -> Query:
    """Return a stream over growing files, cut and restarted at random."""
    source = random.Random(seed)
    query: Query | None = None
    for _ in grown(source, files, directory, 6):
        query = query or Query(directory, ASKED)
        if source.random() < 0.4:
            query.restart()
        limits = {"most_bytes": source.randrange(1, 9000)} if source.random() < 0.3 else {}
        query.run(**limits)
    assert query is not None
    query.run()
    return query


def at_once(directory: Path, wanted: RowFilter = EVERYTHING) -> Query:
    query = Query(directory, replace(ASKED, chunk_bytes=1 << 20, range_bytes=1 << 30), wanted)
    query.run()
    return query


def assert_cut_as_whole(name: str, seed: int, tmp_path: Path, **how: Any) -> None:
    shape = replace(SHAPES[name], compressed=0.0, **how)
    files = write_capture(tmp_path / "made", seed, shape)
    parts = streamed(files, tmp_path / "grown", seed)
    assert parts.batches > 2
    expected, got = at_once(tmp_path / "made").sorted(), parts.sorted()
    assert got.keys() == expected.keys()
    for table, rows in expected.items():
        assert got[table] == rows, table
    batch = batch_rows(tmp_path / "made")
    late = given_in_the_end(tmp_path / "made")
    assert {identity(row) for row in batch[FRAMES]} - late == set(map(identity, expected[FRAMES]))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CLEAN", "EVERYTHING"])
def test_rows_do_not_depend_on_where_a_stream_is_cut_and_started_again(
    name: str, tmp_path: Path
) -> None:
    assert_cut_as_whole(name, 1, tmp_path, connections=6)


@pytest.mark.long
@pytest.mark.slow
def test_a_batch_that_was_planned_before_a_kill_is_the_same_after_files_have_grown(
    tmp_path: Path,
) -> None:
    # A query that is killed between its plan and its commit requests the same offsets again.
    shape = replace(SHAPES["EVERYTHING"], compressed=0.0, connections=6)
    query = streamed(write_capture(tmp_path / "made", 1, shape), tmp_path / "grown", 1)
    assert query.batches > 2
    for start, end, rows in query.planned:
        query.restart()
        assert query.between(start, end) == rows


@pytest.mark.long
@pytest.mark.slow
def test_rows_are_those_of_the_batch_but_for_what_comes_later(tmp_path: Path) -> None:
    write_capture(tmp_path, 2, SHAPES["CLEAN"])
    expected, got = batch_rows(tmp_path), at_once(tmp_path).sorted()
    many = Query(tmp_path, replace(ASKED, chunk_bytes=3000, range_bytes=9000))
    end = many._follower.latest({})
    assert len(many._follower.stretches({}, end)) > 2
    many.run()
    assert many.sorted() == got
    assert given_in_the_end(tmp_path) == set()
    assert got.keys() == expected.keys()
    assert {row["answered"] for row in got[FRAMES]} == {None}
    # The name of a topic id may come later.
    known = [row for row in got[RECORDS] if row["topic"] is not None]
    assert known
    for table, names in ((FRAMES, ["answered"]), (RECORDS, ["topic"])):
        for row in (*got[table], *expected[table]):
            for name in names:
                row[name] = None
    for table, rows in expected.items():
        assert got[table] == in_order(rows), table


def test_a_row_says_what_was_known_when_its_frame_ended(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path)
    connection = traffic.connect()
    named = {"client_software_name": "made-up", "client_software_version": "1"}
    topic = nested("MetadataResponse", "MetadataResponseTopic", name="orders", topic_id=TOPIC_ID)
    exchanges = [
        ("Heartbeat", {}, {}, 4),
        ("ApiVersions", named, {}, 3),
        ("Metadata", {}, {"topics": [topic]}, 12),
    ]
    for number, (name, asked, answer, version) in enumerate(exchanges):
        ask, give = made(f"{name}Request", **asked), made(f"{name}Response", **answer)
        traffic.exchange(connection, ask, give, version, number)
    traffic.close()
    rows = at_once(tmp_path).rows[FRAMES]
    rows.sort(key=lambda row: row["time"])
    software = [row["client_software_name"] for row in rows]
    assert software == [None, None, "made-up", "made-up", "made-up", "made-up"]


def test_bytes_that_do_not_decode_are_shown_once_a_connection_is_known_for_kafka(
    tmp_path: Path,
) -> None:
    traffic = Traffic(tmp_path)
    connection = traffic.connect()
    bad = b"\0\3\0\x0c\0\0\0\2\0\5tests\0 of whatever"
    unclear = request(made("MetadataRequest"), 12, 1, client_id="")
    for part in (unclear, bad, request(made("MetadataRequest"), 12, 2), bad):
        traffic.send(connection, "request", part)
    traffic.close()
    rows = sorted(at_once(tmp_path).rows[FRAMES], key=lambda row: row["frame_index"])
    assert [row["outcome"] for row in rows] == ["decoded", "failed", "decoded", "failed"]
    assert [row["bytes"] for row in rows] == [None, None, None, bad]
    assert [row["withheld_credentials"] for row in rows] == [0, 1, 0, 0]


def test_a_topic_has_its_name_once_it_was_told(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path)
    connection = traffic.connect()
    batch = record_batch((b"key", b"value", []))
    partition = nested("FetchResponse", "PartitionData", records=batch)
    fetched = nested(
        "FetchResponse", "FetchableTopicResponse", topic_id=TOPIC_ID, partitions=[partition]
    )
    answer = made("FetchResponse", responses=[fetched])
    topic = nested("MetadataResponse", "MetadataResponseTopic", name="orders", topic_id=TOPIC_ID)
    told = made("MetadataResponse", topics=[topic])
    for number, (name, given, version) in enumerate(
        [("Fetch", answer, 13), ("Metadata", told, 12), ("Fetch", answer, 13)]
    ):
        traffic.exchange(connection, made(f"{name}Request"), given, version, number)
    traffic.close()
    wanted = RowFilter(RECORDS)
    rows = at_once(tmp_path, wanted).rows
    assert list(rows) == [RECORDS]
    assert [row["topic"] for row in sorted(rows[RECORDS], key=lambda row: row["time"])] == [
        None,
        "orders",
    ]
    assert len(at_once(tmp_path, replace(wanted, topics=["orders"])).rows[RECORDS]) == 1


def test_what_a_tap_writes_is_read_at_once_through_all_its_files(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path)
    query = Query(tmp_path, ASKED)
    query.run()
    connection = traffic.connect()
    heartbeat = made("HeartbeatRequest"), made("HeartbeatResponse")
    for number in range(6):
        traffic.send(connection, "request", request(heartbeat[0], 4, number))
        query.run()
        assert len(query.rows[FRAMES]) == 2 * number + 1
        if number % 2:
            traffic.rotate()
            query.restart()
        traffic.send(connection, "response", response(heartbeat[1], 4, number))
        query.run()
    traffic.close()
    assert len(query.offset) == 4
    rows = query.rows[FRAMES]
    assert [row["outcome"] for row in rows] == ["decoded"] * 12
    assert [row["frame_index"] for row in rows] == [number // 2 for number in range(12)]
    assert all(row["latency_us"] == 1000 for row in rows[1::2])


def test_frames_come_in_the_order_in_which_they_ended(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path)
    two = [traffic.connect(("10.0.0.8", port)) for port in (1, 2)]
    query = Query(tmp_path, ASKED)
    for number in range(8):
        for connection in two:
            traffic.exchange(
                connection, made("HeartbeatRequest"), made("HeartbeatResponse"), 4, number
            )
        if number in {0, 7}:
            query.run()
    traffic.close()
    times = [row["time"] for row in query.rows[FRAMES]]
    assert len(times) == 32
    assert times == sorted(times)


@pytest.mark.slow
def test_connections_that_ended_are_forgotten_but_for_how_many_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic = Traffic(tmp_path)
    ask, answer = made("HeartbeatRequest"), made("HeartbeatResponse")
    kept = traffic.connect(("10.0.0.8", 1))
    for number in range(24):
        traffic.exchange(kept, ask, answer, 4, number)
        # The same ports are used again after twelve minutes.
        connection = traffic.connect(("10.0.0.9", 50_000 + number % 12))
        traffic.exchange(connection, ask, answer, 4, 0)
        connection.close(timestamp_us=traffic._tick())
        traffic.now_us += 60_000_000
    traffic.close()
    expected = at_once(tmp_path).sorted()
    assert sum(row["connection"].endswith("#2") for row in expected[FRAMES]) == 24
    monkeypatch.setattr("flexwire.survey.follower_state.MANY_KEYS", 2)
    monkeypatch.setattr("flexwire.capture.reassembly.idling.IDLE_US", 300_000_000)
    query = Query(tmp_path, replace(ASKED, chunk_bytes=1000, range_bytes=1 << 30))
    query.run()
    assert query.sorted() == expected
    query = Query(tmp_path, replace(ASKED, chunk_bytes=1000))
    size = sum(one.stat().st_size for one in tmp_path.iterdir())
    while sum(query.offset.values()) < size:
        query.run(most_bytes=3000)
    assert query.sorted() == expected
    state = query._follower._state
    assert len(state._flows.connections) < 25
    assert len(state._forgotten) + len(state._flows.files) == 13


def test_connections_that_follow_one_another_on_the_same_ports_do_not_add_up(
    tmp_path: Path,
) -> None:
    traffic, sizes = Traffic(tmp_path), []
    query = Query(tmp_path, ASKED)
    for number in range(60):
        connection = traffic.connect(("10.0.0.9", 50_000))
        # This request gets no answer.
        traffic.send(connection, "request", request(made("HeartbeatRequest"), 4, number))
        connection.close(timestamp_us=traffic._tick())
        if number in {19, 59}:
            query.run()
            state = query._follower._state
            waiting = sum(map(len, state._pairing.waiting().values()))
            sizes.append((waiting, len(state._pairing._names), len(state._evidence)))
    traffic.close()
    assert len(query.rows[FRAMES]) == 60
    assert sizes[0] == sizes[1]


@pytest.mark.slow
def test_of_hosts_that_show_the_same_connections_what_comes_second_is_repeated(
    tmp_path: Path,
) -> None:
    shape = replace(SHAPES["CLEAN"], connections=2, files=1, compressed=0.0)
    (file,) = write_capture(tmp_path / "here", 1, shape)
    expected = at_once(tmp_path / "here").rows[FRAMES]
    there = tmp_path / "there" / file.name
    there.parent.mkdir()
    shutil.copy(file, there)
    query = Query(there.parent, ASKED)
    query.run()
    shutil.copy(file, there.with_name("z" + file.name))
    query.run()
    assert sorted(map(identity, query.rows[FRAMES])) == sorted(map(identity, expected))
    assert len(batch_rows(there.parent)[FRAMES]) == len(expected)


def test_the_sizes_of_all_files_are_known_whatever_a_batch_reads(tmp_path: Path) -> None:
    files = write_capture(tmp_path, 1, replace(SHAPES["CLEAN"], connections=3))
    assert CaptureFollower([tmp_path], ASKED, EVERYTHING).sizes is None
    follower = CaptureFollower([tmp_path], ASKED, EVERYTHING)
    follower.latest({}, most_bytes=1)
    assert follower.sizes == {str(one): one.stat().st_size for one in files}
    until = follower.latest({}, most_files=1)
    # A tap is writing this block.
    files[0].write_bytes(files[0].read_bytes() + b"\6\0\0\0")
    assert follower.latest(until, until=until) == until
    assert follower.sizes == {str(one): one.stat().st_size for one in files}


@pytest.mark.slow
def test_a_batch_has_no_more_than_was_asked_for_and_one_block_at_least(tmp_path: Path) -> None:
    files = write_capture(tmp_path, 1, replace(SHAPES["CLEAN"], connections=3))
    total = sum(one.stat().st_size for one in files)
    query, before = Query(tmp_path, ASKED), 0
    while (now := sum(query.offset.values())) < total:
        query.run(most_bytes=4000)
        assert now < sum(query.offset.values()) <= now + 4000
        before += 1
    assert before > total // 4000
    assert query.sorted() == at_once(tmp_path).sorted()
    query = Query(tmp_path, ASKED)
    query.run(most_bytes=1)
    assert 0 < query.offset[str(files[0])] < 100
    query.run(most_files=1)
    assert query.offset == {str(files[0]): files[0].stat().st_size}
    # The tap of this file was killed. Later bytes in other files are still read.
    files[0].write_bytes(files[0].read_bytes() + b"\6\0\0\0\xf0\0\0\0")
    query.run(most_bytes=4000)
    assert query.offset[str(files[1])] > 2000


@pytest.mark.long
@pytest.mark.slow
def test_what_is_gone_or_cut_off_before_it_was_read_is_an_error_or_left_out(
    tmp_path: Path,
) -> None:
    made_files = write_capture(tmp_path / "made", 1, SHAPES["CLEAN"])
    directory = tmp_path / "some"
    shutil.copytree(tmp_path / "made", directory)
    first, second = (directory / one.name for one in made_files)
    query = Query(directory, ASKED)
    query.run(most_files=1)
    # Files that were read may be removed, like old files.
    first.unlink()
    query.run()
    assert list(query.offset) == [str(second)]
    assert len(query.rows[FRAMES]) == len(at_once(tmp_path / "made").rows[FRAMES])
    second.write_bytes(second.read_bytes()[:-100])
    for lenient in (False, True):
        follower = CaptureFollower([directory], ASKED, EVERYTHING, fails_on_loss=not lenient)
        if lenient:
            assert follower.latest(query.offset) == query.offset
            continue
        with pytest.raises(CaptureError, match=r"bytes, but was read up to byte .*failOnDataLoss"):
            follower.latest(query.offset)
    # The state of continuing connections cannot be computed again.
    query.restart()
    second.unlink()
    with pytest.raises(CaptureError, match="no longer exists, but must be read up to byte"):
        query._follower.stretches(query.offset, query.offset)


def test_files_that_are_no_captures_fail_a_query_or_are_left_out(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no such file or directory"):
        Query(tmp_path / "nothing", ASKED).run()
    query = Query(tmp_path, ASKED)
    query.run()
    assert query.offset == {}
    (tmp_path / "a.pcap").write_bytes(b"\xd4\xc3")  # the tap has written only two bytes so far
    (file,) = write_capture(tmp_path / "made", 1, replace(SHAPES["CLEAN"], files=1))
    packed = gzip.compress(file.read_bytes())
    file.rename(tmp_path / "other")
    (tmp_path / "old.pcapng.gz").write_bytes(packed)
    query.run()
    assert query.offset == {}
    (tmp_path / "b.pcap").write_bytes(b"not a capture at all, and long")
    with pytest.raises(CaptureError, match="neither pcap nor pcapng"):
        query.run()
    query = Query(tmp_path, replace(ASKED, skip_unreadable=True))
    query.run()
    assert query.offset == {}


@pytest.mark.long
@pytest.mark.slow
def test_damaged_files_give_the_same_rows_however_they_are_cut(tmp_path: Path) -> None:
    shape = replace(SHAPES["CLEAN"], connections=2, files=1)
    (file,) = write_capture(tmp_path / "made", 3, shape)
    source, sound = random.Random(3), file.read_bytes()
    kinds = set()
    for number in range(3):
        data = bytearray(sound)
        for _ in range(3):
            data[source.randrange(100, len(data))] = source.randrange(256)
        damaged = tmp_path / f"damaged-{number}" / file.name
        damaged.parent.mkdir()
        damaged.write_bytes(data)
        try:
            expected = at_once(damaged.parent).sorted()
            got = streamed([damaged], tmp_path / f"grown-{number}", number).sorted()
            assert got == expected
        except FlexwireError as error:
            kinds.add(type(error))
    assert kinds <= {CaptureError}
