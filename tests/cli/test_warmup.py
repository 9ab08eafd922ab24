"""warmup says what it compiled and kept, or why there is nothing to compile."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.cli import terminal
from flexwire.cli.app import app
from flexwire.errors import FlexwireError
from flexwire.kernels import cache as kernel_cache
from flexwire.kernels import engine, running
from flexwire.spark import archive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def warmup() -> str:
    return CliRunner().invoke(app, ["warmup"], catch_exceptions=False).output


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing compiled."""
    monkeypatch.setattr(kernel_cache, "load", object)
    monkeypatch.setattr(engine, "kernel", lambda _: object())
    monkeypatch.setattr(archive, "make_archive", lambda _: Path("kept"))


def test_all_kernels_are_compiled_and_the_classes_of_spark_are_kept() -> None:
    assert [line.split(":")[0] for line in warmup().splitlines()] == [
        "kernels",
        "kernels compiled by numba",
        "Spark's classes",
    ]


def test_a_java_that_keeps_no_classes_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "make_archive", lambda _: None)
    assert warmup().splitlines()[-1].startswith("Spark's classes: not kept, as this Java makes no")


def test_without_spark_there_are_no_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexwire.cli.warmup.find_spec", lambda _: None)
    assert len(warmup().splitlines()) == 2


def test_of_what_the_wheel_brings_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = SimpleNamespace(level="x86-64-v3")
    monkeypatch.setattr(kernel_cache, "find_library", lambda: wheel)
    monkeypatch.setattr(running, "find_library", lambda: wheel)
    monkeypatch.setattr(kernel_cache, "load", lambda: pytest.fail("loads"))
    first, _ = warmup().splitlines()
    assert first.startswith("kernels compiled by wheel: for x86-64-v3")


def test_a_person_who_waits_sees_how_much_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, int, int]] = []

    @contextmanager
    def bar() -> Iterator[Callable[[str, int, int], None]]:
        yield lambda *said: heard.append(said)

    monkeypatch.setattr(terminal, "progress_bar", bar)
    warmup()
    steps = len(engine.KERNELS) + 1
    assert heard == [("compiling kernels", done, steps) for done in range(steps)]


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
    with pytest.raises(
        FlexwireError, match="no kernels can be compiled: no directory can be written"
    ):
        warmup()


@pytest.mark.parametrize(
    ("variables", "installed", "told"),
    [
        ({"FLEXWIRE_KERNELS": "off"}, True, "unset FLEXWIRE_KERNELS, which is off"),
        ({"NUMBA_DISABLE_JIT": "1"}, True, "unset NUMBA_DISABLE_JIT, which keeps numba from"),
        ({}, False, "numba is not installed: pip install 'flexwire[fast]'"),
    ],
)
def test_what_keeps_it_from_compiling_is_said_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    installed: bool,  # noqa: FBT001 - a parameter
    told: str,
) -> None:
    monkeypatch.setattr(kernel_cache, "load", lambda: None)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if not installed:
        monkeypatch.setattr(kernel_cache, "find_spec", lambda _: None)
    with pytest.raises(FlexwireError) as caught:
        warmup()
    assert str(caught.value).startswith(f"no kernels can be compiled: {told}")
    assert "\n" not in str(caught.value)
