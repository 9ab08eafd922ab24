"""Analyses that are killed at random moments leave the old output, the new one, or say so."""

from __future__ import annotations

import secrets
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from flexwire.spark.staging import PREFIX
from flexwire.spark.tables import SUCCESS
from fuzz.kills import rounds, state

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spark
def test_a_killed_analysis_leaves_no_mix_and_the_next_one_removes_it(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    # Shown where the test fails.
    sys.stdout.write(f"python -m fuzz.kills --rounds 2 --seed {seed}\n")
    sys.stdout.write("\n".join(rounds(tmp_path, 2, seed)))
    out = tmp_path / "out"
    assert state(out, {3}) == 3
    # And what looks at it can see a mix.
    with pytest.raises(AssertionError, match="no capture"):
        state(out, {2})
    (out / "report.html").rename(tmp_path / "report.html")
    with pytest.raises(AssertionError, match=r"report\.html'\] are missing"):
        state(out, {3})
    facts = out / "facts.json"
    facts.write_text(facts.read_text().replace('"frames": 6', '"frames": 2'))
    with pytest.raises(AssertionError, match="a mix"):
        state(out, {2, 3})
    shutil.rmtree(out / "tables" / "frames")
    (out / "tables" / SUCCESS).unlink()
    assert state(out, {3}) is None
    assert not list(out.glob(f"{PREFIX}*"))
