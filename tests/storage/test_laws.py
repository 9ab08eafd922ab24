"""The laws about a place and its files hold on this machine and in every store."""

from __future__ import annotations

import asyncio
import os
import pickle
import random
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import product
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.errors import ArgumentError, CaptureError, StorageError
from flexwire.storage import input_file as ranges
from flexwire.storage import store_listing
from flexwire.storage.file_search import list_captures
from flexwire.storage.filesystems import FileStore
from flexwire.storage.output_directory import OutputDirectory
from flexwire.storage.store_listing import file_description
from tests.storage import servers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.storage.input_file import InputFile

STORES = {"s3": servers.s3, "gs": servers.gs}
if servers.AZURITE in os.environ:
    STORES["az"] = servers.az


@pytest.fixture(scope="module", params=["path", "file", "memory", *STORES])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param in STORES:
            yield stack.enter_context(STORES[request.param]())
        elif request.param == "memory":
            yield "memory://captures"
        else:
            path = tmp_path_factory.mktemp("place")
            yield path.as_uri() if request.param == "file" else str(path)


@pytest.fixture
def place(base: str) -> OutputDirectory:
    return OutputDirectory(base).child(uuid.uuid4().hex)


def names(place: OutputDirectory, prefix: str = "") -> list[str]:
    return sorted(entry.name for entry in place.entries(prefix))


def source(place: OutputDirectory, name: str) -> InputFile:
    (found,) = (entry for entry in place.entries() if entry.name == name)
    return place.source(found)


def write_half(place: OutputDirectory, name: str) -> None:
    with place.writing(name) as growing:
        growing.write_bytes(b"half")
        raise KeyError


@pytest.mark.slow
def test_what_is_written_is_there_whole_until_it_is_replaced_or_removed(
    place: OutputDirectory,
) -> None:
    assert names(place) == []
    place.write("a/one", b"first")
    (first,) = place.entries()
    place.write("a/one", b"second one")
    (second,) = place.entries()
    assert (first.size, second.size) == (5, 10)
    assert first.version != second.version
    assert abs(second.modified - datetime.now(UTC)) < timedelta(hours=1)
    assert place.read("a/one") == b"second one"
    assert [place.exists(name) for name in ("a/one", "a", "a/on", "b")] == [True, *[False] * 3]
    place.remove(["a/one", "b", "a/one"])
    assert names(place) == []
    assert not place.exists("a/one")
    with pytest.raises(StorageError, match="a/one: cannot read: "):
        place.read("a/one")


def test_a_prefix_is_the_beginning_of_a_name_at_any_depth(place: OutputDirectory) -> None:
    given = ["ab", "abc/d", "abc/e/f", "b/ab"]
    for name in given:
        place.write(name, b"")
    assert names(place) == given
    assert names(place, "ab") == given[:3]
    assert names(place, "abc/") == ["abc/d", "abc/e/f"]
    assert names(place, "abc/e") == ["abc/e/f"]
    assert names(place.child("abc")) == ["d", "e/f"]
    assert names(place, "nothing/") == []


def test_a_local_file_is_put_or_written_in_place(place: OutputDirectory, tmp_path: Path) -> None:
    local = tmp_path / "local"
    local.write_bytes(b"local")
    place.put(local, "put")
    with place.writing("deep/written") as growing:
        assert not growing.stat().st_mode & 0o077
        growing.write_bytes(b"written")
        assert names(place) == ["put"]
    assert place.read("put") == b"local"
    assert place.read("deep/written") == b"written"
    assert not growing.exists()


def test_a_write_that_fails_leaves_what_was_there(place: OutputDirectory, tmp_path: Path) -> None:
    place.write("old", b"old")
    for name in ("old", "new"):
        with pytest.raises(StorageError, match=f"{name}: cannot write: "):
            place.put(tmp_path / "absent", name)
        with pytest.raises(KeyError):
            write_half(place, name)
    assert names(place) == ["old"]
    assert place.read("old") == b"old"
    assert place.sweep(datetime.now(UTC) + timedelta(days=1)) == 0


