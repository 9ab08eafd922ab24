"""Captures in a bucket are analyzed, and unreadable files are reported."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

from flexwire import inputs
from flexwire.cli.analyze import analyze as command
from flexwire.errors import AnalysisError, CaptureError, FlexwireError, StorageError
from flexwire.facts.facts import UnreadableFile
from flexwire.inputs import Inputs, capture_sources, input_sources
from flexwire.spark.analyze import analyze
from flexwire.spark.answers import audit
from flexwire.spark.archive import with_archive
from flexwire.spark.dataframes import table
from flexwire.spark.failures import analysis_error
from flexwire.spark.inputs import output_directory
from flexwire.spark.session import session
from flexwire.spark.settings import SMALL_CONF, SMALL_JAVA
from flexwire.storage.input_file import InputFile
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey.surveyed_files import SHOWN, UnreadableFiles
from flexwire.tables.output import output
from tests.capture.interleaved import CLEAN, write_capture
from tests.spark.equality import assert_equal_tables, facts_of, schemas_of, tables_of
from tests.storage.servers import s3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

AS_ONE = "from tests.spark.test_urls import run_and_read; run_and_read"
WRONG = "not a capture, whatever the name"


@pytest.fixture
def captures(tmp_path: Path) -> list[Path]:
    return write_capture(tmp_path / "captures", 5, replace(CLEAN, files=2))


@pytest.fixture
def bucket() -> Iterator[str]:
    with s3() as url:
        yield url


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process whose Spark has this environment, then read the output."""
    command = [sys.executable, "-c", f"{AS_ONE}({list(map(str, arguments))})"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run_and_read(arguments: list[str]) -> None:
    """Analyze in a session that continues, and let that session count the written rows."""
    conf = with_archive(SMALL_JAVA | SMALL_CONF)
    spark = session("flexwire tests", master="local[2]", memory="1g", conf=conf)
    command.main(arguments, standalone_mode=False)
    out = arguments[arguments.index("--out") + 1]
    frames = table(spark, out, "frames", ["direction"])
    requests = frames.where("direction = 'request'").count()
    findings = audit(spark, out).count()
    sys.stdout.write(json.dumps({"requests": requests, "findings": findings}) + "\n")
    spark.stop()


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_from_a_bucket_into_a_bucket_is_the_same_as_here(
    spark: SparkSession, captures: list[Path], bucket: str, tmp_path: Path
) -> None:
    place = OutputDirectory(f"{bucket}/day")
    for file in captures:
        place.write(file.name, file.read_bytes())
    (tmp_path / "notes.pcap").write_text(WRONG)
    wrong = f"{tmp_path / 'notes.pcap'}"
    out = f"{bucket}/out"
    there = [f"{bucket}/day/*.pcapng", wrong]
    ran = run(*there, "--out", out, "--skip-unreadable", "--record-bytes")
    assert ran.returncode == 0, ran.stderr
    assert f"1 file was left out as unreadable: {wrong}: neither pcap nor pcapng" in ran.stdout
    found = output(out)
    assert f"Tables: {found.where('tables')}\nReport: {found.where('report.html')}\n" in ran.stdout
    # The bucket contains nothing else.
    others = {"current.json", f"_staging/{found.place.url.rpartition('/')[2]}"}
    entries = [one.name for one in OutputDirectory(out).entries()]
    assert {name for name in entries if not name.startswith("runs/")} == others
    for entry in found.place.entries():
        assert not entry.name.startswith("_")
        OutputDirectory(str(tmp_path / "there")).write(entry.name, found.read(entry.name))
    analyze([*captures, wrong], tmp_path / "here", spark=spark, skip_unreadable=True,
                   record_bytes=True)  # fmt: skip
    tables = [tables_of(tmp_path / name) for name in ("here", "there")]
    packets = [table.pop("packets") for table in tables]
    assert_equal_tables(tables[0], tables[1], without={"source"})
    assert schemas_of(tmp_path / "here") == schemas_of(tmp_path / "there")
    urls = [f"{bucket}/day/{file.name}" for file in captures]
    counted = [sorted((row["packets"], row["reason"] or "") for row in rows) for rows in packets]
    assert counted[0] == counted[1]
    assert {row["source"] for row in packets[1]} == {wrong, *urls}
    assert {row["source"] for row in tables[1]["frames"]} == set(urls)
    told = json.loads((tmp_path / "there/tables/_SUCCESS").read_text())
    assert sorted(told["sources"]) == sorted([wrong, *urls])
    # The rows that Spark read from the bucket in the same process.
    counts = json.loads(ran.stdout.splitlines()[-1])
    assert counts == {
        "requests": found.dataset("frames").count_rows(pc.field("direction") == "request"),
        "findings": len(tables[0]["audit"]),
    }


@pytest.mark.spark
@pytest.mark.slow
def test_what_is_not_a_capture_fails_the_analysis_unless_it_is_skipped(
    spark: SparkSession, captures: list[Path], tmp_path: Path
) -> None:
    wrong = [tmp_path / "notes.pcap", tmp_path / "readme.pcap"]
    for one in wrong:
        one.write_text(WRONG)
    given = [*captures, *wrong]
    with pytest.raises(CaptureError, match=r"notes\.pcap: neither .*--skip-unreadable") as raised:
        analyze(given, tmp_path / "out", spark=spark)
    assert "and 1 other, out of 4 files" in str(raised.value)
    assert not (tmp_path / "out").exists()
    done = analyze(given, tmp_path / "out", spark=spark, skip_unreadable=True)
    assert done.facts.unreadable_files == 2
    assert [one.source for one in done.facts.unreadable] == list(map(str, wrong))
    facts = facts_of(tmp_path / "out")
    assert facts["unreadable"][0].keys() == {"source", "reason"}
    assert "2 files could not be read" in done.report.read_text()
    zero = {row["source"]: row["reason"] for row in tables_of(tmp_path / "out")["packets"]
            if row["reason"] and not row["packets"]}  # fmt: skip
    assert zero == {one.source: one.reason for one in done.facts.unreadable}


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


@pytest.mark.spark
@pytest.mark.parametrize(
    ("change", "what"),
    [(cut_off, "the file changed after it was"), (Path.unlink, "the file was removed after")],
)
def test_a_file_that_changes_during_the_analysis_fails_it_in_a_sentence(
    spark: SparkSession,
    captures: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
    what: str,
) -> None:
    def listed_then_changed(given: list[Path]) -> Inputs:
        found = input_sources(given)
        change(captures[1])
        return found

    monkeypatch.setattr("flexwire.spark.analyze.input_sources", listed_then_changed)
    with pytest.raises(AnalysisError) as raised:
        analyze(captures, tmp_path / "out", spark=spark, skip_unreadable=True)
    told = str(raised.value)
    assert told.startswith(f"Decoding captures: {captures[1]}: cannot read: {what}")
    assert not (tmp_path / "out").exists()


def test_an_output_is_a_directory_here_or_in_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pcap").write_text(WRONG)
    for out, told in (
        ("memory://out", "expected a directory or an object store that every process"),
        ("S3:/bucket", "expected two slashes after the scheme: s3://"),
        ("ftp://host/out", "expected a path, file://, s3://"),
        ("s3://key:secret@bucket/out", "the URL contains a key or password"),
    ):
        with pytest.raises(StorageError, match=told):
            analyze([tmp_path], out)
    assert [one.name for one in tmp_path.iterdir()] == ["a.pcap"]
    assert output_directory("a:b/c").path == tmp_path / "a:b/c"
    assert output_directory(f"file://{tmp_path}/out").path == tmp_path / "out"


def test_an_output_that_cannot_be_written_says_so_before_spark_starts(
    captures: list[Path], bucket: str
) -> None:
    out = bucket.replace("captures", "missing") + "/out"
    with pytest.raises(StorageError, match=r"s3://missing/out/_lease/1: cannot write: "):
        analyze(captures, out)


def test_a_bucket_that_is_missing_says_so_before_spark_starts(tmp_path: Path, bucket: str) -> None:
    with pytest.raises(FlexwireError, match="s3://missing/day"):
        analyze([bucket.replace("captures", "missing") + "/day/"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_option_that_does_nothing_any_more_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_text(WRONG)
    with (
        pytest.warns(DeprecationWarning, match="by_objects no longer has an effect"),
        pytest.raises(StorageError, match="expected a path, file://, s3://"),
    ):
        analyze([tmp_path], "ftp://host/out", by_objects=True)


def test_two_files_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    two = [InputFile(f"s3://bucket/a?token={one}", 5, one) for one in "ab"]
    monkeypatch.setattr(inputs, "list_captures", lambda _: two)
    with pytest.raises(StorageError, match=r"s3://bucket/a\?token=…: two files differ only"):
        capture_sources([])


def test_one_error_says_how_many_files_cannot_be_read() -> None:
    errors = [CaptureError("no", source=f"{number:04}.pcap") for number in range(1000)]
    found = UnreadableFiles.of(errors)
    assert (found.count, len(found.shown)) == (1000, SHOWN)
    assert found.shown[0] == UnreadableFile("0000.pcap", "no")
    with pytest.raises(
        CaptureError, match=r"0000\.pcap: no; .* and 999 others, out of 5,000 files"
    ):
        found.check(5000, skip=False)
    found.check(5000, skip=True)
    for skip in (False, True):
        with pytest.raises(CaptureError, match=r"0000\.pcap: no; none of the 1,000 files can be"):
            found.check(1000, skip=skip)
        with pytest.raises(CaptureError) as raised:
            UnreadableFiles.of(errors[:1]).check(1, skip=skip)
        assert str(raised.value) == "0000.pcap: no"
    UnreadableFiles().check(5, skip=False)


def test_what_a_task_says_of_a_file_is_the_sentence() -> None:
    trace = "Traceback (most recent call last):\n  File x\nflexwire.errors.StorageError: a: gone"
    assert str(analysis_error("Decoding", ValueError(trace), None)) == "Decoding: a: gone"
