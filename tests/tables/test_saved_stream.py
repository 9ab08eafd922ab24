"""A stream that is killed and restarted returns the same rows as a stream that was not killed.

The restarted stream continues from its saved state, and opens no file that was already finished.
If the state cannot be used, the stream reports this and reads the files again.
"""

from __future__ import annotations

import hashlib
import logging
import random
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from cramjam import zstd

from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.errors import CaptureError, StorageError
from flexwire.schema.catalog import catalog, use_catalog
from flexwire.storage.input_file import InputFile
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey import saved_state, saved_stream
from flexwire.survey.follower_state import FollowerState
from flexwire.survey.saved_state import SavedStateError
from flexwire.survey.saved_stream import SavedStream, StreamStates
from flexwire.tables.row_filter import EVERYTHING, FRAMES, RECORDS, RowFilter
from tests.capture.interleaved import SHAPES, TLS, write_capture
from tests.schema.trunk import trunk_catalog
from tests.searching import in_make_long, times, trying_few
from tests.spark.traffic import Traffic, made, request
from tests.tables.growing import Query, grown
from tests.tables.test_following import ASKED, at_once
from tests.tables.test_saved_state import SECRET, content_of, damage, secret_request

if TYPE_CHECKING:
    from pathlib import Path

STREAMED = {name: shape for name, shape in SHAPES.items() if name not in {"HOSTS", "UNORDERED"}}
STREAMED["TLS"] = TLS
SHOWN = replace(ASKED, show_credentials=True)
AGAIN = "read again"


def write(directory: Path, name: str, seed: int, **how: Any) -> list[Path]:
    return write_capture(directory, seed, replace(STREAMED[name], compressed=0.0, **how))


def run_killed(query: Query, source: random.Random, **limits: Any) -> None:
    """Run a batch in a new process, which may be killed after its plan and plan again."""
    query.restart()
    if source.random() < 0.4:
        end = query._follower.latest(query.offset, **limits)
        query._follower.stretches(query.offset, end)
        query.restart()
        rows = query.between(query.offset, end)
        query.restart()
        assert query.between(query.offset, end) == rows
        for table, some in rows.items():
            query.rows[table] += some
        query.offset = end
    else:
        query.run(**limits)


def finished(query: Query, directory: Path) -> list[Path]:
    return [one for one in directory.iterdir() if query.offset.get(str(one)) == one.stat().st_size]


def assert_killed_as_whole(name: str, seed: int, tmp_path: Path, asked: Any = SHOWN) -> None:
    """Run a stream whose finished files are removed, except the newest one, which may grow."""
    files = write(tmp_path / "made", name, seed)
    whole = Query(tmp_path / "made", replace(asked, chunk_bytes=1 << 20, range_bytes=1 << 30))
    whole.run()
    source, query, removed = random.Random(seed), None, 0
    for _ in grown(source, files, tmp_path / "grown", 8):
        query = query or Query(tmp_path / "grown", asked, states=tmp_path / "states")
        limits = {"most_bytes": source.randrange(1, 9000)} if source.random() < 0.4 else {}
        run_killed(query, source, **limits)
        for one in finished(query, tmp_path / "grown")[:-1]:
            # The name of the state is the offset to which it belongs.
            if one != files[-1]:
                one.unlink()
                removed += 1
    assert query is not None
    run_killed(query, source)
    assert query.sorted() == whole.sorted()
    assert len([*(tmp_path / "states").iterdir()]) <= 2


@pytest.fixture(autouse=True)
def _told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "flexwire")


# One shape contains everything that a capture can contain, and one has a single connection.
FEW = ("EVERYTHING", "ONE_CONNECTION")


@pytest.mark.slow
@pytest.mark.parametrize("name", trying_few(STREAMED, FEW))
def test_killed_at_any_step_a_stream_gives_the_same_rows(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for seed in range(times(1)):
        assert_killed_as_whole(name, seed, tmp_path / str(seed))
    assert AGAIN not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["TLS", *in_make_long("EVERYTHING", "LOSSY")])
