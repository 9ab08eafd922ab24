from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.versions import HIGHEST, Versions

NUMBERS = st.integers(0, HIGHEST)
RANGES = st.builds(Versions, NUMBERS, NUMBERS)
# Small ranges often overlap, so special cases occur.
SMALL = st.one_of(
    st.builds(Versions, st.integers(0, 6), st.integers(0, 6)),
    st.builds(Versions.of, st.frozensets(st.integers(0, 6))),
)


@pytest.mark.parametrize(
    ("text", "lowest", "highest"),
    [
        ("0", 0, 0),
        ("3", 3, 3),
        ("0-4", 0, 4),
        ("4-4", 4, 4),
        ("0+", 0, HIGHEST),
        ("2+", 2, HIGHEST),
        ("32767", HIGHEST, HIGHEST),
        ("32767+", HIGHEST, HIGHEST),
        ("0-32767", 0, HIGHEST),
        ("none", 0, -1),
        ("3-1", 0, -1),
        (" 0-1 ", 0, 1),
        ("+3", 3, 3),
        ("1-+2", 1, 2),
        ("007", 7, 7),
    ],
)
def test_notation_is_read(text: str, lowest: int, highest: int) -> None:
    assert Versions.parse(text) == Versions(lowest, highest)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-1", "1-", "0 - 3", "0-3+", "0--1", "0x1", "None", "all", "1,2", "1.0", "++1"),
        *("32768", "0-32768", "32768+", "9" * 5000, "0-" + "9" * 5000),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"version|integer string"):
        Versions.parse(text)


def test_only_an_empty_text_gives_the_default() -> None:
    assert Versions.parse("  ", Versions.ALL) == Versions.ALL
    assert Versions.parse("none", Versions.ALL) == Versions.NONE


@given(RANGES)
def test_what_is_written_reads_back(versions: Versions) -> None:
    assert Versions.parse(str(versions)) == versions


@given(SMALL, SMALL, st.integers(0, 7))
def test_and_holds_what_both_hold(one: Versions, other: Versions, version: int) -> None:
    assert (version in (one & other)) == (version in one and version in other)


@given(SMALL, SMALL)
def test_or_holds_what_either_holds_and_nothing_between(one: Versions, other: Versions) -> None:
    assert set(one | other) == set(one) | set(other)


@given(SMALL, SMALL)
def test_order_is_that_of_the_sets(one: Versions, other: Versions) -> None:
    assert (one <= other) == (set(one) <= set(other))
    assert (one == other) == (set(one) == set(other))


@given(SMALL)
def test_length_and_truth_are_those_of_the_set(versions: Versions) -> None:
    assert len(versions) == len(set(versions))
    assert bool(versions) == bool(set(versions))


@given(st.frozensets(st.integers(0, 6)))
def test_a_set_is_made_of_just_these_versions(versions: frozenset[int]) -> None:
    assert list(Versions.of(versions)) == sorted(versions)


@given(SMALL)
def test_a_set_with_holes_is_written_and_reads_back(versions: Versions) -> None:
    assert Versions.parse_set(str(versions)) == versions == Versions.of(versions)
    assert hash(Versions.of(versions)) == hash(versions)
    assert [list(range(first, last + 1)) for first, last in versions.ranges] == [
        list(run) for run in _runs(sorted(versions))
    ]


def _runs(numbers: list[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


@pytest.mark.parametrize("text", ["0,16", "0-2,5,7+", "none"])
def test_holes_are_written_with_commas(text: str) -> None:
    assert str(Versions.parse_set(text)) == text


@pytest.mark.parametrize("text", ["0,", ",0", "", "0;1", "0-x"])
def test_another_notation_of_a_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="version"):
        Versions.parse_set(text)


def test_an_open_range_is_not_walked() -> None:
    with pytest.raises(ValueError, match="open-ended"):
        list(Versions.parse("2+"))
    assert list(Versions.parse("2+") & Versions.parse("0-3")) == [2, 3]


def test_there_is_one_empty_range() -> None:
    assert Versions(5, 2) == Versions.NONE
    assert hash(Versions(5, 2)) == hash(Versions.NONE)
    three = Versions(3, 3)
    assert not (three <= Versions(5, 2))
    assert Versions(5, 2) <= three
    assert str(Versions(5, 2)) == "none"
