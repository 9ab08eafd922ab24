"""docs/platforms.md lists the platforms that the tool checks, and packages in the lock file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.platforms import _MISSING, LOCK, PLATFORMS, without

PAGE = (Path(__file__).parents[2] / "docs" / "platforms.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| ((?:Linux|macOS|Windows).*?) \| (.*) \|$", PAGE, re.MULTILINE))
PINNED = LOCK.read_text(encoding="utf-8")


def test_every_platform_has_a_row() -> None:
    assert list(ROWS) == list(PLATFORMS)


def test_what_is_missing_is_pinned() -> None:
    for gaps in ROWS.values():
        assert gaps == "nothing" or re.findall(r"`([\w-]+)`", gaps)
        for name in re.findall(r"`([\w-]+)`", gaps):
            assert f"\n{name}==" in f"\n{PINNED}", name


@pytest.mark.parametrize("name", ["msgspec", "zstandard", "aiobotocore"])
def test_a_package_is_taken_out_of_the_lock_with_its_hashes(name: str) -> None:
    left = without(PINNED, name)
    assert f"\n{name}==" not in f"\n{left}"
    packages = re.compile(r"^[\w.-]+==", re.MULTILINE)
    assert len(packages.findall(left)) == len(packages.findall(PINNED)) - 1
    assert left.count(" \\\n    --hash") < PINNED.count(" \\\n    --hash")


def test_the_resolver_s_words_are_read() -> None:
    told = "  cause: Because pyarrow==20.0 has no usable wheels and you require pyarrow==20.0, we"
    assert (match := _MISSING.search(told)) is not None
    assert match["name"] == "pyarrow"
