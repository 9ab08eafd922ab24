"""Damaged captures yield the same result whether read in order, by ranges or in pieces."""

from __future__ import annotations

import gzip
import random
from functools import partial
from typing import TYPE_CHECKING

import pytest

from flexwire.survey import fold
from fuzz.damage import damage_file
from fuzz.damaged import check
from fuzz.law import LawBrokenError
from tests.capture.columns.captures import made_capture

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_damaged_captures_are_read_alike_in_all_ways(tmp_path: Path) -> None:
    became = {checked(tmp_path, seed) for seed in range(1036, 1046)}
    assert became >= {"again", "proven", "merged"}


def test_a_piece_that_is_left_out_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold.Fold, "_read", lambda *_: None)
    monkeypatch.setattr(fold.Fold, "_is_next", lambda *asked: asked[1].head is None)
    with pytest.raises(LawBrokenError, match="pieces "):
        list(map(partial(checked, tmp_path), range(1000, 1010)))


def checked(place: Path, seed: int) -> str:
    return check(seed, place / str(seed))


def test_any_file_can_be_damaged() -> None:
    source = random.Random(1)
    changed = 0
    for _ in range(300):
        data = made_capture(source)
        changed += damage_file(source, data) != data
    assert changed > 250
    for data in (b"", b"\n\r\r\n", b"\xd4\xc3\xb2\xa1", gzip.compress(b"")):
        for _ in range(20):
            damage_file(source, data)
