"""Neither one client's odd number nor an odd moment prevents answers about other clients."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from flexwire.answers import ANSWERS_BY_NAME
from flexwire.answers.asking.results import ask, choose_answers
from flexwire.answers.state.log import AsOf
from flexwire.codec import message
from flexwire.errors import CaptureError
from flexwire.spark.analyze import Analysis, analyze
from tests.capture.made_logs import TIME, MadeSegment, plain, write_log
from tests.spark.internal_topics.made import MadeTopic, keyed, written_transaction
from tests.spark.test_state_as_of import Made, Timed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
LEAST, MOST = -(2**63), 2**63 - 1
NAMES = ("group_state", "group_offsets", "share_state", "hanging_transactions", "unused_groups")


def committed(
    partition: int, offset: int, group: str, time: int = TIME
) -> tuple[bytes, bytes | None]:
    key = {"group": group, "topic": "orders", "partition": partition}
    value = {"offset": offset, "metadata": "", "commit_timestamp": time}
    return keyed(1, "OffsetCommit", key, value)


def shared(group: str, start: int, done: int, batches: list[tuple[int, int, int]]) -> Any:
    of: Any = message("ShareSnapshotValue")
    key = {"group_id": group, "topic_id": UUID(int=5), "partition": 0}
    made = [
        of.StateBatch(first_offset=first, last_offset=last, delivery_count=count)
        for first, last, count in batches
    ]
    value = {"start_offset": start, "delivery_complete_count": done, "state_batches": made}
    return keyed(0, "ShareSnapshot", key, value)


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    root = tmp_path_factory.mktemp("hostile")
    log = MadeTopic("__consumer_offsets")
    log.add(*committed(0, 4, "ours"))
    for number, offset in enumerate([LEAST, MOST, LEAST + 1, -5, 3, 3]):
        log.add(*committed(number, offset, "theirs", [TIME, MOST, LEAST][number % 3]))
    log.write(root / "data")
    transactions = MadeTopic("__transaction_state")
    transactions.add(*written_transaction("t", 1, MOST, {"orders": [-1, 0, 2**31 - 1]}))
    transactions.write(root / "data" / "t")
    shares = MadeTopic("__share_group_state")
    shares.add(*shared("theirs", MOST, 2**31 - 1, [(LEAST, MOST, 9), (5, 4, 8), (MOST, MOST, 7)]))
    shares.add(*shared("ours", 10, 0, [(0, 9, 5), (8, 12, 1)]))
    shares.write(root / "data" / "s")
    for number in range(3):
        segment = MadeSegment(0)
        segment.add(plain(0, 10))
        write_log(root / "data" / f"orders-{number}", [segment])
    return analyze([root / "data"], root / "out", spark=spark, answers=NAMES)


def rows(done: Analysis, name: str) -> list[dict[str, Any]]:
    [answer] = [one for one in done.facts.answers if one.name == name]
    names = [one.name for one in answer.columns]
    return [dict(zip(names, row, strict=True)) for row in answer.shown]


def test_each_answer_is_given(done: Analysis) -> None:
    assert not done.facts.unanswered
    assert {one.name for one in done.facts.answers} == {*NAMES}


def test_a_lag_that_no_number_says_is_null_and_others_are_known(done: Analysis) -> None:
    lags = {(row["group"], row["partition"]): row["lag"] for row in rows(done, "group_offsets")}
    assert lags == {
        ("ours", 0): 6,
        ("theirs", 0): None,
        ("theirs", 1): 10 - MOST,
        ("theirs", 2): None,
        ("theirs", 3): None,
        ("theirs", 4): None,
        ("theirs", 5): None,
    }
    states = {row["group"]: row for row in rows(done, "group_state")}
    assert (states["ours"]["lag"], states["ours"]["without_end"]) == (6, 0)
    # The logs of three partitions were not read; those of the other partitions were.
    assert (states["theirs"]["lag"], states["theirs"]["without_end"]) == (10 - MOST, 3)


def test_what_is_below_the_start_or_was_replaced_counts_no_more(done: Analysis) -> None:
    states = {row["group"]: row for row in rows(done, "share_state")}
    assert (states["ours"]["deliveries"], states["ours"]["batches"]) == (1, 1)
    assert (states["theirs"]["deliveries"], states["theirs"]["batches"]) == (None, 0)


def coordinators(root: Path) -> None:
    """Write two partitions of each topic. The second continues for an hour."""
    for number, at in enumerate((0, 3_600_000)):
        groups = Timed("__consumer_offsets")
        groups.name = f"__consumer_offsets-{number}"
        groups.put(TIME, *committed(0, 1, f"of{number}", TIME))
        groups.put(TIME + 1000, *committed(0, 1, f"other{number}", TIME + 1000))
        groups.put(TIME + at, *committed(1, 1, f"other{number}", TIME + at))
        groups.write(root)
        known = Timed("__transaction_state")
        known.name = f"__transaction_state-{number}"
        known.put(TIME, *written_transaction(f"t{number}", 1, number, {"orders": [number]}))
        known.put(TIME + at, *written_transaction(f"ended{number}", 4, 9, {}))
        known.write(root / "t")


@pytest.fixture(scope="module")
def several(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("several")
    coordinators(root / "data")
    return Made.of(spark, root)


@pytest.mark.long
def test_of_offsets_each_partition_has_a_moment_of_its_own(several: Made) -> None:
    # The timeout of the transactions is one minute.
    hanging = ("transactional_id", "open_us")
    hour = 3_600_000_000
    for moment, expected in (
        ({"__transaction_state-0": 2}, {("t1", hour)}),
        ({"__transaction_state-1": 1}, {("t0", hour)}),
        ({"__transaction_state-0": 2, "__transaction_state-1": 1}, set()),
    ):
        [found] = several.rows(AsOf.parse(moment), "hanging_transactions").values()
        assert {tuple(row[one] for one in hanging) for row in found} == expected, moment
    moment = {"__consumer_offsets-1": 2}
    [found] = several.rows(AsOf.parse(moment), "group_state").values()
    idle = {row["group"]: row["idle_us"] for row in found}
    assert idle == {"of0": hour, "other0": hour - 1_000_000, "of1": 1_000_000, "other1": 0}


def test_offsets_of_a_log_that_is_not_there_are_refused(several: Made, tmp_path: Path) -> None:
    root = tmp_path / "out"
    for name in ("__consumer_offsets-7", "__cluster_metadata-0", "__cluster_metadata-3"):
        with pytest.raises(CaptureError, match="offset 1 is not known: the paths do not include"):
            analyze([one.name for one in several.files], root, as_of={name: 1})
    assert not root.exists()


@pytest.mark.long
def test_the_first_and_the_last_moment_have_answers(several: Made) -> None:
    for time in ("0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59.999999+00:00"):
        with several.asked(AsOf.parse(datetime.fromisoformat(time))) as tables:
            for one in choose_answers(NAMES, ANSWERS_BY_NAME):
                ask(one, tables)


@pytest.mark.long
def test_a_damaged_marker_is_no_transaction_that_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = MadeTopic("__consumer_offsets")
    key, value = committed(0, 1, "ours")
    log.add(key, value, producer=7)
    log.end(7, commit=True)
    log.add(*committed(0, 1, "others"))
    log.write(tmp_path / "data")
    [segment] = tmp_path.glob("data/*/*.log")
    data = bytearray(segment.read_bytes())
    marker = int.from_bytes(data[8:12], "big") + 12
    data[marker + int.from_bytes(data[marker + 8 : marker + 12], "big") + 11] ^= 1
    segment.write_bytes(data)
    done = analyze([tmp_path / "data"], tmp_path / "out", spark=spark, answers=["group_offsets"])
    [failed] = done.facts.unanswered
    assert f"byte {marker}: the declared crc is" in failed.reason
    assert not done.facts.answers
