"""The kernels are loaded when all of them are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.native import loader

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_some_of_the_kernels_are_not_taken_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert loader.load() is not None
    assert loader.is_compiled()
    # As whoever was interrupted while compiling left it.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (loader.cache_directory() / "flexwire.native.reading.nbi").touch()
    assert not loader.is_compiled()
