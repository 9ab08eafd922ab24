"""A filtered capture contains its filter in a comment. Other comments are not read as filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.capture.files.comments import (
    MOST_FILTER_BYTES,
    CapturedPart,
    CaptureFilter,
    filter_comment,
    part_in,
    sampling_comment,
)
from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.capture.files.reading import open_capture
from flexwire.errors import ArgumentError

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=4)


def part_of(directory: Path, *comments: bytes) -> CapturedPart | None:
    with PcapngWriter(directory, comment=comments) as writer:
        pass
    with open_capture(str(writer.paths[0])) as (file, _):
        return part_in(file)


@pytest.mark.long
@given(TEXTS, TEXTS, TEXTS)
def test_what_is_said_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    apis: list[str],
    clients: list[str],
    topics: list[str],
) -> None:
    only = CaptureFilter(tuple(apis), tuple(clients), tuple(topics))
    found = part_of(tmp_path_factory.mktemp("a"), filter_comment(only))
    assert found == (CapturedPart(1.0, str(only)) if only else None)


def test_a_share_and_a_filter_are_both_said(tmp_path: Path) -> None:
    only = filter_comment(CaptureFilter(topics=("orders",)))
    for number, comments in enumerate(
        [(sampling_comment(0.5), only), (only, sampling_comment(0.5))]
    ):
        assert part_of(tmp_path / str(number), b"other", *comments) == CapturedPart(
            0.5, "topics orders"
        )
    assert part_of(tmp_path / "c", sampling_comment(0.5)) == CapturedPart(0.5)
    assert part_of(tmp_path / "d") is None


@pytest.mark.parametrize(
    "said",
    [
        b"{",
        b"[]",
        b'{"topics": 3}',
        b'{"topic": ["a"]}',
        b'{"topics": [1]}',
        b'{"topics": ["\\ud800"]}',
        b'{"topics": ["' + b"a" * 3100 + b'"]}',
        b"{}",
        b'{"topics": []}',
    ],
)
def test_what_is_not_a_filter_is_not_taken_for_one(said: bytes, tmp_path: Path) -> None:
    assert part_of(tmp_path, b"flexwire: captured of all frames: " + said) is None


def test_a_filter_that_no_file_has_room_for_is_refused() -> None:
    with pytest.raises(ArgumentError, match=f"limited to {MOST_FILTER_BYTES} bytes"):
        CaptureFilter(topics=("a" * MOST_FILTER_BYTES,))
    with pytest.raises(ArgumentError, match="a tuple of strings"):
        CaptureFilter(topics="orders")  # type: ignore[arg-type]  # what it refuses


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("a*c", "abc", True),
        ("a*c", "ac", True),
        ("a*c", "abcd", False),
        ("a.c", "abc", False),
        ("*", "\n", True),
        ("a", "A", False),
        ("a|b", "a", False),
    ],
)
def test_only_the_asterisk_is_more_than_itself(pattern: str, text: str, fits: bool) -> None:  # noqa: FBT001  # pytest passes each case
    assert CaptureFilter(topics=(pattern,)).takes_topic(text) is fits
    assert CaptureFilter(client_ids=(pattern,)).takes_client(text) is fits
