"""Whatever a store responds, a call returns what a correct store would, or raises an error.

A call never returns fewer bytes, another range, bytes from another moment, or half a file.
"""

from __future__ import annotations

import io
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.errors import FlexwireError, StorageError
from flexwire.spark.dataframes import ParquetFilePart
from flexwire.storage import uploads
from flexwire.storage.file_search import list_captures
from flexwire.storage.filesystems import FileStore
from flexwire.storage.input_file import InputFile
from flexwire.storage.output_directory import OutputDirectory
from flexwire.storage.range_requests import request_range
from flexwire.tables.output import output
from tests.storage.faulty_store import AFTER, BEFORE, OF_BODIES, Asked, Store, Version, serving
from tests.tables.test_reading import write_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])
DATA = bytes(range(256)) * 8


def parquet(first: int) -> bytes:
    """Return a file with columns in their memory layout, so that any bytes are valid values."""
    rows = {"number": [*range(first, first + 100)], "text": [f"{first:09}"] * 100}
    made = io.BytesIO()
    pq.write_table(
        pa.table(rows, SCHEMA), made, compression="none", use_dictionary=False, row_group_size=20
    )
    return made.getvalue()


# The previous and the current content of each file.
FILES = {
    "data": (DATA[:1000], DATA[::-1]),
    "table.parquet": (parquet(0), parquet(500)),
    "day/one.pcap": (b"1", b"one"),
    "day/two.pcap": (b"2", b"two"),
}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Store, str]]:
    store = Store()
    with pytest.MonkeyPatch.context() as patch:
        # Otherwise, botocore waits a few seconds before it retries.
        patch.setitem(fsspec.config.conf, "s3", {"config_kwargs": {"retries": {"max_attempts": 0}}})
        with serving(store) as url:
            yield store, url


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Upload a file in three parts."""
    monkeypatch.setattr(uploads, "PART_BYTES", 700)
    file = tmp_path / "large"
    file.write_bytes(DATA)
    return file


def read_range(place: OutputDirectory) -> object:
    version = Version(FILES["data"][-1], datetime.now(UTC)).tag
    with InputFile(f"{place.url}/data", len(DATA), version).open(100, 1500, piece=600) as file:
        return file.read()


def read_table(place: OutputDirectory) -> object:
    part = ParquetFilePart("table.parquet", 0, 1)
    return pa.Table.from_batches(part.batches(place.url, SCHEMA)).to_pydict()


def create(place: OutputDirectory) -> object:
    # A call that got no response may have written the file.
    place.create("new", b"new")
    return place.read("new")


CALLS: dict[str, Callable[[OutputDirectory, Path], object]] = {
    "read": lambda place, _: place.read("data"),
    "read a range": lambda place, _: read_range(place),
    "read a table": lambda place, _: read_table(place),
    "list": lambda place, _: [one.url for one in list_captures([f"{place.url}/day/"])],
    "write": lambda place, _: place.write("data", b"new"),
    "create": lambda place, _: create(place),
    "put": lambda place, large: place.put(large, "data"),
    "remove": lambda place, _: place.remove(["data", "day/one.pcap"]),
}


def ways(asked: Asked) -> list[str]:
    """List the ways in which an answer may be wrong although its form is right."""
    if asked.is_body:
        return [*BEFORE, *OF_BODIES]
    if asked.is_listing:
        return [*BEFORE, "cut"]
    return [*BEFORE, "older", "gone"] if asked.is_read else [*BEFORE, *AFTER]


def prepared(served: tuple[Store, str]) -> OutputDirectory:
    store, url = served
    store.way = lambda _: ""
    place = OutputDirectory(f"{url}/{uuid.uuid4().hex}")
    for name, versions in FILES.items():
        for data in versions:
            store.put(f"{place.url.rpartition('/')[2]}/{name}", data)
    store.asked.clear()
    return place


def held(store: Store, place: OutputDirectory) -> dict[str, bytes]:
    start = f"{place.url.rpartition('/')[2]}/"
    return {k.removeprefix(start): v for k, v in store.now().items() if k.startswith(start)}


def outcome(
    call: Callable[[OutputDirectory, Path], object], place: OutputDirectory, large: Path
) -> str | StorageError:
    """Return the result of a call as a string, or its error."""
    try:
        return str(call(place, large))
    except StorageError as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_one_wrong_answer_changes_no_result(
    served: tuple[Store, str], large: Path, call: str
) -> None:
    store, _ = served
    place = prepared(served)
    before = held(store, place)
    expected = str(CALLS[call](place, large)).replace(place.url, "")
    after = held(store, place)
    asked = store.asked.copy()
    assert asked
    for at in asked:
        if call == "list" and not at.is_listing:
            continue  # only a list contains facts about a file
        for way in ways(at):
            place = prepared(served)
            store.way = lambda one, number=at.number, way=way: way if one.number == number else ""  # type: ignore[misc] # mypy takes the defaults for arguments
            allowed: list[dict[str, bytes]] = [before, after]
            found = outcome(CALLS[call], place, large)
            if isinstance(found, StorageError):
                assert str(found).startswith(place.url), (at, way)
                assert held(store, place) in allowed, (at, way)
            else:
                assert found.replace(place.url, "") == expected, (at, way)
                assert held(store, place) == after, (at, way)


def test_a_store_that_is_wrong_for_good_is_asked_a_bounded_number_of_times(
    served: tuple[Store, str],
) -> None:
    store, _ = served
    for way in ("short", "another range", "cut", "whole", "500"):
        place = prepared(served)
        store.way = lambda one, way=way: way if one.is_body else ""  # type: ignore[misc] # see above
        with pytest.raises(StorageError, match=r"/data: cannot read: "):
            place.read("data")
        assert len(store.asked) < 10, way


def test_of_a_table_whose_listing_lacks_a_file_no_row_is_given(served: tuple[Store, str]) -> None:
    store, _ = served
    place = prepared(served).child("out")
    write_output(place)
    told = b'{"table_files": {"frames": 2, "messages/ApiVersionsRequest": 1}}'
    place.write("tables/_SUCCESS", told)
    assert output(place.url).table("frames").num_rows == 2
    for table in ("frames", "messages/ApiVersionsRequest"):
        store.way = lambda one: "half" if one.is_listing else ""
        reason = f"{place.url}/tables/{table} must contain . files, but only . are listed"
        with pytest.raises(FlexwireError, match=reason):
            output(place.url).table(table)


def read_with_pyarrow(place: OutputDirectory) -> Any:
    files, root = place.arrow()
    return pq.read_table(f"{root}/table.parquet", filesystem=files).to_pydict()


@pytest.mark.slow
def test_pyarrow_is_told_by_our_error_what_a_store_answered(served: tuple[Store, str]) -> None:
    store, _ = served
    expected = read_with_pyarrow(prepared(served))
    for way in (*BEFORE, *OF_BODIES):
        place = prepared(served)
        seen: list[Asked] = []

        def once(asked: Asked, way: str = way, seen: list[Asked] = seen) -> str:
            seen += [asked] if asked.is_body else []
            return way if seen == [asked] else ""

        store.way = once
        with suppress(StorageError):
            assert read_with_pyarrow(place) == expected, way
        assert seen, way


class Cut:
    """A store's library that returns bytes other than those requested."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def cat_file(self, _: str, **__: object) -> bytes:
        return self.data


@pytest.mark.parametrize("size", [0, 4, 6])
def test_a_range_of_another_size_is_an_error_with_both_sizes(size: int) -> None:
    store = FileStore(Cut(bytes(size)), "gs")
    with pytest.raises(OSError, match=f"^expected 5 bytes at 3, got {size}$"):
        request_range(store, "data", 100, "", 3, 8)
    assert request_range(FileStore(Cut(b"right"), "gs"), "data", 100, "", 3, 8).data == b"right"
