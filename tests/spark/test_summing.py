"""The sums of many tasks are merged by tasks, in the order of ranges, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.errors import StorageError
from flexwire.spark import capture_job
from flexwire.spark.capture_job import keep_sums, merged_sums
from flexwire.spark.publishing.drop import Drop
from flexwire.storage.place import Place
from tests.spark.faulty import Store
from tests.spark.parts import here

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Seen:
    """Sums that say of which tasks they are."""

    def __init__(self, span_us: int, *, spills: bool = False) -> None:  # noqa: ARG002 - as the sums that it stands for
        assert span_us == 7
        self.numbers: list[int] = []

    def merge(self, other: Seen) -> None:
        self.numbers += other.numbers


@pytest.mark.parametrize("count", [0, 1, 3, 4, 13, 30])
@pytest.mark.parametrize("kind", [lambda root: Place(str(root)), Store])
def test_sums_are_merged_in_order_by_as_many_tasks_as_it_takes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: Callable[[Path], Place | Store],
    count: int,
) -> None:
    actions = []

    def counted(spark: object, tasks: int, *rest: object) -> object:
        actions.append(tasks)
        return here(spark, tasks, *rest)  # type: ignore[arg-type]  # as it is called

    monkeypatch.setattr(capture_job, "run_tasks", counted)
    monkeypatch.setattr(capture_job, "AnalysisSums", Seen)
    monkeypatch.setattr(capture_job, "MOST_MERGED", 3)
    monkeypatch.setattr(capture_job, "MERGED_BY_TASK", 2)
    place = kind(tmp_path)
    for number in reversed(range(count)):
        sums = Seen(7)
        sums.numbers.append(number)
        keep_sums(place, number, sums)  # type: ignore[arg-type]  # see above
    merged = merged_sums(None, Drop(place), 7, count)  # type: ignore[arg-type]  # it is not touched
    assert merged.numbers == list(range(count))  # type: ignore[attr-defined]  # see above
    assert actions == {4: [2], 13: [7, 4, 2], 30: [15, 8, 4, 2]}.get(count, [])
    assert list(place.entries("")) == []


def test_a_listing_that_lacks_a_sum_is_an_error_and_no_smaller_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_job, "AnalysisSums", Seen)
    place = Place(str(tmp_path))
    for number in range(2):
        keep_sums(place, number, Seen(7))  # type: ignore[arg-type]  # it is pickled, no more
    with pytest.raises(StorageError, match=r"expected 3 files in _sums/0, and 2 are listed"):
        merged_sums(None, Drop(place), 7, 3)  # type: ignore[arg-type]  # it is not touched
