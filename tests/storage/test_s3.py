"""Tests for S3 only: parts, pages, credentials, and servers that fail during a request."""

from __future__ import annotations

import multiprocessing
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import fsspec
import pytest
from moto.s3.models import S3Backend
from pyarrow import fs

from flexwire.errors import CaptureError, StorageError
from flexwire.storage import filesystems, uploads
from flexwire.storage.file_search import list_captures
from flexwire.storage.input_file import InputFile
from flexwire.storage.output_directory import OutputDirectory
from tests.storage import servers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PART = 5 << 20  # S3's minimum
PIECES = ("x" * PART, "y" * PART, "z")


@pytest.fixture(scope="module")
def bucket() -> Iterator[OutputDirectory]:
    with servers.s3() as url:
        yield OutputDirectory(url)


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(uploads, "PART_BYTES", PART)
    file = tmp_path / "large"
    file.write_text("".join(PIECES))
    return file


def unfinished(place: OutputDirectory) -> list[Any]:
    opened = filesystems.open_store(place.url)
    page = opened.files.call_s3("list_multipart_uploads", Bucket=servers.BUCKET)
    return list(page.get("Uploads", ()))


def test_a_large_file_goes_in_parts(bucket: OutputDirectory, large: Path) -> None:
    bucket.put(large, "large")
    (entry,) = bucket.entries("large")
    assert entry.version.endswith("-3")
    assert bucket.read("large") == large.read_bytes()


@pytest.mark.long
@pytest.mark.slow
def test_parts_of_an_upload_that_fails_are_aborted(
    bucket: OutputDirectory, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.write("failing", b"old")
    upload = S3Backend.upload_part

    def failing(self: S3Backend, *args: Any, **kwargs: Any) -> Any:
        if 3 in (*args, *kwargs.values()):
            raise ValueError
        return upload(self, *args, **kwargs)

    monkeypatch.setattr(S3Backend, "upload_part", failing)
    with pytest.raises(StorageError, match="captures/failing: cannot write: "):
        bucket.put(large, "failing")
    assert unfinished(bucket) == []
    assert bucket.read("failing") == b"old"


def test_parts_of_a_writer_that_was_killed_are_swept(bucket: OutputDirectory) -> None:
    files = filesystems.open_store(bucket.url).files
    for key in ("tables/part", "others/part"):
        files.call_s3("create_multipart_upload", Bucket=servers.BUCKET, Key=key)
    tables = bucket.child("tables")
    # moto reports the same start for every upload: one second in 2010.
    (begun,) = {upload["Initiated"] for upload in unfinished(bucket)}
    assert tables.sweep(begun) == 0
    assert tables.sweep(datetime.now(UTC)) == 1
    assert [upload["Key"] for upload in unfinished(bucket)] == ["others/part"]
    assert bucket.sweep(datetime.now(UTC)) == 1


@pytest.mark.long
@pytest.mark.slow
def test_more_objects_than_a_page_holds(bucket: OutputDirectory) -> None:
    backend: Any = servers.backend()
    for number in range(1005):
        backend.put_object(servers.BUCKET, f"many/{number:04}.pcap", b"x")
    place = bucket.child("many")
    names = [entry.name for entry in place.entries()]
    assert names == [f"{number:04}.pcap" for number in range(1005)]
    assert len(list_captures([f"{place.url}/"])) == 1005
    place.remove(names)
    assert list(place.entries()) == []


def test_what_another_process_writes_is_seen_at_once(bucket: OutputDirectory) -> None:
    backend: Any = servers.backend()
    files, directory = bucket.child("seen").arrow()
    for names in (["a"], ["a", "b"]):
        backend.put_object(servers.BUCKET, f"seen/{names[-1]}", b"")
        assert bucket.exists(f"seen/{names[-1]}")
        assert [one.base_name for one in files.get_file_info(fs.FileSelector(directory))] == names


def test_marks_of_directories_are_no_files(bucket: OutputDirectory) -> None:
    backend: Any = servers.backend()
    backend.put_object(servers.BUCKET, "marked/", b"")
    backend.put_object(servers.BUCKET, "marked/deep.pcap/", b"")
    assert list(bucket.child("marked").entries()) == []
    with pytest.raises(CaptureError, match="no file found"):
        list_captures([f"{bucket.url}/marked"])


def test_a_file_that_changes_between_two_pieces(bucket: OutputDirectory) -> None:
    bucket.write("changing", b"x" * 10)
    (entry,) = bucket.entries("changing")
    with bucket.source(entry).open() as file:
        bucket.write("changing", b"y" * 10)
        with pytest.raises(StorageError, match="changed after it was listed"):
            file.read()


def test_a_bucket_that_is_missing(bucket: OutputDirectory) -> None:
    missing = OutputDirectory("s3://missing")
    with pytest.raises(
        StorageError, match=r"s3://missing/a: cannot write: .*bucket does not exist"
    ):
        missing.write("a", b"")
    with pytest.raises(StorageError, match="s3://missing/a: cannot read: "):
        missing.read("a")
    assert not missing.exists("a")
    assert list(missing.entries()) == []
    with pytest.raises(CaptureError, match="s3://missing/a: no file found"):
        list_captures(["s3://missing/a"])
    assert list(bucket.entries("nothing")) == []


def _read(one: InputFile, answers: Any) -> None:
    answers.put(one.open().read())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_opens_its_own(bucket: OutputDirectory) -> None:
    # Spark forks its workers.
    bucket.write("forked", b"data")
    (entry,) = bucket.entries("forked")
    context = multiprocessing.get_context("fork")
    answers: Any = context.Queue()
    process = context.Process(target=_read, args=(bucket.source(entry), answers))
    process.start()
    assert answers.get(timeout=300) == b"data"
    process.join()


def said(way: str, monkeypatch: pytest.MonkeyPatch, **more: str | None) -> list[str]:
    """Return the results of reading, reading a range, and listing when a server fails this way."""
    once: dict[str, Any] = {"retries": {"max_attempts": 0}}
    # A busy machine may take seconds for an answer.
    if way == "silent":
        monkeypatch.setattr(filesystems, "ANSWER_SECONDS", 3)
        once["read_timeout"] = 1
    monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": once})
    errors = []
    with (
        servers.misbehaving(way) as port,
        servers.environment(**servers.s3_environment(port, **more)),
    ):
        for act in (
            lambda: OutputDirectory("s3://captures/x").read("a"),
            lambda: InputFile("s3://captures/x/a", 1000, "one").open().read(),
            lambda: list_captures(["s3://captures/x/"]),
        ):
            with pytest.raises(StorageError) as error:
                act()
            assert error.value.__cause__ is None
            errors.append(str(error.value))
    return errors


@pytest.mark.slow
def test_credentials_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in said("refusing", monkeypatch):
        assert re.search(
            "s3://captures/x/.*cannot (read|open|list): (Access Denied|Forbidden)", error
        )


@pytest.mark.slow
def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    for error in said("refusing", monkeypatch, **missing, HOME="/nonexistent"):
        assert "Unable to locate credentials" in error


@pytest.mark.long
@pytest.mark.slow
def test_answers_that_break_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in said("dropping", monkeypatch):
        assert re.search("s3://captures/x/.*cannot (read|open|list): .", error)


@pytest.mark.long
@pytest.mark.slow
def test_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in said("silent", monkeypatch):
        assert re.search("cannot (read|open|list): .*(no answer within 3 s|timeout)", error)
