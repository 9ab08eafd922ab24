from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from flexwire.specs.cost.sizes import Sizes


@given(st.lists(st.integers(-9, 9)), st.lists(st.integers(-9, 9)), st.integers(0, 30))
def test_the_numbers_are_those_of_the_list(first: list[int], second: list[int], pad: int) -> None:
    sizes = Sizes(first)
    other = Sizes()
    for one in second:
        other.add(one)
    sizes.merge(other)
    sizes = sizes.padded(pad)
    every = first + second
    every += [0] * (pad - len(every))
    assert (sizes.count, sizes.total) == (len(every), sum(every))
    if every:
        assert (sizes.least, sizes.most) == (min(every), max(every))
        assert sizes.median == statistics.median(every)


def test_of_none_everything_is_zero() -> None:
    sizes = Sizes()
    assert (sizes.count, sizes.total, sizes.least, sizes.median, sizes.most) == (0, 0, 0, 0, 0)


def test_what_is_merged_or_padded_stays_as_it_was() -> None:
    first, second = Sizes([1]), Sizes([2])
    first.merge(second)
    assert first.padded(9).count == 9
    assert (first.count, second.count) == (2, 1)
