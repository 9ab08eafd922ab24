"""The files that count as a log are those that a broker would read on startup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import fsspec
import pytest

from flexwire.errors import ArgumentError, CaptureError
from flexwire.logs import LogQuery, plan
from flexwire.logs.checkpoints import STARTS
from flexwire.logs.files import Partition
from flexwire.logs.follower import LogFollower
from tests.capture.log_vectors import data_of
from tests.capture.made_logs import MadeSegment, plain, random_log, read_offsets, write_log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ID = "tvHCaSDsQZWsjr5rbtCjxA"


def made(base: int, count: int, *, step: int = 1) -> MadeSegment:
    segment = MadeSegment(base)
    for offset in range(base, base + count, step):
        segment.add(plain(offset, 1))
    return segment


def test_what_is_about_to_be_deleted_or_was_not_finished_is_not_read(tmp_path: Path) -> None:
    made(0, 3).write(tmp_path / "a-0", ".deleted")
    made(3, 3).write(tmp_path / "a-0")
    made(3, 2).write(tmp_path / "a-0", ".cleaned")
    made(6, 3).write(tmp_path / f"a-1.{'0' * 32}-delete")
    made(6, 3).write(tmp_path / f"a-2.{'0' * 32}-future")
    assert read_offsets(tmp_path) == [3, 4, 5]


def test_a_swap_file_replaces_the_segments_in_its_range(tmp_path: Path) -> None:
    for base in (0, 10, 20, 30):
        made(base, 10).write(tmp_path / "a-0")
    # A compaction of the first two segments, which leaves only two records.
    swap = MadeSegment(0)
    swap.add(plain(3, 1))
    swap.add(plain(19, 1))
    swap.write(tmp_path / "a-0", ".swap")
    assert read_offsets(tmp_path) == [3, 19, *range(20, 40)]


def test_a_swap_file_at_or_after_a_cleaned_one_is_of_a_split_that_did_not_finish(
    tmp_path: Path,
) -> None:
    made(0, 10).write(tmp_path / "a-0")
    made(5, 1).write(tmp_path / "a-0", ".swap")
    made(5, 1).write(tmp_path / "a-0", ".cleaned")
    assert read_offsets(tmp_path) == list(range(10))
    (tmp_path / "a-0" / f"{5:020}.log.cleaned").unlink()
    (tmp_path / "a-0" / f"{5:020}.index.cleaned").unlink()
    (tmp_path / "a-0" / f"{5:020}.timeindex.cleaned").unlink()
    assert read_offsets(tmp_path) == [*range(10), 5]


def test_of_several_replicas_the_one_that_ends_last_is_read_or_all(tmp_path: Path) -> None:
    made(0, 10).write(tmp_path / "broker1" / "a-0")
    made(2, 10).write(tmp_path / "broker2" / "a-0")
    made(5, 1).write(tmp_path / "broker1" / "a-1")
    assert read_offsets(tmp_path) == [*range(2, 12), 5]
    pieces = [one for task in plan([tmp_path], LogQuery(replicas="all")) for one in task]
    assert [one.replica for one in pieces] == [
        str(tmp_path / "broker1" / "a-0"),
        str(tmp_path / "broker1" / "a-1"),
        str(tmp_path / "broker2" / "a-0"),
    ]
    # If two segments end at the same offset, the one that begins first is used.
    made(0, 12).write(tmp_path / "broker3" / "a-0")
    assert read_offsets(tmp_path) == [*range(12), 5]


def test_a_torn_end_is_not_longer(tmp_path: Path) -> None:
    torn = made(0, 10)
    torn.data += made(10, 1).data[:-1]
    torn.write(tmp_path / "broker1" / "a-0")
    made(1, 10).write(tmp_path / "broker2" / "a-0")
    assert read_offsets(tmp_path) == list(range(1, 11))


def test_a_tier_is_read_and_goes_on_where_the_broker_s_log_begins(tmp_path: Path) -> None:
    tier = tmp_path / "tier" / f"a-0-{ID}"
    for base, other in ((0, "A"), (10, "B"), (10, "C"), (20, "D")):
        segment = made(base, 10 if other != "B" else 3)
        segment.write(tmp_path / "scratch")
        tier.mkdir(parents=True, exist_ok=True)
        for file in (tmp_path / "scratch").iterdir():
            stem, _, kind = file.name.partition(".")
            file.rename(tier / f"{stem}-{other * 22}.{kind}")
    (tmp_path / "scratch").rmdir()
    assert read_offsets(tmp_path / "tier") == list(range(30))
    made(15, 20).write(tmp_path / "broker" / "a-0")
    # Both segments contain offsets 15 to 29, which are read only once.
    assert read_offsets(tmp_path / "tier", tmp_path / "broker") == list(range(35))
    assert read_offsets(tmp_path / "broker") == list(range(15, 35))


def test_what_was_deleted_before_the_start_of_a_log_is_hidden(tmp_path: Path) -> None:
    for broker in ("broker1", "broker2"):
        for base in (0, 10, 20):
            made(base, 10).write(tmp_path / broker / "a-0")
        made(0, 5).write(tmp_path / broker / "a-1")
    starts = tmp_path / "broker1" / STARTS
    starts.write_text("0\n2\na 0 13\nb 7 90\n")
    expected = [*range(13, 30), *range(5)]
    assert read_offsets(tmp_path) == expected
    assert read_offsets(tmp_path / "broker1" / "a-0") == expected[:-5]
    assert read_offsets(tmp_path, starting={("a", 0): 3}) == expected
    assert read_offsets(tmp_path, starting={("a", 0): 25}) == [*range(25, 30), *range(5)]
    assert read_offsets(tmp_path, includes_deleted=True) == [*range(30), *range(5)]
    # The other log is longer, and its broker has not yet written the new log start offset.
    made(30, 5).write(tmp_path / "broker2" / "a-0")
    assert read_offsets(tmp_path) == [*range(13, 35), *range(5)]
    (tmp_path / "broker2" / "a-0" / f"{30:020}.log").unlink()
    # Each replica has its own log start offset.
    pieces = [one for task in plan([tmp_path], LogQuery(replicas="all")) for one in task]
    lows = [one.offsets.low for one in pieces if one.partition.partition == 0]
    assert lows == [13, 13, 0, 0, 0]
    follower = LogFollower([tmp_path], LogQuery())
    assert follower.first() == {("a", 0): 13, ("a", 1): 0}
    starts.write_text("0\n1\na 0 31\n")
    assert read_offsets(tmp_path) == [*range(5)]
    with pytest.raises(
        CaptureError, match=r"a-0 .* begins with offset 31, but the next offset to read is 13"
    ):
        follower.latest({Partition("a", 0): 13})


@pytest.mark.parametrize(
    "text",
    [
        "\n", "1", "1\n1\na 0 3\n", "0\n2\na 0 3\n", "0\n1\na 0 -3\n", "0\n1\na 0\n",
        "0\n1\na b 0 3\n", "0\n1\na 99999999999 3\n", "\udcff", "0\n1\n\na 0 3\n",
    ],
)  # fmt: skip
def test_starts_that_are_damaged_are_left_alone_as_a_broker_does(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made(0, 10).write(tmp_path / "a-0")
    (tmp_path / STARTS).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert read_offsets(tmp_path) == [*range(10)]
    assert "ignored, because it is damaged" in caplog.text


@pytest.mark.parametrize("text", ["", "0", "0\n", "0\n0\n"])
def test_a_fresh_brokers_starts_are_none(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made(0, 10).write(tmp_path / "a-0")
    (tmp_path / STARTS).write_text(text)
    assert read_offsets(tmp_path) == [*range(10)]
    assert caplog.text == ""


@pytest.mark.parametrize("pattern", ["a-*", "a-0", "a-0/*.log", "a-0/00000000000000000000.log"])
def test_a_path_is_a_directory_a_segment_or_a_pattern(tmp_path: Path, pattern: str) -> None:
    segment = made(0, 50)
    segment.write(tmp_path / "a-0")
    assert read_offsets(tmp_path / pattern) == list(range(50))
    # The files next to a segment are used, although the input names only the segment.
    tasks = plan([tmp_path / pattern], LogQuery(piece_bytes=1000))
    assert len([one for task in tasks for one in task]) > 2


@pytest.fixture
def bucket() -> Iterator[str]:
    yield "memory://logs"
    fsspec.filesystem("memory").rm("/logs", recursive=True)


@pytest.mark.parametrize("path", ["", "/a-0", "/a-*", f"/a-0/{0:020}.log"])
def test_a_log_in_a_store_is_read_by_its_url(bucket: str, path: str, tmp_path: Path) -> None:
    segments = random_log(8, segments=1 if path.endswith(".log") else 3)
    files = fsspec.filesystem("memory")
    for file in write_log(tmp_path / "a-0", segments).iterdir():
        files.pipe_file(f"/logs/a-0/{file.name}", file.read_bytes())
    expected = read_offsets(tmp_path)
    for size in (1 << 20, 700):
        assert read_offsets(f"{bucket}{path}", piece_bytes=size) == expected
    starting = {("a", 0): 30}
    assert read_offsets(f"{bucket}{path}", starting=starting) == [
        one for one in expected if one >= 30
    ]


def test_a_file_of_another_name_or_place_is_told(tmp_path: Path) -> None:
    data = data_of("tx-0/00000000000000000000.log")
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / f"{0:020}.log").write_bytes(data)
    expected = "log segments must be in a directory named TOPIC-PARTITION"
    with pytest.raises(CaptureError, match=f"{tmp_path}/orders: {expected}"):
        read_offsets(tmp_path)
    (tmp_path / "some.log").write_bytes(data)
    with pytest.raises(CaptureError, match=r"some\.log: expected the name of a log segment"):
        read_offsets(tmp_path / "some.log")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        CaptureError, match="no file in this directory has the name of a log segment"
    ):
        read_offsets(tmp_path / "empty")
    with pytest.raises(CaptureError, match="no such file or directory"):
        read_offsets(tmp_path / "nowhere")


def test_only_topics_and_partitions_that_are_wanted_are_looked_at(tmp_path: Path) -> None:
    for name, base in (("a-0", 0), ("a-1", 10), ("b-0", 20), ("b-c-1", 30)):
        made(base, 2).write(tmp_path / name)
    assert read_offsets(tmp_path, topics={"a"}) == [0, 1, 10, 11]
    assert read_offsets(tmp_path, partitions={1}) == [10, 11, 30, 31]
    assert read_offsets(tmp_path, topics={"b-c", "b"}, partitions={0}) == [20, 21]
    assert read_offsets(tmp_path, topics={"c"}) == []
    with pytest.raises(ArgumentError, match=re.escape("that exist (a-0, a-1), got")):
        read_offsets(tmp_path, topics={"a"}, starting={("b", 0): 1})
