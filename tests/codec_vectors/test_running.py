"""A codec receives each case. Whatever it does, the run ends with a verdict for each case."""

from __future__ import annotations

import ast
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import flexwire.vectors
from flexwire.errors import ArgumentError, VectorsError
from flexwire.vectors import CodecLimits, CodecResults, Outcome, Vector, Verdict, run_codec
from flexwire.vectors.judging import Direction
from flexwire.vectors.running import question
from tests.codec_vectors.kept import few, vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.own_process
CODEC = Path(__file__).with_name("codec.py")
LIMITS = CodecLimits(case_seconds=300, start_seconds=300)
SHORT = CodecLimits(case_seconds=0.5, start_seconds=300)
NAMES = ("HeartbeatRequest/3/plain", "HeartbeatRequest/3/full", "HeartbeatRequest/3/random-0")


def chosen(*names: str) -> list[Vector]:
    return [vectors()[name] for name in names or NAMES]


def run(
    habit: str, given: Sequence[Vector] | None = None, limits: CodecLimits = LIMITS, **more: Any
) -> tuple[CodecResults, list[Verdict]]:
    told: list[Verdict] = []
    command = [sys.executable, str(CODEC), habit]
    found = run_codec(command, given or chosen(), limits=limits, on_verdict=told.append, **more)
    assert found.counts.total() == len(told)
    return found, told


def outcomes(habit: str, **more: Any) -> list[Outcome]:
    return [one.outcome for one in run(habit, encode=False, **more)[1]]


@pytest.mark.long
@pytest.mark.slow
def test_flexwire_reads_and_writes_every_kept_case_as_kafka_does() -> None:
    # Kafka refuses a batch length of 2**31 - 1; flexwire reports that the batch is cut off.
    command = [sys.executable, str(CODEC), "lenient"]
    found = run_codec(command, few(), limits=LIMITS)
    assert {one.vector.case.split("/", 2)[-1] for one in found.deviations} == {
        "hostile/batch-length-highest"
    }
    assert {one.vector.case.split("/", 2)[-1] for one in found.remarks} == {
        "hostile/record-count-less"
    }
    assert found.starts == 1
    strict = run_codec([sys.executable, str(CODEC)], few(), limits=LIMITS)
    assert [one.vector for one in strict.deviations] == [one.vector for one in found.deviations]
    assert strict.counts[Outcome.OTHERWISE] == 0
    assert strict.counts[Outcome.STRICTER] > 0


@pytest.mark.long
def test_bytes_written_again_are_judged_as_their_content_is() -> None:
    every = [one for one in few().vectors() if one.message is not None]
    by_hex, by_json = run("hex", every)[0], run("good", every)[0]
    assert by_hex.counts == by_json.counts


def test_unknown_tagged_fields_may_be_dropped() -> None:
    found, _ = run("forgetful", chosen("HeartbeatRequest/4/unknown-tags"), encode=False)
    assert found.counts == {Outcome.DROPPED: 1}
    assert found.is_clean


def test_a_codec_that_takes_or_refuses_all_is_found_out() -> None:
    every = list(few().vectors())
    refusing, _ = run("refusing", every, encode=False)
    assert refusing.counts[Outcome.REFUSED] == sum(one.expected == "take" for one in every)
    assert refusing.counts[Outcome.TAKEN] == 0
    taking, _ = run("taking", every, encode=False)
    assert taking.counts[Outcome.TAKEN] == sum(one.expected == "refuse" for one in every)
    assert taking.counts[Outcome.REFUSED] == 0


def test_each_direction_of_a_wrong_codec_fails() -> None:
    found, told = run("off")
    assert [one.direction for one in told] == [Direction.DECODE, Direction.ENCODE] * 3
    assert found.counts[Outcome.FAILED] == 6


@pytest.mark.parametrize("habit", ["mute", "undecided", "listing", "other", "chatty"])
def test_an_answer_that_is_none_fails(habit: str) -> None:
    assert set(outcomes(habit)) == {Outcome.FAILED}


def test_a_codec_may_say_that_it_does_not_know_a_message() -> None:
    assert set(outcomes("ignorant")) == {Outcome.UNSUPPORTED}
    assert run("ignorant")[0].is_clean


def test_what_it_writes_to_standard_error_stops_nothing() -> None:
    assert set(outcomes("noisy")) == {Outcome.PASSED}


@pytest.mark.parametrize(
    ("habit", "told"),
    [
        ("crashing", "the codec exited with status 7; its standard error: no room"),
        ("silent", "no answer within 0.5 s"),
        ("endless", "the answer is longer than 100000 bytes"),
    ],
)
def test_a_fault_costs_its_case_alone(habit: str, told: str) -> None:
    limits = CodecLimits(case_seconds=0.5, start_seconds=300, line_bytes=100_000)
    if habit == "endless":
        limits = CodecLimits(case_seconds=300, start_seconds=300, line_bytes=100_000)
    found, verdicts = run(habit, limits=limits, encode=False)
    assert [one.outcome for one in verdicts] == [Outcome.PASSED, Outcome.FAILED, Outcome.PASSED]
    assert verdicts[1].reason == told
    assert found.starts == 2
    assert not found.is_clean


