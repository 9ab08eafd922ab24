"""The kernels for objects pass every case of `tests.codec.boundaries`, by name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.codec import boundaries
from tests.codec.boundaries import DECODED, ENCODED, Case
from tests.kernels.harness import REFUSED, functions


def agreed(given: Any) -> Any:
    """Return the value with which kernels in this package report a refusal."""
    return REFUSED if given is boundaries.REFUSED else given


def bytes_of(case: Case) -> Any:
    return functions(case.message, case.version)[1](case.holder)


def value_of(case: Case) -> Any:
    return functions(case.message, case.version)[0](case.raw)


def test_what_is_written_at_every_boundary() -> None:
    wrong = [str(case) for case in ENCODED if bytes_of(case) != agreed(case.raw)]
    assert wrong == []


@pytest.mark.slow
def test_what_is_read_at_every_boundary() -> None:
    expected = [
        agreed(one.value if one.value is boundaries.REFUSED else one.holder) for one in DECODED
    ]
    # These are compared as strings, because NaN is not equal to itself, and 0.0 is equal to -0.0.
    wrong = [
        (str(case), case.raw[:20].hex())
        for case, value in zip(DECODED, expected, strict=True)
        if repr(value_of(case)) != repr(value)
    ]
    assert wrong == []


@pytest.mark.parametrize("kind", boundaries.INTEGERS)
def test_numbers_of_all_sizes_are_written_or_refused_as_their_type_says(kind: str) -> None:
    low, high = boundaries.ends_of(kind)
    numbers = {
        sign * 2**bits + step for bits in range(70) for sign in (-1, 1) for step in (-1, 0, 1)
    }
    for value in sorted(numbers):
        raw = boundaries.on_the_wire(kind, value, 0) if low <= value <= high else REFUSED
        case = Case(kind, boundaries.INLINE, boundaries.NON_FLEXIBLE, value, raw)
        assert bytes_of(case) == raw, str(case)
