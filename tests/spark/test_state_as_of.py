"""An analysis as of a given moment agrees with an analysis of logs that end at that moment."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.answers import ANSWERS_BY_NAME, STATE_ANSWERS
from flexwire.answers.asking.results import ask, choose_answers, with_internal
from flexwire.answers.group_state import ANSWER as GROUP_STATE
from flexwire.answers.state.log import END, AsOf, parse_moment
from flexwire.cli.app import app
from flexwire.errors import ArgumentError, CaptureError
from flexwire.inputs import input_sources
from flexwire.records import Record
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import notes_of, open_tables, stored_answers
from flexwire.spark.settings import set_for_answers
from tests.capture.made_logs import TIME, MadeSegment, plain, write_log
from tests.capture.made_metadata import batch, elected, value, write
from tests.spark.internal_topics.made import MadeTopic, commit, keyed, written_transaction
from tests.spark.test_state_answers import ORDERS, partition, registered

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.storage.input_file import InputFile

pytestmark = pytest.mark.spark
# All early records precede the moment, except the last, which is exactly at that time. The other
# records are two days later, so that a group is no longer in use.
CUT, LATER = TIME + 1000, TIME + 2 * 86_400_000
AT = datetime.fromtimestamp(CUT / 1000, UTC)
OFFSETS = "__consumer_offsets-0"
PRODUCER = 7
# The answers that use most of the code for earlier moments. `make cluster` tests the others.
SOME = ("group_offsets", "unused_topics", "hanging_transactions", "cluster_partitions")


class Timed(MadeTopic):
    """Write an internal topic's log, with the given time in each record."""

    def put(self, time: int, key: bytes, data: bytes | None, producer: int = -1) -> int:
        return self.add(key, data, producer, time)


def groups(root: Path, *, is_whole: bool, removed: Collection[int] = ()) -> None:
    log = Timed("__consumer_offsets")
    log.removed = removed
    log.put(TIME, *commit(0, 4, "slow"))
    log.put(TIME + 1, *commit(1, 9, "slow"))
    log.put(TIME + 2, *commit(0, 12, "done"))
    log.put(TIME + 3, *commit(0, 6, "within"), producer=PRODUCER)
    member = {"group_id": "live", "member_id": "m"}
    log.put(TIME + 4, *keyed(3, "ConsumerGroupMetadata", {"group_id": "live"}, {"epoch": 1}))
    wanted = {"subscribed_topic_names": ["payments"], "client_id": "c", "client_host": "/h"}
    log.put(CUT, *keyed(5, "ConsumerGroupMemberMetadata", member, wanted))
    if is_whole:
        log.put(LATER, *commit(0, 14, "slow"))
        log.put(LATER, *commit(0, None, "done"))
        log.put(LATER, *commit(0, 1, "new"))
        log.segment.end(log.offset, PRODUCER, bytes.fromhex("00000001"), LATER)
        log.offset += 1
        log.put(LATER, *keyed(5, "ConsumerGroupMemberMetadata", member, None))
    log.write(root)


def others(root: Path, *, is_whole: bool) -> None:
    coordinators = Timed("__transaction_state")
    coordinators.put(CUT, *written_transaction("t", 1, PRODUCER, {"orders": [0]}))
    shares = Timed("__share_group_state")
    key = {"group_id": "s", "topic_id": None, "partition": 0}
    shares.put(CUT, *keyed(0, "ShareSnapshot", key | {"topic_id": uuid()}, {"start_offset": 3}))
    if is_whole:
        coordinators.put(LATER, *written_transaction("t", 4, PRODUCER, {}))
        shares.put(LATER, *keyed(0, "ShareSnapshot", key | {"topic_id": uuid()}, None))
    # These logs are in directories of their own, with their checkpoints next to them.
    coordinators.write(root / "t")
    shares.write(root / "s")


def uuid() -> Any:
    from uuid import UUID  # noqa: PLC0415 - only this function needs it

    return UUID(int=48)


def cluster(root: Path, *, is_whole: bool) -> None:
    config = {"resourceType": 2, "resourceName": "orders", "name": "retention.ms"}
    first = [
        registered(1, fenced=False),
        registered(2, fenced=False),
        value("TopicRecord", name="orders", topicId=ORDERS),
        partition(ORDERS, isr=[1, 2]),
        partition(ORDERS, partitionId=1, isr=[1, 2]),
        value("ConfigRecord", **config, value="1"),
    ]
    made = elected(0, 1, time=TIME) + batch(1, first, time=CUT)
    if is_whole:
        change = {"partitionId": 1, "topicId": ORDERS, "isr": [2], "leader": 2}
        then = [
            value("PartitionChangeRecord", 2, **change),
            value("ConfigRecord", **config, value="2"),
            value("TopicRecord", name="empty", topicId="AAAAAAAAAAAAAAAAAAAAMg"),
            partition("AAAAAAAAAAAAAAAAAAAAMg"),
        ]
        made += batch(1 + len(first), then, time=LATER)
    write(root, {"0": made})


