"""A test over many values checks all of them, and names those that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.each import each
from tests.searching import in_parts

if TYPE_CHECKING:
    from pathlib import Path

SEEN: list[int] = []


@each("number", range(3))
def test_each_value_is_tried_beside_fixtures(tmp_path: Path, number: int) -> None:
    assert tmp_path.exists()
    SEEN.append(number)
    assert list(range(number + 1)) == SEEN


def test_all_that_fail_are_named_and_the_first_is_raised() -> None:
    tried = []

    @each("number", {"one": 1, "two": 2, "three": 3, "four": 4})
    def odd(number: int) -> None:
        tried.append(number)
        if number == 4:
            pytest.fail("four")
        assert number % 2, f"{number} is even"

    with pytest.raises(AssertionError, match="2 is even") as caught:
        odd()
    assert caught.value.__notes__ == ["of 4 number, 2 fail: 'two', 'four'"]
    assert tried == [1, 2, 3, 4]


def test_parts_have_every_value_once_and_make_test_tries_the_first() -> None:
    tried = []

    @each("number", range(7), parts=3)
    def seen(number: int) -> None:
        tried.append(number)

    [mark] = seen.pytestmark  # type: ignore[attr-defined]  # pytest adds it
    first, *others = mark.args[1]
    seen(part=first)
    assert tried == [0, 3, 6]
    for one in others:
        assert [each_mark.name for each_mark in one.marks] == ["long"]
        seen(part=one.values[0])
    assert sorted(tried) == [*range(7)]


def test_parts_have_requests_and_responses() -> None:
    with pytest.raises(AssertionError, match="expected an odd number of parts, got 4"):
        in_parts(4)


def test_no_values_are_no_law() -> None:
    @each("number", [])
    def empty(number: int) -> None:
        del number

    with pytest.raises(AssertionError, match="there is no number"):
        empty()


def test_a_test_without_the_parameter_is_refused() -> None:
    with pytest.raises(AssertionError, match="has no parameter name"):
        each("name", [1])(test_no_values_are_no_law)