def test_a_file_that_exists_is_not_created(place: OutputDirectory) -> None:
    assert place.create("a/one", b"first")
    assert not place.create("a/one", b"second")
    assert place.read("a/one") == b"first"
    place.remove(["a/one"])
    assert place.create("a/one", b"third")
    assert (names(place), place.read("a/one")) == (["a/one"], b"third")


@pytest.mark.slow
def test_of_many_that_create_a_file_one_does(place: OutputDirectory) -> None:
    texts = [f"{number}".encode() for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        created = [*pool.map(lambda text: place.create("one", text), texts)]
    if place.url.startswith("gs://"):
        # The emulator of Google's store ignores the condition of a write.
        assert place.read("one") in texts
        return
    assert created.count(True) == 1
    assert place.read("one") == texts[created.index(True)]


@pytest.mark.slow
def test_google_s_store_gets_the_condition_that_a_file_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conditions: list[object] = []
    library: Any = import_module("gcsfs.core").GCSFileSystem
    call = library._call

    async def record(self: object, method: str, path: str, *arguments: Any, **options: Any) -> Any:
        if "uploadType" in options:
            conditions.append(options.get("ifGenerationMatch"))
        return await call(self, method, path, *arguments, **options)

    monkeypatch.setattr(library, "_call", record)
    with servers.gs() as bucket:
        place = OutputDirectory(bucket)
        assert place.create("one", b"1")
        assert not place.create("one", b"2")
        assert place.create("empty", b"")
        place.write("two", b"2")
    assert conditions == ["0", "0", None]


def test_any_range_is_that_slice(place: OutputDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "PIECE_BYTES", 100)
    data = random.Random(7).randbytes(1001)
    place.write("data", data)
    one = source(place, "data")
    for start, stop in ((0, None), (0, 1001), (99, 101), (100, 200), (1000, 1001), (7, 7), (0, 0)):
        with one.open(start, stop) as file:
            assert file.peek(2)[:2] == data[start:stop][:2]
            assert file.read() == data[start:stop]
            assert file.read() == b""
    with one.open(5) as file:
        assert [file.read(1), file.read(500), file.read(600)] == [
            data[5:6],
            data[6:506],
            data[506:],
        ]
    for start, stop in ((-1, 5), (5, 4), (0, 1002)):
        with pytest.raises(ArgumentError, match="within 0 to 1001"):
            one.open(start, stop)


# A store's library may send a file between lines of its own, as in an e-mail with parts.
TEXTS = [b"a", b"--==0==", b"--==0==--", b"Content-Type: text/plain", b"\0", b"\xff\xfe", b"0\r\n"]
ENDS = [b"", b"\r", b"\n", b"\r\n", b"\n\r", b"\r\r", b"\n\n"]


@pytest.mark.slow
def test_every_content_is_kept_to_its_last_byte(place: OutputDirectory, tmp_path: Path) -> None:
    contents = [b"", *(end + text + end for end, text in product(ENDS, TEXTS))]
    put = tmp_path / "put"
    for content in (*contents, b"\n".join(contents)):
        place.write("written", content)
        assert place.read("written") == content
    # The other way to open a file uses the same path in each store.
    for content in contents[:: len(ENDS)]:
        put.write_bytes(content)
        place.put(put, "put")
        assert place.read("put") == content


def test_a_file_that_was_replaced_or_is_gone_is_refused(place: OutputDirectory) -> None:
    place.write("data", b"before")
    one = source(place, "data")
    place.write("data", b"after!")
    with pytest.raises(
        StorageError, match="data: cannot read: the file changed after it was listed"
    ):
        one.open()
    one = source(place, "data")
    place.write("data", b"longer than before")
    with pytest.raises(StorageError, match="got 18 bytes of "):
        one.open()
    place.remove(["data"])
    with pytest.raises(StorageError, match=r"the file was removed after|No such file"):
        one.open()


def test_pyarrow_reads_tables_with_the_same_keys(place: OutputDirectory) -> None:
    table = pa.table({"a": [1, 2, 3]})
    for part in range(2):
        with place.writing(f"table/part-{part}.parquet") as local:
            pq.write_table(table, local)
    files, directory = place.child("table").arrow()
    assert pq.read_table(directory, filesystem=files)["a"].to_pylist() == [1, 2, 3] * 2


def test_places_and_sources_go_to_other_processes(place: OutputDirectory) -> None:
    place.write("data", b"data")
    again, one = pickle.loads(pickle.dumps((place, source(place, "data"))))  # noqa: S301 - our own
    assert again == place
    assert again.read("data") == one.open().read() == b"data"


@pytest.mark.slow
def test_paths_are_files_directories_and_patterns(place: OutputDirectory) -> None:
    given = ["a.pcapng", "b.pcap", "deep/c.PCAP.gz", "deep/x/d.pcap", "notes.md"]
    for name in given:
        place.write(name, name.encode())

    def listed(*paths: str) -> list[str]:
        sources = list_captures(f"{place.url}/{path}" if path else place.url for path in paths)
        assert [one.open().read().decode() for one in sources] == [
            one.url[len(place.url) + 1 :] for one in sources
        ]
        return [one.url[len(place.url) + 1 :] for one in sources]

    assert listed("") == listed("", "b.pcap", "*.pcap", "deep") == given[:4]
    assert listed("*.pcap") == ["b.pcap"]
    assert listed("**/*.pcap") == ["b.pcap", "deep/x/d.pcap"]
    assert listed("[ab].pcap*") == ["a.pcapng", "b.pcap"]
    assert listed("dee?") == listed("deep/") == ["deep/c.PCAP.gz", "deep/x/d.pcap"]
    assert listed("notes.md") == listed("no*.md") == ["notes.md"]
    place.write("text/readme.md", b"")
    for path in ("absent.pcap", "*.nothing", "text", "text/"):
        with pytest.raises(CaptureError, match="no"):
            listed(path)


@pytest.mark.parametrize("name", ["", "/a", "../a", "a/../b", "./a", "a//b", "a/", "."])
def test_a_name_stays_in_its_place(place: OutputDirectory, name: str) -> None:
    with pytest.raises(ArgumentError, match="a relative name"):
        place.write(name, b"")


@pytest.mark.parametrize(
    ("kind", "told", "version"),
    [
        ("gs", {"generation": 17, "md5Hash": "sum", "etag": "tag"}, "17"),
        ("gs", {"md5Hash": "sum"}, "sum"),
        ("s3", {"ETag": '"tag"', "md5Hash": "sum"}, "tag"),
        ("s3", {"md5Hash": "sum"}, "2026-11-28T00:00:00+00:00"),
    ],
)
def test_the_version_of_a_file_is_what_its_store_changes_with_it(
    kind: str, told: dict[str, Any], version: str
) -> None:
    moment = datetime(2026, 11, 28, tzinfo=UTC)
    found = file_description(FileStore(None, kind), {"size": "5", "LastModified": moment, **told})
    assert found == (5, moment, version)


class Azure(FileStore):
    """The store for Azure, without a connection to Azure."""

    def key(self, url: str) -> str:
        return url.removeprefix("az://")

    def wait(self, coroutine: Any, *arguments: Any) -> Any:
        return asyncio.run(coroutine(*arguments))


def test_a_directory_of_azure_is_not_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = datetime(2026, 11, 28, tzinfo=UTC)

    def blob(name: str, **metadata: str) -> Any:
        how = {"size": 5, "last_modified": moment, "etag": '"tag"', "metadata": metadata or None}
        return SimpleNamespace(name=name, **how)

    pages = {
        None: ([blob("a/day", hdi_isfolder="true"), blob("a/day/1")], "more"),
        "more": ([blob("a/day/2", hdi_isfolder="false"), blob("a/day/3", made="by")], None),
    }

    async def page(files: object, container: str, prefix: str, token: str | None) -> Any:
        assert (files, container, prefix) == (None, "captures", "a/d")
        return pages[token]

    monkeypatch.setattr(store_listing, "_az_page", page)
    monkeypatch.setattr(store_listing, "open_store", lambda _: Azure(None, "az"))
    found = [*store_listing.list_store("az://captures/a", "d")]
    assert [entry.name for entry in found] == ["day/1", "day/2", "day/3"]
    assert {entry[1:] for entry in found} == {(5, moment, "tag")}
