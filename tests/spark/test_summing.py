"""The driver merges the sums of all tasks, each once, in the order of ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.errors import StorageError
from flexwire.spark import capture_job
from flexwire.spark.capture_job import keep_sums, merged_sums
from flexwire.storage.output_directory import OutputDirectory
from tests.spark.faulty import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Seen:
    """Sums that record their tasks."""

    def __init__(self, span_us: int, *, spills: bool = False) -> None:  # noqa: ARG002 - the real sums have this argument
        assert span_us == 7
        self.numbers: list[int] = []

    def merge(self, other: Seen) -> None:
        self.numbers += other.numbers


@pytest.mark.parametrize("count", [0, 1, 13])
@pytest.mark.parametrize("kind", [lambda root: OutputDirectory(str(root)), Store])
def test_the_driver_merges_all_sums_in_order_and_removes_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: Callable[[Path], OutputDirectory | Store],
    count: int,
) -> None:
    monkeypatch.setattr(capture_job, "AnalysisSums", Seen)
    place = kind(tmp_path)
    for number in reversed(range(count)):
        sums = Seen(7)
        sums.numbers.append(number)
        keep_sums(place, number, sums)  # type: ignore[arg-type]  # it is pickled, no more
    merged = merged_sums(place, 7, count)
    assert merged.numbers == list(range(count))  # type: ignore[attr-defined]  # see above
    assert list(place.entries("")) == []


def test_sums_of_an_earlier_job_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A late attempt may still write the sums."""
    monkeypatch.setattr(capture_job, "AnalysisSums", Seen)
    place = OutputDirectory(str(tmp_path))
    for number in range(5):
        sums = Seen(7)
        sums.numbers.append(number)
        keep_sums(place, number, sums)  # type: ignore[arg-type]  # it is pickled, no more
    merged = merged_sums(place, 7, 2, first=3)
    assert merged.numbers == [3, 4]  # type: ignore[attr-defined]  # see above
    with pytest.raises(StorageError, match="expected 4 files"):
        merged_sums(place, 7, 4, first=1)


def test_a_listing_that_lacks_a_sum_is_an_error_and_no_smaller_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_job, "AnalysisSums", Seen)
    place = OutputDirectory(str(tmp_path))
    for number in range(2):
        keep_sums(place, number, Seen(7))  # type: ignore[arg-type]  # it is pickled, no more
    with pytest.raises(StorageError, match=r"expected 3 files in _sums/0, but 2 are listed"):
        merged_sums(place, 7, 3)
