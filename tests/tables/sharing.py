"""Survey captures of several hosts in shares of their connections, as the tasks do."""

from __future__ import annotations

import pickle
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from flexwire.capture.reassembly.assembly import ConnectionShare
from flexwire.survey.ranges import decode_range
from flexwire.survey.request import NAMES, range_context_name, range_origins_name
from flexwire.survey.saved_state import StateRecord, unpack
from flexwire.survey.shares import join_shares, survey_share
from flexwire.survey.survey import AnalysisRequest, Survey, Surveyor, look_at_readable_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.survey.request import RangeContext

Kept = dict[str, bytes]
Found = dict[str, Any]


class Make(Protocol):
    """Make a survey, and keep its entries."""

    def __call__(
        self, asked: AnalysisRequest, kept: Kept, before: bytes | None = None
    ) -> Survey: ...


def in_one(asked: AnalysisRequest, kept: Kept, before: bytes | None = None) -> Survey:
    """Return the survey of one task, which merges all files."""
    return Surveyor(asked, kept.__setitem__, overlapping=True, before=before).run()


def in_shares(
    asked: AnalysisRequest, kept: Kept, before: bytes | None = None, *, shares: int
) -> Survey:
    """Return the survey of this many tasks, whose pickled parts another task joins."""
    known = Survey()
    looks = look_at_readable_files(asked, known)
    assert looks is not None
    keep = kept.__setitem__
    parts = [
        pickle.dumps(survey_share(asked, looks, ConnectionShare(number, shares), keep, before))
        for number in range(shares)
    ]
    return join_shares(asked, keep, looks, known, [*map(pickle.loads, parts)], before)


def found_by(asked: AnalysisRequest, survey: Survey, kept: Kept) -> Found:
    """Return everything in a survey, and the rows of its ranges, each in a fixed order."""
    found: Found = {"survey": replace(survey, state=None)}
    found["state"] = None if survey.state is None else record_of(survey.state)
    found[NAMES] = pickle.loads(kept[NAMES])  # noqa: S301 - ours
    for number in range(survey.ranges):
        known: RangeContext = pickle.loads(kept[range_context_name(number)])  # noqa: S301 - ours
        found[f"context {number}"] = replace(known, shares=1)
        if asked.continuation is not None:
            found[f"origins {number}"] = pickle.loads(kept[range_origins_name(number)])  # noqa: S301 - ours
        for table, batch in decode_range(asked, number, kept.__getitem__):
            found.setdefault(f"rows of {table} {number}", []).extend(batch.to_pylist())
    return found


def record_of(state: bytes) -> dict[str, Any]:
    """Return the fields of a saved state, with pending requests by connection."""
    record = unpack(state, StateRecord)
    found = {name: getattr(record, name) for name in record.__struct_fields__}
    found["pending"] = {one.name: one for one in record.pending}
    return found


def assert_same(got: Found, expected: Found, what: object) -> None:
    """Fail with the first difference."""
    assert got.keys() == expected.keys(), what
    for name, value in expected.items():
        assert got[name] == value, (what, name)


@contextmanager
def no_kernels() -> Iterator[None]:
    """Run without kernels for captures until the end of the block."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            rooms = ("flexwire.capture.", "flexwire.survey.", "flexwire.tables.")
            if name.startswith(rooms) and hasattr(module, "load_kernel"):
                patch.setattr(module, "load_kernel", lambda _: None)
        yield
