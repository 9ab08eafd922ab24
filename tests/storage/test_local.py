"""Files on this machine: modes, growing files, links, and the cost of a listing."""

from __future__ import annotations

import errno
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import StorageError
from flexwire.storage import local, store_listing
from flexwire.storage.file_search import list_captures
from flexwire.storage.output_directory import OutputDirectory
from flexwire.storage.store_listing import FileEntry
from tests.traced import traced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.storage.input_file import InputFile


@pytest.fixture
def place(tmp_path: Path) -> OutputDirectory:
    return OutputDirectory(str(tmp_path / "place"))


def source(place: OutputDirectory, data: bytes) -> tuple[Path, InputFile]:
    place.write("data.pcap", data)
    (one,) = list_captures([place.url])
    return Path(one.url), one


def test_a_file_from_another_mount_of_the_same_disk_is_copied(
    place: OutputDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file moves from a container's temporary directory to a volume, both on one disk."""
    rename = Path.replace

    def across(self: Path, target: Path) -> Path:
        if self.parent == tmp_path:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", across)
    for data in (b"old", b"new"):
        file = tmp_path / "finished"
        file.write_bytes(data)
        place.put(file, "a/table")
        assert place.read("a/table") == data
        assert not file.exists()
        written = tmp_path / "place" / "a" / "table"
        assert [path.name for path in written.parent.iterdir()] == ["table"]
        assert stat.S_IMODE(written.stat().st_mode) == local.FILE_MODE


def test_a_file_on_the_same_file_system_is_renamed(place: OutputDirectory, tmp_path: Path) -> None:
    file = tmp_path / "finished"
    file.write_bytes(b"data")
    inode = file.stat().st_ino
    place.put(file, "a/table")
    assert (tmp_path / "place" / "a" / "table").stat().st_ino == inode


def test_a_file_on_another_file_system_is_copied_and_not_synced_first(
    place: OutputDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "finished"
    file.write_bytes(b"data")
    inode, stat_of = file.stat().st_ino, Path.stat

    def elsewhere(path: Path, **how: Any) -> os.stat_result:
        found = stat_of(path, **how)
        device = found.st_dev + (path == file)
        return os.stat_result([*found[:2], device, *found[3:10]])

    monkeypatch.setattr(Path, "stat", elsewhere)
    place.put(file, "a/table")
    written = tmp_path / "place" / "a" / "table"
    assert written.read_bytes() == b"data"
    assert written.stat().st_ino != inode
    assert not file.exists()


def test_a_rename_that_fails_for_another_reason_is_an_error(
    place: OutputDirectory, tmp_path: Path
) -> None:
    (tmp_path / "place" / "table").mkdir(parents=True)
    file = tmp_path / "finished"
    file.write_bytes(b"data")
    with pytest.raises(StorageError, match="table: cannot write: Is a directory"):
        place.put(file, "table")
    assert file.read_bytes() == b"data"


@pytest.mark.parametrize("seconds", [-(10**12), -62_135_683_201, -1, 0, 253_402_300_800, 10**12])
def test_a_file_of_any_time_is_listed(
    place: OutputDirectory, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File systems with 64-bit times can store years that no calendar has."""
    place.write("a", b"")
    stat_of = Path.stat

    def told(path: Path, **how: Any) -> os.stat_result:
        found = stat_of(path, **how)
        return os.stat_result([*found[:7], seconds, seconds, seconds])

    monkeypatch.setattr(Path, "stat", told)
    (entry,) = place.entries()
    assert entry.name == "a"
    assert abs((entry.modified - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) <= abs(seconds)


def test_files_and_directories_are_for_their_owner(place: OutputDirectory) -> None:
    place.write("a/b", b"")
    assert place.path
    modes = [stat.S_IMODE((place.path / name).stat().st_mode) for name in ("", "a", "a/b")]
    assert modes == [0o700, 0o700, 0o600]


def test_removing_leaves_no_empty_directory(place: OutputDirectory) -> None:
    assert place.path
    for name in ("a/b/c", "a/d"):
        place.write(name, b"")
    place.remove(["a/b/c"])
    assert [path.name for path in (place.path / "a").iterdir()] == ["d"]
    place.remove(["a/d"])
    assert list(place.path.iterdir()) == []


def test_a_writer_that_was_killed_leaves_no_file_and_is_swept(place: OutputDirectory) -> None:
    assert place.path
    writing = local.writing(place.path / "deep" / "data")
    growing = writing.__enter__()
    growing.write_bytes(b"half")
    assert list(place.entries()) == []
    begun = datetime(2023, 11, 14, tzinfo=UTC)
    os.utime(growing, (begun.timestamp(), begun.timestamp()))
    assert place.sweep(begun) == 0
    assert place.sweep(begun + timedelta(seconds=1)) == 1
    assert list(place.path.iterdir()) == []


def test_a_file_that_grows_is_read_to_the_size_listed(place: OutputDirectory) -> None:
    path, one = source(place, b"x" * 10)
    with one.open() as file, path.open("ab") as growing:
        growing.write(b"more")
        growing.flush()
        assert file.read() == b"x" * 10
    assert one.open(5).read() == b"x" * 5


def test_a_file_that_is_cut_or_changed_while_it_is_read(place: OutputDirectory) -> None:
    size = 3 << 20
    path, one = source(place, b"x" * size)
    with one.open() as file:
        file.read(1)
        os.truncate(path, size - 1)
        with pytest.raises(StorageError, match="pcap: cannot read: the file changed"):
            file.read()
    path, one = source(place, b"x" * size)
    with one.open() as file, path.open("r+b") as changing:
        file.read(1)
        os.utime(changing.fileno(), ns=(0, 0))
        with pytest.raises(StorageError, match="the file changed"):
            file.read()


def test_a_longer_file_in_the_place_of_one_is_another(place: OutputDirectory) -> None:
    path, one = source(place, b"x")
    place.write("data.pcap", b"xy")
    with pytest.raises(StorageError, match="the file changed"):
        one.open()
    path.unlink()
    path.write_bytes(b"x")
    changed = int(one.version.partition("/")[0])
    os.utime(path, ns=(changed, changed))
    assert one.open().read() == b"x"  # a copy, as on another disk


def test_a_disk_that_is_full_is_told(place: OutputDirectory) -> None:
    def full() -> None:
        with place.writing("data"):
            raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match="data: cannot write: No space left on device"):
        full()
    assert list(place.entries()) == []


def test_links_lead_to_files_once(place: OutputDirectory, tmp_path: Path) -> None:
    path, one = source(place, b"x")
    path.with_name("link.pcap").symlink_to(path)
    path.with_name("nowhere.pcap").symlink_to(tmp_path / "nothing")
    (tmp_path / "directory").symlink_to(path.parent)
    assert list_captures([place.url, tmp_path / "directory", tmp_path / "*"]) == [one]


@pytest.mark.long
@pytest.mark.slow
def test_a_listing_takes_a_few_hundred_bytes_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    count, page = 100_000, 1000
    now = datetime.now(UTC)

    def listing(*_: Any) -> Iterator[list[FileEntry]]:
        for first in range(0, count, page):
            yield [
                FileEntry(f"day/{number:09}.pcap", number, now, f"{number:032x}")
                for number in range(first, first + page)
            ]

    monkeypatch.setitem(store_listing._LISTINGS, "memory", listing)
    with traced() as memory:
        sources = list_captures(["memory://bucket/"])
    assert len(sources) == count
    assert memory.held / count < 400
    assert memory.most / count < 600
