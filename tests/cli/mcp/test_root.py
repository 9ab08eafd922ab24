"""No path can leave the root, whatever it looks like."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.cli.mcp import root as root_module
from flexwire.cli.mcp.root import ANALYSIS, OutsideRootError, ServedRoot
from tests.cli.mcp.served import make_analysis
from tests.searching import times

if TYPE_CHECKING:
    from pathlib import Path

PARTS = ["..", ".", "", "in", "out", "file", "to-file", "to-in", "to-out", "loop", "/", "//", "~"]
FORMS = ["\\..\\", "C:\\", "%2e%2e", "\0", "\u2024\u2024", "..\u200b", "file:", "s3:", "-", "*"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with files and links, and beside it a file that must not be read."""
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


_TEXT = st.lists(st.sampled_from([*PARTS, *FORMS]) | st.text(max_size=3), max_size=8)


@settings(max_examples=times(1_000))
@given(parts=_TEXT, is_absolute=st.booleans())
def test_every_path_is_below_the_root_or_refused(
    place: Path, parts: list[str], *, is_absolute: bool
) -> None:
    root = ServedRoot(place / "root")
    text = f"{place / 'root'}/" * is_absolute + "/".join(parts)
    for find in (root.file, root.directory):
        try:
            found = find(text)
        except OutsideRootError as error:
            told = str(error)
            assert is_absolute or str(place) not in told
            continue
        assert not is_absolute
        assert os.path.realpath(found) == str(found)
        assert found.is_relative_to((place / "root").resolve())
        assert found.is_file() == (find == root.file)
        assert find(root.name_of(found)) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("../outside/file", "without .. and not absolute"),
        ("in/../file", "without .. and not absolute"),
        ("/etc/hosts", "without .. and not absolute"),
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
        ServedRoot(place / "root").file(text)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pcap")
    root = ServedRoot(tmp_path)
    with pytest.raises(OutsideRootError, match="not a regular file"):
        root.file("pipe.pcap")
    assert root.search(".").rows == []


def test_a_root_that_is_a_link_is_where_it_leads(place: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(place / "root")
    root = ServedRoot(tmp_path / "link")
    assert root.file("file") == (place / "root" / "file").resolve()
    with pytest.raises(OutsideRootError):
        root.file("to-file")


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


def test_texts_do_not_name_the_root_s_own_path(tmp_path: Path) -> None:
    root = ServedRoot(tmp_path)
    assert root.shown(f"{tmp_path.resolve()}/a.pcap: no") == "a.pcap: no"
    assert root.shown(str(tmp_path.resolve())) == "."
