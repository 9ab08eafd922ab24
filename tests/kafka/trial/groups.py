"""Test verdicts about the consumer protocol against a real broker: ``make trial CLIENTS=groups``.

Real groups with the classic protocol run behind a tap. The answers `consumer_protocol` and
`group_protocols` judge them from the capture, the broker's request log and its
`__consumer_offsets`. Then a member of each group joins with the consumer protocol, and the broker
converts the group or refuses. The program exits with 1 if a verdict was wrong. If given names of
groups, or parts of names, the program tries only those groups and writes nothing.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.answers.asking.messages import exchanges
from flexwire.answers.consumer_protocol import consumer_protocol, group_facts
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import open_tables
from flexwire.spark.session import session
from tests.kafka.trial.group_cases import BROKERS, CASES, RELEASE
from tests.kafka.trial.group_rows import GroupRow, write_group_rows
from tests.kafka.trial.moving import TriedGroups, brokers, copy_captures, mover
from tools.pages import group_trial
from tools.pages.files import write_files

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import SparkSession

    from tests.kafka.trial.group_cases import GroupCase
    from tests.kafka.trial.group_rows import Attempt

Verdicts = dict[str, Any]


def main(asked: Collection[str]) -> bool:
    """Try all groups, or those that were requested; return whether every verdict was correct."""
    chosen = [one for one in CASES if not asked or any(name in one.name for name in asked)]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="flexwire-groups-") as place:
        attempts = _tried(chosen, Path(place))
        _say(f"moved after {time.monotonic() - began:.0f} s")
        rows = _rows(chosen, attempts, Path(place))
    if not asked:
        write_group_rows(rows)
        write_files(group_trial.files())
    wrong = [row for row in rows if not row.is_right]
    for row in wrong:
        _say(f"wrong: {row.name}: {row}")
    _say(f"{len(rows) - len(wrong)} of {len(rows)} groups in {time.monotonic() - began:.0f} s")
    return not wrong


def _tried(cases: list[GroupCase], place: Path) -> dict[str, tuple[Attempt, ...]]:
    """Run all groups and move them; write captures and logs to a directory."""
    names = [name for name in BROKERS if any(case.broker == name for case in cases)]
    _say(f"Kafka {RELEASE}, {len(names)} brokers and {len(cases)} groups")
    with brokers(names, place) as at, TriedGroups(cases, at, place, _say) as groups:
        copy_captures(at, place / "before")
        shutil.copy(place / names[0] / "broker.log", place / "requests.log")
        shutil.copytree(place / names[0] / "data", place / "data")
        return groups.move_all()


def _rows(
    cases: list[GroupCase], attempts: dict[str, tuple[Attempt, ...]], place: Path
) -> list[GroupRow]:
    """Judge the groups with every answer."""
    spark = session("flexwire and groups", master="local[2]", memory="1g")
    taps = sorted(place.glob("tap-*"))
    try:
        facts, before = _judged(spark, [place / "before"], place / "out-before")
        _, after = _judged(spark, taps, place / "out-after")
        _, by_log = _judged(spark, [place / "requests.log"], place / "out-log")
        codes = _codes(spark, place / "out-after")
        done = analyze(
            [place / "data"], place / "out-data", spark=spark, answers=["group_protocols"]
        )
        told = done.output.table("answers/group_protocols").to_pylist()
    finally:
        spark.stop()
    by_offsets = {row["group"]: row["verdict"] for row in told}
    return [
        GroupRow(
            case.name, facts[case.name], before[case.name], by_log.get(case.name),
            by_offsets.get(case.name), after[case.name],
            tuple(
                replace(one, code=codes.get(mover(case, number)))
                for number, one in enumerate(attempts[case.name])
            ),
        )
        for case in cases
    ]  # fmt: skip


def _judged(spark: SparkSession, paths: list[Path], out: Path) -> tuple[Verdicts, Verdicts]:
    """Return the facts and the verdict about each group."""
    analyze(paths, out, spark=spark, answers="none")
    tables = open_tables(spark, out)
    facts, rows = group_facts(tables), consumer_protocol(tables)
    if facts is None or rows is None:
        raise RuntimeError(f"{paths} have no groups")
    told = {row["group_id"]: row.asDict(recursive=True) for row in facts.collect()}
    for one in told.values():
        del one["last_time"]
    return told, {row.group_id: row.verdict for row in rows.collect()}


def _codes(spark: SparkSession, out: Path) -> dict[str, int]:
    """Return the error code in the first response to each client that joined."""
    beats = exchanges(open_tables(spark, out), "ConsumerGroupHeartbeat")
    rows = [] if beats is None else beats.where("request.member_epoch = 0").collect()
    rows.sort(key=lambda row: row.asked, reverse=True)
    return {row.client_id: row.response.error_code for row in rows}


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