def test_a_codec_is_started_so_often_and_no_more() -> None:
    given = chosen("HeartbeatRequest/3/full") * 5
    limits = CodecLimits(case_seconds=300, start_seconds=300, starts=2)
    found, verdicts = run("crashing", given, limits, encode=False)
    assert [one.outcome for one in verdicts] == [Outcome.FAILED] * 2 + [Outcome.NOT_ASKED] * 3
    assert found.starts == 2
    assert not found.is_clean


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exit 0", "the codec exited with status 0"),
        ("exec <&-; exec >&-; sleep 3600", "the codec closed its standard output"),
        ("kill -9 $$", "the codec was terminated by SIGKILL"),
        ("read line; echo", "the line is not a valid answer"),
        ('printf \'{"hex":""}\\n{"hex":""}\\n\'; cat >/dev/null', "expected "),
    ],
)
def test_whatever_a_command_does_the_case_fails_with_the_reason(script: str, told: str) -> None:
    results = run_codec(["sh", "-c", script], chosen(NAMES[0]), limits=LIMITS, encode=False)
    [verdict] = results.deviations
    assert told in verdict.reason


def test_a_line_that_nobody_asked_for_is_a_fault() -> None:
    script = 'while read line; do printf \'{"unsupported":""}\\n{"hex":""}\\n\'; done'
    told: list[Verdict] = []
    run_codec(["sh", "-c", script], chosen(), limits=LIMITS, encode=False, on_verdict=told.append)
    assert [one.outcome for one in told] == [
        Outcome.UNSUPPORTED, Outcome.FAILED, Outcome.UNSUPPORTED
    ]  # fmt: skip
    assert "more than one line" in told[1].reason


def test_a_long_line_reaches_a_codec_that_reads_slowly() -> None:
    long = msgspec.structs.replace(vectors()[NAMES[0]], hex="00" * 3_000_000)
    script = 'sleep 0.2; read -r line; printf \'{"unsupported":"%s"}\\n\' "${#line}"'
    told: list[Verdict] = []
    run_codec(["sh", "-c", script], [long], limits=LIMITS, encode=False, on_verdict=told.append)
    assert int(told[0].reason) == len(question(long, Direction.DECODE)) - 1


def test_a_codec_that_does_not_read_its_line_is_no_deadlock() -> None:
    long = msgspec.structs.replace(vectors()[NAMES[0]], hex="00" * 3_000_000)
    limits = CodecLimits(case_seconds=0.5, start_seconds=0.5)
    results = run_codec(["sleep", "3600"], [long], limits=limits, encode=False)
    assert "no answer within 0.5 s" in results.deviations[0].reason


def test_what_a_codec_started_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f'sleep 3600 & echo $! > {pid}; read line; echo \'{{"hex":""}}\'; wait'
    run_codec(["sh", "-c", script], chosen(NAMES[0]), limits=LIMITS, encode=False)
    # The run sends the signal at its end; on a busy machine, it may arrive late.
    end = time.monotonic() + 300
    while _is_running(pid.read_text().strip()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not _is_running(pid.read_text().strip())


def _is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_no_descriptor_is_left_open() -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    run("crashing", chosen("HeartbeatRequest/3/full") * 5, encode=False)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_command_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for command in ([str(tmp_path / "none")], [str(file)], [str(tmp_path)], ["a\0b"]):
        with pytest.raises(VectorsError, match="cannot start"):
            run_codec(command, chosen())


def test_arguments_are_checked() -> None:
    with pytest.raises(ArgumentError, match="command"):
        run_codec("./codec", chosen())
    with pytest.raises(ArgumentError, match="command"):
        run_codec([], chosen())
    for name in ("case_seconds", "start_seconds", "line_bytes", "starts"):
        with pytest.raises(ArgumentError, match=name):
            CodecLimits(**{name: 0})


def test_a_question_does_not_tell_what_is_expected() -> None:
    for vector in few().vectors():
        asked = json.loads(question(vector, Direction.DECODE))
        assert set(asked) <= {
            "case", "do", "message", "type", "apiKey", "version", "headerVersion", "hex"
        }  # fmt: skip
    vector = vectors()["MetadataRequest/12/full"]
    assert json.loads(question(vector, Direction.ENCODE)) == {
        "case": "MetadataRequest/12/full",
        "do": "encode",
        "message": "MetadataRequest",
        "type": "request",
        "apiKey": 3,
        "version": 12,
        "headerVersion": 2,
        "json": vector.json,
    }


def test_results_say_where_a_codec_deviates() -> None:
    found, _ = run("off", manifest=few().manifest)
    told = found.to_json()
    assert (told["clean"], told["kafka"], told["vectors"]) == (False, "4.4.0", "4.4.0.1")
    assert {name: count for name, count in told["counts"].items() if count} == {"failed": 6}
    assert told["versions"] == [{"message": "HeartbeatRequest", "version": 3, **told["counts"]}]
    assert {one["outcome"] for one in told["deviations"]} == {"failed"}
    assert [one["case"] for one in told["deviations"]] == [one for one in NAMES for _ in range(2)]
    lines = list(found.text())
    assert lines[0].split() == [
        "message", "passed", "failed", "refused", "taken", "remarks", "unsupported", "not", "asked"
    ]  # fmt: skip
    assert lines[1].split() == ["HeartbeatRequest", "6"]
    assert lines[-2:] == [
        "... and 4 more; --format json lists all deviations",
        "Apache Kafka 4.4.0: 6 cases: 6 failed",
    ]
    assert list(found.text(every_version=True))[1].split() == ["HeartbeatRequest", "3", "6"]


def test_what_a_codec_says_reaches_no_terminal_as_it_is() -> None:
    script = "printf '\\033[2J' >&2; exit 1"
    found = run_codec(["sh", "-c", script], chosen(NAMES[0]), limits=LIMITS, encode=False)
    assert "\\u001b[2J" in "".join(found.text())
    assert "\x1b" not in "".join(found.text())


def test_the_room_imports_no_codec() -> None:
    room = Path(flexwire.vectors.__file__).parent
    for path in room.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flexwire."):
                assert (node.module or "").split(".")[1] in {
                    "arguments", "errors", "printable", "vectors"
                }  # fmt: skip
