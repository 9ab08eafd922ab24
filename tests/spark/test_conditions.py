"""Errors have conditions, which users can read in the errors that Spark raises."""

from __future__ import annotations

import pickle
import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException, PythonException
from pyspark.sql.datasource import DataSourceReader

from flexwire import errors
from flexwire.errors import (
    ARGUMENT_INVALID,
    CONDITIONS,
    DATA_LOST,
    DISK_FULL,
    FAILED,
    FILE_UNREADABLE,
    LOG_DAMAGED,
    MESSAGE_INVALID,
    OUT_OF_MEMORY,
    RECORDS_DAMAGED,
    WORKER_KILLED,
    AnalysisError,
    ArgumentError,
    CaptureError,
    DecodeError,
    FlexwireError,
    RecordError,
)
from flexwire.logs.files import LogQuery, Partition
from flexwire.logs.follower import LogFollower
from flexwire.spark import condition_of
from flexwire.spark.failures import analysis_error
from flexwire.tasks import carries_conditions
from tests.capture.made_logs import MadeSegment, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")


def kinds(of: type[FlexwireError] = FlexwireError) -> Iterator[type[FlexwireError]]:
    yield of
    for kind in of.__subclasses__():
        yield from kinds(kind)


def test_every_class_has_a_condition_and_the_page_has_all() -> None:
    assert {kind.condition for kind in kinds()} <= CONDITIONS.keys()
    names = {name for name in vars(errors) if name.isupper()} - {"CONDITIONS"}
    assert {getattr(errors, name) for name in names} == {*CONDITIONS}
    assert all(getattr(errors, name) == f"FLEXWIRE.{name}" for name in names)
    shown = dict(re.findall(r"^\| `(FLEXWIRE\.[A-Z_]+)` \| ([^|]*) \|$", PAGE, re.MULTILINE))
    assert shown == CONDITIONS


def sent(error: FlexwireError) -> FlexwireError:
    """Return an error as another process would receive it."""
    again: FlexwireError = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    return again


def test_an_error_keeps_its_own_condition_between_processes() -> None:
    for error in (
        CaptureError("gone", source="a.pcap"),
        DecodeError("short", path="a[0]", offset=3),
        ArgumentError("no"),
    ):
        assert "condition" not in vars(sent(error))
        again = sent(error.under(DATA_LOST))
        assert (again.condition, str(again)) == (DATA_LOST, str(error))


@carries_conditions
class Failing(DataSourceReader):
    """Raise an error immediately, or after the first rows."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def partitions(self) -> list[Any]:
        raise self.error

    def read(self, partition: Any) -> Iterator[Any]:
        yield partition
        raise self.error


def text_of(call: Callable[[], object]) -> str:
    """Return an error as one of Spark's Python workers sends it to Java."""
    with pytest.raises(Exception, match=r".*") as caught:
        call()
    return "".join(traceback.format_exception(caught.value))


def test_a_condition_crosses_to_java_in_the_text_of_the_error() -> None:
    lost = CaptureError("gone", source="a.pcap").under(DATA_LOST)
    for call in (Failing(lost).partitions, lambda: list(Failing(lost).read(1))):
        text = text_of(call)
        # The error message is unchanged, and contains the condition once.
        assert text.endswith("flexwire.errors.CaptureError: a.pcap: gone\n[FLEXWIRE.DATA_LOST]\n")
        assert condition_of(PythonException(text)) == DATA_LOST
    assert Failing.read.__name__ == "read"
    # Errors that other code raises are left as they are.
    text = text_of(Failing(KeyError("a")).partitions)
    assert "FLEXWIRE" not in text
    assert condition_of(PythonException(text)) is None
    assert condition_of(ValueError("[FLEXWIRE.DATA_LOST] within a line")) is None


def test_the_class_tells_the_condition_where_no_note_does() -> None:
    def fail() -> None:
        raise RecordError("damaged") from DecodeError("short")

    assert condition_of(PythonException(text_of(fail))) == RECORDS_DAMAGED
    assert condition_of(DecodeError("short")) == MESSAGE_INVALID
    assert condition_of(PythonException("flexwire.errors.NoSuchError: a")) is None


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("flexwire.errors.CaptureError: a: gone\n[FLEXWIRE.DATA_LOST]\n", DATA_LOST),
        ("flexwire.errors.CaptureError: a: gone\n", FILE_UNREADABLE),
        ("flexwire.errors.RecordError: record batch at byte 0: a\n", RECORDS_DAMAGED),
        ("MemoryError: a\n", OUT_OF_MEMORY),
        ("OSError: [Errno 28] No space left on device\n", DISK_FULL),
        ("Python worker exited unexpectedly (crashed)", WORKER_KILLED),
        ("KeyError: 'a'\n", FAILED),
    ],
)
def test_an_analysis_that_fails_has_the_condition_of_its_cause(text: str, condition: str) -> None:
    stack = 'Traceback (most recent call last):\n  File "a.py", line 1\n' + text
    error = analysis_error("Reading", PythonException(stack), "1g")
    assert isinstance(error, AnalysisError)
    assert error.condition == condition
    assert "FLEXWIRE" not in str(error)


def test_lost_records_have_a_condition(tmp_path: Path) -> None:
    MadeSegment(0).write(tmp_path / "a-0")
    follower = LogFollower([tmp_path], LogQuery())
    with pytest.raises(CaptureError) as lost:
        follower.latest({Partition("a", 0): 3})
    assert lost.value.condition == DATA_LOST


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_errors_of_spark_have_the_condition_of_what_caused_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    segment = MadeSegment(0)
    segment.add(plain(0, 10))
    segment.write(tmp_path / "logs" / "a-0")
    capture = tmp_path / "a.pcap"
    capture.write_bytes(b"not a capture")

    def failed(name: str, path: Path, **options: str) -> str | None:
        with pytest.raises(PySparkException) as caught:
            spark.read.format(name).options(**options).load(str(path)).collect()
        return condition_of(caught.value)

    logs = tmp_path / "logs"
    assert failed("kafka-log", logs, starting="1") == ARGUMENT_INVALID
    assert failed("kafka-log", logs, topic="b") == ARGUMENT_INVALID
    assert failed("kafka-log", tmp_path / "nothing") == FILE_UNREADABLE
    assert failed("kafka-capture", capture) == FILE_UNREADABLE

    def stream() -> None:
        rows = spark.readStream.format("kafka-log").load(str(logs)).writeStream.format("noop")
        rows = rows.option("checkpointLocation", str(tmp_path / "out"))
        rows.trigger(availableNow=True).start().awaitTermination()

    stream()
    for file in (logs / "a-0").iterdir():
        file.unlink()
    later = MadeSegment(20)
    later.add(plain(20, 10))
    later.write(logs / "a-0")
    with pytest.raises(PySparkException) as lost:
        stream()
    assert condition_of(lost.value) == DATA_LOST
    [file] = (logs / "a-0").glob("*.log")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert failed("kafka-log", logs) == LOG_DAMAGED
