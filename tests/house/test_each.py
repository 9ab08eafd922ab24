"""A test over many values checks all of them, and names those that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.each import each

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


def test_no_values_are_no_law() -> None:
    @each("number", [])
    def empty(number: int) -> None:
        del number

    with pytest.raises(AssertionError, match="there is no number"):
        empty()


def test_a_test_without_the_parameter_is_refused() -> None:
    with pytest.raises(AssertionError, match="has no parameter name"):
        each("name", [1])(test_no_values_are_no_law)