def ordinary(root: Path, *, is_whole: bool) -> None:
    for name in ("orders-0", "payments-0"):
        segment = MadeSegment(0)
        segment.add(plain(0, 10))
        segment.add(plain(10, 2), producer_id=PRODUCER, producer_epoch=3, is_transactional=True)
        # In this batch, the first record is exactly at the moment, and the second is later.
        around = [Record(12, CUT, b"k", b"v", []), Record(13, LATER, b"k", b"v", [])]
        segment.add(around if is_whole else around[:1])
        if is_whole:
            segment.end(14, PRODUCER, bytes.fromhex("00000001"), LATER)
            segment.add(plain(15, 10, LATER))
        write_log(root / name, [segment])


def made(root: Path, *, is_whole: bool) -> Path:
    groups(root, is_whole=is_whole)
    others(root, is_whole=is_whole)
    cluster(root, is_whole=is_whole)
    ordinary(root, is_whole=is_whole)
    return root


@dataclass(frozen=True)
class Made:
    """The tables of some logs, for questions about an earlier moment."""

    spark: SparkSession
    tables: AnalysisTables
    files: list[InputFile]
    known: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    """The answers, by moment and name."""

    @classmethod
    def of(cls, spark: SparkSession, root: Path) -> Made:
        analyze([root / "data"], root / "out", spark=spark, answers="none")
        files = list(input_sources([str(root / "data")]).logs)
        return cls(spark, open_tables(spark, root / "out"), files)

    @contextmanager
    def asked(self, as_of: AsOf = END) -> Iterator[AnalysisTables]:
        with (
            set_for_answers(self.spark, is_small=True),
            with_internal(self.tables, self.spark, self.files, as_of) as tables,
        ):
            yield tables

    def rows(self, as_of: AsOf, *names: str) -> dict[str, list[dict[str, Any]]]:
        new = [name for name in names if (repr(as_of), name) not in self.known]
        if new:
            with self.asked(as_of) as tables:
                for one in choose_answers(new, ANSWERS_BY_NAME):
                    self.known[repr(as_of), one.name] = ask(one, tables).rows.to_pylist()
        return {name: self.known[repr(as_of), name] for name in names}


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("whole")
    made(root / "data", is_whole=True)
    return Made.of(spark, root)


