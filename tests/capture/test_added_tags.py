"""A tap that adds header tags records these tags and all its other facts in each capture file."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.capture.files.comments import (
    MOST_FILTER_BYTES,
    MOST_HEADER_TAGS,
    CapturedPart,
    CaptureFilter,
    added_tags_comment,
    added_tags_in,
    filter_comment,
)
from flexwire.client.notation import HostPort
from flexwire.facts.captures import MOST_SHOWN, AddedTags, StampedCaptures, added_tags
from flexwire.storage.file_search import list_captures
from flexwire.survey.request import FileMarks, look_at_files, read_marks
from flexwire.tap.config import TapConfig
from flexwire.tap.connections import file_comments
from flexwire.tap.header_stamps import HeaderTag, StampConfig
from flexwire.wire.limits import HIGHEST_TAG
from tests.capture.test_filtering import part_of
from tests.capture.test_sampling import files, section

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = b"flexwire: captured of a tap that adds header tags: "
AT = HostPort("127.0.0.1", 9092)


def tags_of(*comments: bytes) -> tuple[int, ...]:
    data = section("<", *((1, one) for one in comments))
    return added_tags_in(io.BufferedReader(io.BytesIO(data)))


@given(st.sets(st.integers(0, HIGHEST_TAG), min_size=1, max_size=MOST_HEADER_TAGS))
def test_what_is_said_is_read(tags: set[int]) -> None:
    assert tags_of(b"of an editor", added_tags_comment(tags)) == tuple(sorted(tags))


def test_a_tap_says_it_in_each_file_beside_share_and_filter(tmp_path: Path) -> None:
    highest = [HIGHEST_TAG - one for one in range(MOST_HEADER_TAGS)]
    room = MOST_FILTER_BYTES - len(filter_comment(CaptureFilter(topics=("",))))
    only = CaptureFilter(topics=("a" * room,))
    config = TapConfig(AT, AT, tmp_path, sample=1 / 3, only=only)
    stamping = StampConfig([HeaderTag(one, "secret") for one in highest])
    stamped = TapConfig(AT, AT, tmp_path, sample=1 / 3, only=only, stamping=stamping)
    assert tags_of(*file_comments(stamped)) == tuple(sorted(highest))
    assert tags_of(*file_comments(config)) == ()
    assert tags_of(*file_comments(TapConfig(AT, AT, tmp_path))) == ()
    # The values may be anything.
    comments = file_comments(stamped)
    assert not [one for one in comments if b"secret" in one or b"secret".hex() in str(one)]
    (tmp_path / "each").mkdir()
    for number, comment in enumerate(comments):
        files(tmp_path / "each" / str(number), comment)
    assert part_of(tmp_path, *comments) == CapturedPart(1 / 3, str(only))
    found = [one.marks for one in look_at_files(list_captures([tmp_path / "each"]))]
    said = (
        FileMarks(CapturedPart(1 / 3)),
        FileMarks(added_tags=tuple(sorted(highest))),
        FileMarks(CapturedPart(1.0, str(only))),
    )
    assert found == [one for one in said for _ in range(3)]
    assert [one for _, one in read_marks(list_captures([tmp_path / "each"]))] == found


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"{}",
        b'{"tags": 10042}',
        b'{"tags": "10042"}',
        b'{"tags": [true]}',
        b'{"tags": [10042.0]}',
        b'{"tags": [-1]}',
        b'{"tags": [2147483648]}',
        b'{"tags": []}',
        b'{"tags": {"10042": "a"}}',
        b'{"tags": [' + b"1," * 16 + b"1]}",
        b'{"tags": ' + b"[" * 3000,
    ],
)
def test_what_is_not_tags_is_not_taken_for_some(said: bytes) -> None:
    assert tags_of(PREFIX + said) == ()
    assert tags_of(PREFIX + said, added_tags_comment([10042])) == (10042,)


@given(st.binary(max_size=80), st.integers(0, 200), st.binary(max_size=6))
def test_damage_gives_tags_or_nothing(data: bytes, at: int, other: bytes) -> None:
    whole = section("<", (1, added_tags_comment([10042, 10043])))
    for one in (data, b"\x0a\x0d\x0d\x0a" + data, whole[:at], whole[:at] + other + whole[at:]):
        tags = added_tags_in(io.BufferedReader(io.BytesIO(one)))
        assert all(0 <= tag <= HIGHEST_TAG for tag in tags)


@given(
    st.lists(st.sets(st.integers(10_000, 10_030), max_size=2).map(sorted).map(tuple), max_size=90)
)
def test_every_file_that_says_so_is_counted(said: list[tuple[int, ...]]) -> None:
    found = added_tags((str(number), tags) for number, tags in enumerate(said))
    assert found.files == sum(map(bool, said))
    assert len(found.captures) == min(len({*said} - {()}), MOST_SHOWN)
    for one in found.captures:
        names = [str(number) for number, tags in enumerate(said) if tags == one.tags]
        assert (one.files, one.first) == (len(names), tuple(names[:3]))
    left = [tags for tags in said if tags and tags not in {one.tags for one in found.captures}]
    assert found.others == len(left)
    assert any("more capture" in one for one in found.sentences) is bool(left)
    least = min((one.files for one in found.captures), default=0)
    assert all(said.count(tags) <= least for tags in left)


def test_nothing_is_told_where_no_file_says_anything() -> None:
    assert added_tags([("a", ())]) == AddedTags()
    assert AddedTags().sentences == ()


def test_one_that_is_left_out_is_told_as_one() -> None:
    told = AddedTags((StampedCaptures((10042,), 2, ("a", "b")),), 3).sentences
    assert told[:2] == (
        "Captured from a tap that added header tag 10042: a, b.",
        "1 more capture is from taps that added other tags.",
    )
