"""`flexwire vectors check` has the documented arguments, output and exit codes."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from flexwire.cli.app import app
from tests.codec_vectors.kept import FEW

pytestmark = pytest.mark.own_process
CODEC = [sys.executable, str(Path(__file__).with_name("codec.py"))]
BATCHES = "records/magic-2-none-headers"
SOME = ["--case", "HeartbeatRequest/*/full", "--case", "records/magic-2*-0"]


def check(*words: str, package: Path | None = FEW) -> Result:
    given = [str(package)] if package is not None else []
    return CliRunner().invoke(app, ["vectors", "check", *given, *words])


def codec(habit: str = "good") -> list[str]:
    return ["--codec", shlex.join([*CODEC, habit])]


@pytest.mark.long
@pytest.mark.slow
def test_a_good_codec_ends_with_0_and_one_line() -> None:
    done = check(*SOME, *codec())
    assert done.output == (
        "2 of 2 messages have neither deviations nor remarks\n"
        "Apache Kafka 4.4.0: 11 cases: 11 passed\n"
    )
    assert done.exit_code == 0


@pytest.mark.long
def test_a_deviation_ends_with_100_and_is_named() -> None:
    done = check(*SOME, "--decode-only", *codec("off"))
    assert done.exit_code == 100
    assert done.output.splitlines() == [
        "message           passed  failed  refused  taken  remarks  unsupported  not asked",
        "HeartbeatRequest               5",
        "record batches                 1",
        "",
        "HeartbeatRequest/0/full: decode: failed: generationId: expected 116, got 117",
        "HeartbeatRequest/1/full: decode: failed: generationId: expected 116, got 117",
        f"{BATCHES}-0: decode-records: failed: batches[0].magic: expected 2, got 3",
        "... and 3 more; --format json lists all deviations",
        "Apache Kafka 4.4.0: 6 cases: 6 failed",
    ]
    every = check(*SOME, "--decode-only", "--every-version", *codec("off"))
    assert "HeartbeatRequest 4               1" in every.output


@pytest.mark.long
def test_json_has_every_deviation() -> None:
    done = check(*SOME, "--decode-only", "--format", "json", *codec("off"))
    told = json.loads(done.output)
    assert told["command"] == [*CODEC, "off"]
    assert len(told["deviations"]) == told["counts"]["failed"] == 6
    assert told["deviations"][-1]["do"] == "decode-records"


def test_a_command_is_split_as_a_shell_does_and_run_by_none() -> None:
    words = ["--case", "HeartbeatRequest/0/full", "--decode-only", "--codec"]
    script = 'printf \'{"unsupported":"%s"}\\n\' "$1"; cat > /dev/null'
    done = check(*words, shlex.join(["sh", "-c", script, "x", "two words"]))
    assert done.output.endswith("1 unsupported\n")
    assert "cannot start" in str(check(*words, "true;false").exception)


def test_limits_are_those_that_are_given() -> None:
    words = ["--case", "HeartbeatRequest/*/full", "--decode-only", "--starts", "2"]
    done = check(*words, "--start-seconds", "0.2", "--codec", "sleep 3600")
    assert done.exit_code == 100
    assert "no answer within 0.2 s" in done.output
    assert done.output.endswith("5 cases: 2 failed, 3 not asked\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--case", "Hartbeat*", "--codec", "true"], "no case matches Hartbeat*"),
        ([], "Missing option '--codec'"),
        (["--codec", "'true"], "--codec: No closing quotation"),
        (["--codec", ""], "--codec: give a program"),
        (["--starts", "0", "--codec", "true"], "0 is not in the range"),
        (["--case-seconds", "0", "--codec", "true"], "0.0 is not in the range"),
    ],
)
def test_a_slip_of_usage_is_told(words: list[str], told: str) -> None:
    done = check(*words)
    assert done.exit_code == 2
    assert told in done.output


def test_what_cannot_be_read_or_started_is_told(tmp_path: Path) -> None:
    for command, package, told in (
        ("true", tmp_path, "specify a directory of vectors"),
        ("true", None, "install flexwire-vectors or specify a directory"),
        ("./no-such-codec", FEW, "./no-such-codec: cannot start: No such file or directory"),
    ):
        done = check("--codec", command, package=package)
        assert done.exit_code == 1
        assert told in str(done.exception)
