"""If some frames take many megabytes, memory use remains bounded, and failures are reported."""

from __future__ import annotations

import gzip
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import AnalysisError
from flexwire.spark.analyze import analyze
from flexwire.spark.publishing.commit import run_tasks
from tests.spark.traffic import Traffic, made, request

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.spark.publishing.task_output import TaskOutput

pytestmark = pytest.mark.spark

MIB = 1024 * 1024


def _one_capture(directory: Path) -> Path:
    traffic = Traffic(directory)
    traffic.send(traffic.connect(), "request", request(made("MetadataRequest"), 12, 1))
    traffic.close()
    return directory


def _broken_plan(spark: SparkSession, *_: object) -> Any:
    return spark.range(1).select("absent")


def _broken_task(spark: SparkSession, _: object, task_output: TaskOutput, *__: int) -> Any:
    return run_tasks(spark, 1, _raise, task_output)


def _raise(_: int, __: TaskOutput) -> None:
    error = ValueError("planted")
    error.add_note("while testing")
    raise error


@pytest.mark.parametrize(
    ("broken", "told"),
    [(_broken_task, "ValueError: planted; while testing"), (_broken_plan, "org.apache.spark.sql.")],
)
def test_what_spark_cannot_do_is_told_in_a_line_with_its_stage(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    broken: Any,
    told: str,
) -> None:
    monkeypatch.setattr("flexwire.spark.analyze.write_tables", broken)
    captures = [_one_capture(tmp_path / "capture")]
    with pytest.raises(AnalysisError) as error:
        analyze(captures, tmp_path / "out", spark=spark)
    text = str(error.value)
    assert text.startswith(f"Decoding captures: Spark failed with {told}")
    assert "\n" not in text
    assert len(text) < 800
    assert capfd.readouterr().err == ""
    # The session continues, with its settings.
    assert spark.range(3).count() == 3


# This is Python's own output. Java and its workers, which may end later, use the other stream.
_SAID = "import sys; sys.stderr = sys.stdout"

# In this task, Java must create a value that does not fit into a heap of this size.
_LARGE = f"""
{_SAID}
from flexwire.errors import AnalysisError
from flexwire.spark import analyze
analyze.write_tables = lambda spark, *_: spark.range(1).selectExpr(
    "length(repeat('x', 2000000000 + int(id)))"
).collect()
try:
    analyze.analyze([sys.argv[1]], sys.argv[2], memory="512m")
except AnalysisError as error:
    sys.exit(f"AnalysisError: {{error}}")
"""


@pytest.fixture(scope="module")
def one_large_frame(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a compressed capture of a frame that does not fit twice into a small heap."""
    directory = tmp_path_factory.mktemp("large")
    traffic = Traffic(directory / "capture")
    traffic.writer.max_bytes = 2**30
    large = request(made("MetadataRequest"), 12, 1) + bytes(200 * MIB)
    traffic.send(traffic.connect(), "request", large)
    traffic.close()
    (written,) = (directory / "capture").iterdir()
    packed = directory / "capture.pcapng.gz"
    packed.write_bytes(gzip.compress(written.read_bytes(), 1))
    written.unlink()
    return packed


@pytest.mark.long
def test_java_without_memory_is_told_with_the_remedy(tmp_path: Path) -> None:
    capture = _one_capture(tmp_path / "capture")
    command = [sys.executable, "-c", _LARGE, str(capture), str(tmp_path / "out")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    (line,) = answer.stdout.splitlines()
    assert line.startswith("AnalysisError: Decoding captures: Java ran out of memory")
    assert "--memory 1024m" in line


# Java ends after it has received a request, but before it answers.
_KILLED = f"""
{_SAID}
import logging, signal
from threading import Timer
from pyspark import SparkContext
from flexwire.errors import AnalysisError
from flexwire.spark.settings import SMALL_JAVA
from flexwire.spark.archive import with_archive
from flexwire.spark.failures import stop_at_end
from flexwire.spark.session import session
try:
    with stop_at_end(session(memory="512m", conf=with_archive(SMALL_JAVA))):
        java = SparkContext._gateway.proc
        java.send_signal(signal.SIGSTOP)
        Timer(0.5, java.kill).start()
        raise AnalysisError("Java ran out of memory")
except AnalysisError as error:
    # As a thread of Py4J's says it that was telling Java what to forget.
    logging.getLogger().handle(logging.makeLogRecord({{"module": "java_gateway", "msg": "gone"}}))
    sys.exit(f"AnalysisError: {{error}}")
"""


@pytest.mark.long
def test_a_session_whose_java_has_ended_is_stopped_without_a_word() -> None:
    command = [sys.executable, "-c", _KILLED]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stdout == "AnalysisError: Java ran out of memory\n"


@pytest.mark.long
def test_java_never_holds_a_frame_that_columns_read(one_large_frame: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flexwire", "analyze", str(one_large_frame)]
    command += ["--memory", "512m", "--out", str(tmp_path / "out")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, ""), answer.stderr
    assert answer.stdout.startswith("1 frame on 1 connection, 209,715,")
