"""No path leaves the root, whatever its form."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.cli.mcp import root as root_module
from flexwire.cli.mcp.root import ANALYSIS, OutsideRootError, ServedRoot
from tests.cli.mcp.served import make_analysis
from tests.searching import times

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = ["..", ".", "", "in", "out", "file", "to-file", "to-in", "to-out", "loop", "/", "//", "~"]
FORMS = ["\\..\\", "C:\\", "%2e%2e", "\0", "\u2024\u2024", "..\u200b", "file:", "s3:", "-", "*"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a root with files and links, and a file next to it that must not be read."""
    place = tmp_path_factory.mktemp("place")
    for folder in ("root/in/in", "root/out", "outside/in"):
        (place / folder).mkdir(parents=True)
    for file in ("root/file", "root/in/file", "outside/file", "outside/in/file"):
        (place / file).write_text("")
    (place / "root/to-file").symlink_to(place / "outside/file")
    (place / "root/to-in").symlink_to("in")
    (place / "root/in/to-out").symlink_to(place / "outside")
    (place / "root/in/to-file").symlink_to("../file")
    (place / "root/loop").symlink_to("loop")
    return place


def _real(opened: Path) -> Path:
    """Return the real path of an opened file; on Linux ``opened`` is the path of a descriptor."""
    return Path(os.path.realpath(opened))


def _open(root: ServedRoot, text: str) -> Path:
    with root.file(text) as opened:
        return _real(opened)


_TEXT = st.lists(st.sampled_from([*PARTS, *FORMS]) | st.text(max_size=3), max_size=8)


@pytest.mark.long
@settings(max_examples=times(1_000))
@given(parts=_TEXT, is_absolute=st.booleans())
def test_every_path_is_below_the_root_or_refused(
    place: Path, parts: list[str], *, is_absolute: bool
) -> None:
    root = ServedRoot(place / "root")
    text = f"{place / 'root'}/" * is_absolute + "/".join(parts)
    for find in (root.file, root.directory):
        try:
            with find(text) as opened:
                found = _real(opened)
        except OutsideRootError as error:
            told = str(error)
            assert is_absolute or str(place) not in told
            continue
        assert not is_absolute
        assert found == (place / "root" / text).absolute()
        assert found.is_relative_to((place / "root").resolve())
        assert found.is_file() == (find == root.file)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("../outside/file", "expected a relative path below the root, without .."),
        ("in/../file", "expected a relative path below the root, without .."),
        ("/etc/hosts", "expected a relative path below the root, without .."),
        ("to-file", "symbolic link"),
        ("to-in/file", "symbolic link"),
        ("in/to-out/file", "symbolic link"),
        ("in/to-file", "symbolic link"),
        ("loop", "symbolic link"),
        ("none", "there is no"),
        ("file/file", "there is no"),
        ("in", "is not a regular file"),
        ("", "is not a path"),
        ("a\0b", "is not a path"),
        ("x" * 5_000, "there is no"),
    ],
)
def test_a_refusal_says_why(place: Path, text: str, told: str) -> None:
    with pytest.raises(OutsideRootError, match=told):
        _open(ServedRoot(place / "root"), text)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pcap")
    root = ServedRoot(tmp_path)
    with pytest.raises(OutsideRootError, match="not a regular file"):
        _open(root, "pipe.pcap")
    assert root.search(".").rows == []


