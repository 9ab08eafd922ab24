"""Paths and URLs are read correctly or refused, and no message repeats their secrets."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from flexwire.errors import ArgumentError, StorageError
from flexwire.storage.filesystems import local_path, reason_of, scheme_of, shown, withheld
from flexwire.storage.output_directory import OutputDirectory

SECRET = "Pa55/w+rd"  # noqa: S105 - of nothing


@pytest.mark.parametrize(
    "given",
    ["a", "/a/b", "a:b.pcap", "12:00/a", "s3:b", "C:/a", "file:///a", "./s3:/b", "", "://a"],
)
def test_a_path_has_no_scheme(given: str) -> None:
    assert scheme_of(given) == ""


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("a:b", "a:b"),
        ("file:///a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("FILE://localhost/a%20b", "/a b"),
        ("file:b", "file:b"),
    ],
)
def test_the_path_of_a_file(given: str, path: str) -> None:
    assert local_path(given) == Path(path)


@pytest.mark.parametrize(
    "given",
    ["s3://b", "s3a://b/k", "gs://b/", "abfs://c@a.dfs.core.windows.net/k", "hdfs://h:9000/k"],
)
def test_a_url_is_shown_as_it_is(given: str) -> None:
    assert scheme_of(given) == given.partition(":")[0]
    assert shown(given) == given


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("ftp://host/a", "expected a path, file://, s3://"),
        ("s3:/bucket/a", "expected two slashes after the scheme: s3://"),
        ("s3://", "expected a bucket"),
        ("s3:///a", "expected a bucket"),
        ("file://host/a", "got the host host"),
    ],
)
def test_what_is_not_a_place_is_refused(given: str, reason: str) -> None:
    with pytest.raises(StorageError, match=reason):
        OutputDirectory(given)


@pytest.mark.parametrize(
    "given",
    [
        f"s3://key:{SECRET}@bucket/a",
        f"s3://key:{SECRET}",
        f"hdfs://user:{SECRET}@host:9000/a",
        f"https://user:{SECRET}@host/a",
        f"https://host/a?X-Amz-Signature={SECRET}&b=1",
        f"https://host/a?sig={SECRET}",
    ],
)
def test_a_password_in_a_url_is_refused_and_withheld(given: str) -> None:
    with pytest.raises(StorageError) as error:
        OutputDirectory(given)
    for part in SECRET.split("/"):
        assert part not in str(error.value)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)  # noqa: S301 - our own


def test_a_password_in_the_text_of_a_library_is_withheld() -> None:
    text = "Could not connect to http://user:Pa55@host/a?sig=Pa55 at all"
    assert withheld(text) == "Could not connect to http://…@host/a?sig=… at all"
    assert reason_of(ValueError(f"{text}\nand more")) == withheld(text)


def test_a_scheme_whose_library_is_missing_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['s3fs'] = None\n"
        "from flexwire.storage.output_directory import OutputDirectory\n"
        "OutputDirectory('s3://bucket').read('a')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "pip install 'flexwire[s3]'" in ended.stderr


def test_a_place_on_this_machine_is_absolute() -> None:
    assert OutputDirectory("a/../b/").path == Path.cwd() / "b"
    assert OutputDirectory("s3://bucket/a/").url == "s3://bucket/a"
    assert OutputDirectory("s3://bucket").path is None
    with pytest.raises(ArgumentError, match="a str or Path"):
        OutputDirectory(5)  # type: ignore[arg-type]
