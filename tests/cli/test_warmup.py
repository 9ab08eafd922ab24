"""warmup says what it compiled, or why there is nothing to compile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.errors import FlexwireError
from flexwire.kernels import cache as kernel_cache
from flexwire.kernels import engine

if TYPE_CHECKING:
    from collections.abc import Callable


def warmup() -> str:
    return CliRunner().invoke(app, ["warmup"], catch_exceptions=False).output


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing compiled."""
    monkeypatch.setattr(kernel_cache, "load", object)
    monkeypatch.setattr(engine, "kernel", lambda _: object())


def test_all_kernels_are_compiled() -> None:
    assert [line.split(":")[0] for line in warmup().splitlines()] == [
        "messages as objects",
        "messages, records and captures as columns",
    ]


@pytest.mark.parametrize(
    ("where", "name", "give"),
    [
        (kernel_cache, "load", lambda: None),
        (engine, "kernel", lambda _: None),
        # As on a disk that becomes full meanwhile.
        (engine, "kernel", lambda name: None if name == "seal_records" else object()),
    ],
)
def test_one_kernel_too_few_is_an_error(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, give: Callable[..., object]
) -> None:
    monkeypatch.setattr(where, name, give)
    with pytest.raises(FlexwireError, match="room on the disk"):
        warmup()