def test_a_root_that_is_a_link_is_where_it_leads(place: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(place / "root")
    root = ServedRoot(tmp_path / "link")
    assert _open(root, "file") == (place / "root" / "file").resolve()
    with pytest.raises(OutsideRootError):
        _open(root, "to-file")


def test_a_search_finds_inputs_and_analyses_and_follows_no_link(
    tmp_path: Path, place: Path
) -> None:
    for name in ("b.pcap", "a/c.pcapng.gz", "a/notes.txt", "z/orders-0/00000000000000000000.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")
    make_analysis(tmp_path / "a" / "analysis")
    (tmp_path / "link.pcap").symlink_to(place / "outside" / "file")
    (tmp_path / "linked").symlink_to(tmp_path / "a")
    found = ServedRoot(tmp_path).search(".")
    assert [(row["path"], row["bytes"]) for row in found.rows] == [
        ("b.pcap", 5),
        ("a/analysis", None),
        ("a/c.pcapng.gz", 5),
        ("z/orders-0/00000000000000000000.log", 5),
    ]
    assert found.rows[1]["kind"] == ANALYSIS
    assert (found.links, found.unreadable, found.is_cut) == (2, 0, False)


def test_a_search_finds_a_capture_beside_the_tables_of_an_analysis(tmp_path: Path) -> None:
    """The demo's tables are not searched, no matter how many files they contain."""
    make_analysis(tmp_path / "demo")
    for name in ("capture/a.pcapng", "tables/frames/b.pcap", "answers/c.pcap", "_old/d.pcap"):
        (tmp_path / "demo" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "demo" / name).write_bytes(b"1")
    found = ServedRoot(tmp_path).search(".")
    assert [row["path"] for row in found.rows] == ["demo", "demo/capture/a.pcapng"]
    # The analysis, its four parts and facts.json, and the capture.
    assert found.seen == 7
    # Outside an analysis, such file names mean nothing.
    (tmp_path / "demo" / "facts.json").unlink()
    assert len(ServedRoot(tmp_path).search(".").rows) == 4


def test_a_search_of_too_much_ends_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.pcap").write_bytes(b"")
    monkeypatch.setattr(root_module, "MOST_SEEN", 20)
    found = ServedRoot(tmp_path).search(".")
    assert (len(found.rows), found.seen, found.is_cut) == (20, 20, True)
    monkeypatch.setattr(root_module, "MOST_SEEN", 30)
    assert not ServedRoot(tmp_path).search(".").is_cut


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs a path for each descriptor")


@pytest.fixture
def races(tmp_path: Path) -> Path:
    """Make a directory with a root, and files with the same names outside the root."""
    for where in ("root", "outside"):
        (tmp_path / where / "in").mkdir(parents=True)
        (tmp_path / where / "in" / "file").write_text(where)
        (tmp_path / where / "in" / "a.pcap").write_text("")
    return tmp_path


@linux
@pytest.mark.parametrize("swapped", ["root/in", "root/in/file"])
def test_a_link_that_appears_after_the_look_is_not_followed(races: Path, swapped: str) -> None:
    with ServedRoot(races / "root").file("in/file") as opened:
        _swap(races, swapped)
        assert opened.read_text() == "root"
        assert opened.read_text() == "root"


@linux
@pytest.mark.parametrize("swapped", ["root/in", "root/in/file"])
def test_a_link_that_appears_between_two_looks_is_not_followed(
    races: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    """No link is followed, even if a link replaces a file before any lookup of its name."""
    look = root_module._look
    for before in range(1, 4):
        _swap(races, swapped, back=True)
        calls = 0

        def look_and_swap(*given: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == before:  # noqa: B023 - the event loop waits for it
                _swap(races, swapped)
            return look(*given)

        monkeypatch.setattr(root_module, "_look", look_and_swap)
        assert _try(ServedRoot(races / "root").file, "in/file", Path.read_text) in {
            "root",
            "a symbolic link",
        }
        assert calls >= 2


def _swap(races: Path, name: str, *, back: bool = False) -> None:
    """Replace a file or directory with a link to the outside, or undo the replacement."""
    place, kept = races / name, races / "kept"
    if back and kept.exists():
        place.unlink()
        kept.rename(place)
    elif not back and not place.is_symlink():
        place.rename(kept)
        place.symlink_to(races / "outside" / Path(name).relative_to("root"))


@linux
def test_a_search_lists_nothing_of_a_directory_that_became_a_link(
    races: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (races / "outside" / "in" / "secret.pcap").write_text("")
    listed = os.scandir

    def swap_and_list(path: Path) -> Any:
        entries = listed(path)
        _swap(races, "root/in")
        return entries

    monkeypatch.setattr("flexwire.cli.mcp.root.os.scandir", swap_and_list)
    found = ServedRoot(races / "root").search(".")
    assert not [row for row in found.rows if "secret" in row["path"]]


@linux
def test_descriptors_are_closed(place: Path) -> None:
    root = ServedRoot(place / "root")
    before = len([*Path("/proc/self/fd").iterdir()])
    for text in ("in/file", "in/in", "to-in/file", "none", "in/none", "file/file", "in", "."):
        for find in (root.file, root.directory):
            _try(find, text, Path.exists)
    root.search(".")
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def _try(find: Callable[[str], Any], text: str, read: Callable[[Path], Any]) -> Any:
    """Return what reading a path returns, or why it is rejected."""
    try:
        with find(text) as opened:
            return read(opened)
    except OutsideRootError as error:
        return "a symbolic link" if "is a symbolic link" in str(error) else "refused"


def test_without_descriptors_a_link_is_refused_too(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root_module, "_HAS_DESCRIPTORS", False)
    root = ServedRoot(place / "root")
    assert _open(root, "in/file") == (place / "root" / "in" / "file").resolve()
    for text in ("to-file", "to-in/file", "in/to-out/file", "loop", "none"):
        with pytest.raises(OutsideRootError):
            _open(root, text)


@linux
def test_errors_name_files_and_no_descriptor(place: Path) -> None:
    root = ServedRoot(place / "root")
    with root.file("in/file") as opened:
        told = f"{opened}: damaged; see {opened}1"
    assert root.shown(f"{opened}: damaged") == "in/file: damaged"
    assert root.shown(told).startswith("in/file: damaged; see ")
    assert "in/file1" not in root.shown(told)


def test_texts_do_not_name_the_root_s_own_path(tmp_path: Path) -> None:
    root = ServedRoot(tmp_path)
    assert root.shown(f"{tmp_path.resolve()}/a.pcap: no") == "a.pcap: no"
    assert root.shown(str(tmp_path.resolve())) == "."