def test_bytes_that_may_be_credentials_are_read_again_where_their_files_are(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = write(tmp_path / "made", name, 1)
    source, query = random.Random(1), None
    for _ in grown(source, files, tmp_path / "grown", 8):
        query = query or Query(tmp_path / "grown", ASKED, states=tmp_path / "states")
        run_killed(query, source)
    assert query is not None
    query.run()
    assert query.sorted() == at_once(tmp_path / "made").sorted()
    assert "may be credentials" in caplog.text


def test_what_showed_that_a_connection_is_kafka_is_known_after_a_restart(tmp_path: Path) -> None:
    bad = b"\0\3\0\x0c\0\0\0\2\0\5tests\0 of whatever"
    unclear = [request(made("MetadataRequest"), 12, number, client_id="") for number in (1, 2)]
    traffic = Traffic(tmp_path / "made")
    connection, query = (
        traffic.connect(),
        Query(tmp_path / "made", ASKED, states=tmp_path / "states"),
    )
    # Only the two unclear requests together show that the connection is Kafka.
    for part in (bad, unclear[0], bad, unclear[1], bad, bad):
        traffic.send(connection, "request", part)
        query.restart()
        query.run()
    traffic.close()
    query.run()
    rows = sorted(query.rows[FRAMES], key=lambda row: row["frame_index"])
    assert [row["bytes"] for row in rows] == [None, None, None, None, bad, bad]
    assert query.sorted() == at_once(tmp_path / "made").sorted()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of opened files."""
    names: list[str] = []
    really = InputFile.open

    def noting(self: InputFile, *given: Any, **how: Any) -> Any:
        names.append(self.name)
        return really(self, *given, **how)

    monkeypatch.setattr(InputFile, "open", noting)
    return names


@pytest.mark.parametrize("until", ["what there is", *in_make_long("a limit", "an older Spark")])
def test_a_restart_opens_no_file_that_is_finished(
    until: str, tmp_path: Path, opened: list[str]
) -> None:
    files = write(tmp_path / "made", "CLEAN", 3, files=4)
    directory = tmp_path / "some"
    directory.mkdir()
    for one in files[:2]:
        (directory / one.name).write_bytes(one.read_bytes())
    (directory / files[2].name).write_bytes(files[2].read_bytes()[:-400])
    query = Query(directory, ASKED, states=tmp_path / "states")
    query.run()
    for one in files[2:]:
        (directory / one.name).write_bytes(one.read_bytes())
    query.restart()
    follower = query._follower
    opened.clear()
    # As `prepareForTriggerAvailableNow` requests, and Spark before 4.2 for each batch.
    last = follower.latest(None) if until != "a limit" else None
    end = follower.latest(None if until == "an older Spark" else query.offset, until=last)
    assert end == {str(directory / one.name): one.stat().st_size for one in files}
    for table, rows in query.between(query.offset, end).items():
        query.rows[table] += rows
    assert {*opened} == {str(directory / one.name) for one in files[2:]}
    assert query.sorted() == at_once(tmp_path / "made").sorted()


def stream(tmp_path: Path, **how: Any) -> Query:
    """Run a stream with a saved state, whose last file is not read to its end."""
    files = write(tmp_path / "made", "CLEAN", 3, **how)
    query = Query(tmp_path / "made", SHOWN, states=tmp_path / "states")
    query.run(most_bytes=files[0].stat().st_size + 2000)
    assert query.offset
    return query


def only_state(tmp_path: Path) -> Path:
    (state,) = (tmp_path / "states").iterdir()
    return state


OTHERS = {
    "different brokers": (replace(SHOWN, brokers=BrokerEnds.parse([9092], [])), EVERYTHING),
    "credentials setting": (ASKED, EVERYTHING),
    "another release of the captured": (replace(SHOWN, release="3.9.2"), EVERYTHING),
    "other rows": (SHOWN, RowFilter(RECORDS)),
}


@pytest.mark.parametrize("lost", ["gone", "damaged", "cut off", "of another offset", *OTHERS])
def test_a_state_that_cannot_be_used_is_told_and_files_are_read_again(
    lost: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    query, reason = stream(tmp_path), lost
    state = only_state(tmp_path)
    data = state.read_bytes()
    asked, wanted = OTHERS.get(lost, (SHOWN, EVERYTHING))
    if lost == "gone":
        state.unlink()
        reason = "no state was saved"
    elif lost == "damaged":
        state.write_bytes(data[:-1])
    elif lost == "cut off":
        state.write_bytes(data[:5])
    elif lost == "of another offset":
        query.run(most_bytes=1)
        two = sorted((tmp_path / "states").iterdir())
        two[1].write_bytes(two[0].read_bytes())
        reason = "another offset"
    query._asked, query._wanted = asked, wanted
    query.restart()
    rows = [query.between(query.offset, query._follower.latest(query.offset))]
    assert caplog.text.count(AGAIN) == 1
    assert reason in caplog.text
    query._states = None
    query.restart()
    rows.append(query.between(query.offset, query._follower.latest(query.offset)))
    assert rows[0] == rows[1]
    assert rows[0]


@pytest.mark.long
@pytest.mark.slow
def test_a_state_of_another_catalog_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Messages that the catalog lacks were not decoded, so later rows could differ."""
    query = stream(tmp_path)
    use_catalog(trunk_catalog(tmp_path / "trunk"))
    try:
        query.restart()
        assert query.between(query.offset, query._follower.latest(query.offset))
        assert catalog().digest
    finally:
        use_catalog(None)
    assert "the state was written with another catalog" in caplog.text
    assert catalog().digest == ""


def test_a_new_stream_is_not_led_by_the_state_of_another(tmp_path: Path) -> None:
    """The checkpoint was removed but not its states, and a file now has different content."""
    query = stream(tmp_path)
    files = sorted((tmp_path / "made").iterdir())
    for one in files:
        one.unlink()
    expected = at_once_of(tmp_path, files[0])
    query.offset = {}
    query.rows.clear()
    query.restart()
    last = query._follower.latest(None)
    query.run(until=last)
    assert query.sorted() == expected


def at_once_of(tmp_path: Path, file: Path) -> Any:
    """Return other, smaller content for a file, and its rows."""
    (other,) = write(tmp_path / "other", "CLEAN", 4, files=1, connections=2)
    other.rename(other.with_name(file.name))
    file.write_bytes((tmp_path / "other" / file.name).read_bytes())
    query = Query(tmp_path / "other", SHOWN)
    query.run()
    return query.sorted()


def test_a_state_that_cannot_be_kept_is_told_and_the_stream_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> None:
        raise StorageError("No space left on device", url="states")

    monkeypatch.setattr(OutputDirectory, "write", full)
    query = stream(tmp_path)
    assert "cannot save the state of the stream" in caplog.text
    assert "No space left" in caplog.text
    caplog.clear()
    monkeypatch.setattr(saved_state, "MOST_STATE_BYTES", 100)
    query.run()
    assert "at most 100 can be saved" in caplog.text
    assert query.rows[FRAMES]


def test_states_are_private_and_two_are_enough(tmp_path: Path) -> None:
    query = stream(tmp_path)
    for _ in range(4):
        query.run(most_bytes=2000)
    states = sorted((tmp_path / "states").iterdir())
    assert len(states) == 2
    assert {stat.S_IMODE(one.stat().st_mode) for one in states} == {0o600}
    assert stat.S_IMODE((tmp_path / "states").stat().st_mode) == 0o700
    # A state is data of known types.
    assert isinstance(msgspec.msgpack.decode(content_of(states[0].read_bytes())), list)
    query.restart()
    query.run()
    assert len([*(tmp_path / "states").iterdir()]) == 2


def half_secret(tmp_path: Path) -> Query:
    """Run a stream that has read half of a frame with a password. The other half follows."""
    traffic = Traffic(tmp_path / "made")
    connection = traffic.connect()
    traffic.exchange(
        connection, made("SaslHandshakeRequest", mechanism="PLAIN"),
        made("SaslHandshakeResponse"), 1, 1,
    )  # fmt: skip
    whole = secret_request()
    connection.send("request", whole[:-3], timestamp_us=traffic._tick())
    query = Query(tmp_path / "made", ASKED, states=tmp_path / "states")
    query.run()
    connection.send("request", whole[-3:], timestamp_us=traffic._tick())
    traffic.rotate()
    traffic.exchange(connection, made("HeartbeatRequest"), made("HeartbeatResponse"), 4, 5)
    traffic.close()
    return query


def test_a_state_has_no_bytes_that_may_be_credentials(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    query = half_secret(tmp_path)
    data = only_state(tmp_path).read_bytes()
    assert SECRET not in content_of(data)
    assert not SavedStream.from_bytes(data, ASKED, EVERYTHING).is_complete
    query.restart()
    query.run()
    assert "may be credentials" in caplog.text
    assert query.sorted() == at_once(tmp_path / "made").sorted()


def test_a_frame_whose_bytes_were_withheld_says_that_it_lacks_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    query = half_secret(tmp_path)
    first, *_ = sorted((tmp_path / "made").iterdir())
    data, offset, begun = first.read_bytes(), query.offset, len(query.rows[FRAMES])
    first.unlink()
    query.restart()
    assert query._follower._go_on_from(offset)
    assert "these bytes are missing from" in caplog.text
    first.write_bytes(data)
    query.run()
    row, *others = query.rows[FRAMES][begun:]
    assert "bytes are missing" in row["error"]
    assert [one["error"] for one in others] == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MID_STREAM", *in_make_long("EVERYTHING", "STRANGE")])
def test_a_state_that_somebody_else_wrote_is_refused_or_behaves(name: str, tmp_path: Path) -> None:
    files = write(tmp_path / "made", name, 1, torn=0.0)
    query = Query(tmp_path / "made", SHOWN, states=tmp_path / "states")
    query.run(most_bytes=sum(one.stat().st_size for one in files) // 2)
    state, source = only_state(tmp_path), random.Random(name)
    data, used, refused = state.read_bytes(), 0, 0
    end = query._follower.latest(query.offset)
    for _ in range(times(30)):
        tree = msgspec.msgpack.decode(content_of(data))
        for _ in range(source.randrange(1, 4)):
            damage(source, tree)
        record = changed(tree)
        for one in (tmp_path / "states").iterdir():
            one.unlink()
        state.write_bytes(record)
        query.restart()
        if not query._follower._go_on_from(query.offset):
            refused += 1
            continue
        used += 1
        try:
            query.between(query.offset, end)
        except CaptureError:
            # The saved state indicates that the file continues elsewhere.
            continue
    assert used
    assert refused


def changed(tree: Any) -> bytes:
    """Return a state of any content, with a valid header."""
    content = msgspec.msgpack.encode(tree)
    packed = bytes(zstd.compress(content, 1))
    head = saved_state._HEAD.pack(
        saved_state._MAGIC,
        saved_state._FORMAT,
        saved_state.layout(saved_stream.FollowedRecord),
        hashlib.sha256(packed).digest()[:16],
        len(content),
    )
    return head + packed


def test_every_attribute_of_a_stream_is_in_its_record() -> None:
    """Every attribute is saved, or is specified by the request."""
    saved = {
        *("_flows", "_pairing", "_software", "_instances", "_names"),
        *("_forgotten", "_most_keys", "_evidence", "_proven"),
    }
    assert vars(FollowerState(ASKED, EVERYTHING)).keys() == saved | {"_request", "_row_filter"}
    known = {*saved_stream.FollowedRecord.__struct_fields__}
    known |= {*saved_state.StateRecord.__struct_fields__, "flows", "pairing"}
    assert {name.lstrip("_") for name in saved} <= known


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    query = stream(tmp_path)
    data = only_state(tmp_path).read_bytes()
    again = SavedStream.from_bytes(data, SHOWN, EVERYTHING)
    assert again.offset == query.offset
    assert again.to_bytes() == data
    with pytest.raises(SavedStateError, match="another release of flexwire"):
        saved_state.unpack(data, saved_state.StateRecord)


def test_a_state_of_a_store_is_found_by_its_offset() -> None:
    states = StreamStates(OutputDirectory("memory://states-of-streams/here"))
    first, second, third = {"a": 1}, {"a": 2}, {"a": 2, "b": 1}
    for start, end, data in (({}, first, b"1"), (first, second, b"2"), (second, third, b"3")):
        states.keep(start, end, data)
    for again in (states, StreamStates(states.directory)):
        assert [again.read(one) for one in (first, second, third, None)] == [None, b"2", b"3", b"3"]