@pytest.fixture(scope="module")
def before(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("before")
    made(root / "data", is_whole=False)
    return Made.of(spark, root)


def told(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Omit the bytes, because a batch that is cut off in one log is complete in the other."""
    return [{name: one for name, one in row.items() if name != "bytes"} for row in rows]


def same(whole: Made, before: Made, *names: str) -> None:
    then, expected = whole.rows(AsOf(AT), *names), before.rows(END, *names)
    for name in names:
        assert told(then[name]) == told(expected[name]), name


@pytest.mark.long
def test_as_of_a_time_it_is_what_the_logs_said_then(whole: Made, before: Made) -> None:
    same(whole, before, *SOME)
    rows = whole.rows(AsOf(AT), "group_offsets")["group_offsets"]
    found = {(row["group"], row["partition"]): row for row in rows}
    assert [*found] == [("slow", 0), ("done", 0), ("within", 0), ("slow", 1)]
    # The record at offset 12 is the last one that is not later than the moment.
    assert (found["slow", 0]["end_offset"], found["slow", 0]["lag"]) == (13, 9)
    within = found["within", 0]
    assert (within["offset"], within["pending"], within["pending_offset"]) == (None, 1, 6)


@pytest.mark.cluster
def test_as_of_a_time_all_answers_are_what_the_logs_said_then(whole: Made, before: Made) -> None:
    # The answer contains nothing about features and voters, because these did not change.
    still = {"tiered_storage", "unread_state", "cluster_quotas", "cluster_acls"}
    still |= {"cluster_credentials", "cluster_features", "cluster_gate", "cluster_voters"}
    still |= {"diverging_replicas"}
    names = [one.name for one in STATE_ANSWERS if one.name not in {*SOME, *still}]
    same(whole, before, *names)
    # If the answers were equal, the moment would have no effect.
    now, then = (whole.rows(at, *SOME, *names) for at in (END, AsOf(AT)))
    assert {name for name in now if now[name] == then[name]} <= {"cluster_history"}
    then = whole.rows(AsOf(AT), *still)
    assert then == before.rows(END, *still)


@pytest.mark.long
def test_as_of_an_offset_no_other_log_is_at_that_moment(whole: Made, before: Made) -> None:
    rows = whole.rows(AsOf.parse({OFFSETS: 6}), "group_offsets")["group_offsets"]
    expected = before.rows(END, "group_offsets")["group_offsets"]
    unknown = dict.fromkeys(("end_offset", "lag", "stable_offset", "stable_lag"))
    key = ("group", "partition")
    assert sorted(rows, key=lambda row: [row[one] for one in key]) == sorted(
        ({**row, **unknown} for row in expected), key=lambda row: [row[one] for one in key]
    )
    [there] = whole.rows(AsOf.parse({"__cluster_metadata-0": 5}), "cluster_topics").values()
    assert [(row["topic"], row["partitions"]) for row in there] == [("orders", 1)]


def test_a_moment_that_no_log_has_is_an_error(whole: Made) -> None:
    for moment, match in (
        ({OFFSETS: 12}, "offset 12 is not known: the log ends at 11"),
        ({"__consumer_offsets-1": 0}, "offset 0 is not known: the paths do not include the log of"),
    ):
        with whole.asked(AsOf.parse(moment)) as tables, pytest.raises(CaptureError, match=match):
            ask(GROUP_STATE, tables)


@pytest.mark.long
def test_what_compaction_took_is_said(spark: SparkSession, tmp_path: Path) -> None:
    # Two records that later records replaced, and the tombstone of one of these two records.
    groups(tmp_path / "data", is_whole=True, removed=(0, 2, 7))
    logs = Made.of(spark, tmp_path)
    found = logs.rows(AsOf(AT), "group_state", "unread_state")
    known = {row["group"]: row["is_known"] for row in found["group_state"]}
    # The last group has only a later commit, but may have had an earlier one. No record of the
    # deleted group remains. An assignment of the member may have disappeared in the same way.
    assert known == {"slow": False, "within": False, "live": False, "new": False}
    [gap] = found["unread_state"]
    assert (gap["topic"], gap["first_offset"], gap["records"]) == ("__consumer_offsets", 6, None)
    assert gap["error"] == "compacted or pruned: records up to offset 8 are missing"
    assert logs.rows(END, "unread_state") == {"unread_state": []}


@pytest.mark.long
def test_report_and_terminal_say_the_moment(spark: SparkSession, tmp_path: Path) -> None:
    assert spark is not None
    groups(tmp_path / "data", is_whole=True)
    out, moment = tmp_path / "out", "2023-11-14 22:13:21 UTC"
    command = ["analyze", str(tmp_path / "data"), "--out", str(out), "--answers", "group_state"]
    result = CliRunner().invoke(app, [*command, "--as-of", "2023-11-14T22:13:21"])
    note = f"The answers about internal topics show the state as of {moment}."
    assert (result.exit_code, note in result.output) == (0, True)
    assert notes_of(out) == (note,)
    assert f"As of {moment}." in (out / "report.html").read_text()
    [given] = stored_answers(out, ["group_state"])
    assert {*given.rows["group"].to_pylist()} == {"slow", "done", "within", "live"}


def test_a_moment_is_a_time_or_offsets(tmp_path: Path) -> None:
    assert parse_moment([]) is None
    assert parse_moment(["2023-11-14T22:13:21"]) == AT
    expected = {"__consumer_offsets-3": 17}
    assert parse_moment(["__consumer_offsets-3=17"]) == expected
    assert AsOf.parse(expected).text == "offset 17 of __consumer_offsets-3"
    for texts in (["noon"], ["2023-11-14", "2023-11-15"], ["2023-11-14", "__consumer_offsets-3=1"]):
        with pytest.raises(ArgumentError, match="as_of: expected one ISO 8601 time"):
            parse_moment(texts)
    naive = datetime(2023, 11, 14)  # noqa: DTZ001 - the test needs a time without a zone
    beyond = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
    before = datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))
    twice = {"__consumer_offsets-3": 1, "__consumer_offsets-03": 2}
    for wrong in (
        naive,
        beyond,
        before,
        twice,
        {},
        {"orders-0": 1},
        {"__consumer_offsets": 1},
        "noon",
        {OFFSETS: -1},
    ):
        with pytest.raises(ArgumentError, match="as_of: expected"):
            AsOf.parse(wrong)  # type: ignore[arg-type]  # what a caller may give
    ordinary(tmp_path / "data", is_whole=True)
    with pytest.raises(ArgumentError, match="as_of: expected a log of an internal topic"):
        analyze([tmp_path / "data"], tmp_path / "out", as_of=AT)
    command = ["analyze", str(tmp_path), "--out", str(tmp_path / "out"), "--as-of", "orders-0=1"]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, "Invalid value for '--as-of'" in result.output) == (2, True)
