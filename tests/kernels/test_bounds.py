"""No kernel reads or writes a byte outside its memory."""

from __future__ import annotations

import signal

import pytest

from tests.modules import run

pytestmark = pytest.mark.guard


def test_reading_stops_before_the_guard() -> None:
    done = run("tests.kernels.guard", "8000")
    assert done.returncode == 0, done.stderr
    rounds, sound = done.stdout.split(" rounds, ")
    assert rounds == "8000"
    # Some of the damage is only in values, so that kernels also read messages to the last byte.
    assert int(sound.split()[0]) > 1200


def test_the_guard_would_catch_one_byte_too_many() -> None:
    assert run("tests.kernels.guard", "3000", "--lie").returncode == -signal.SIGSEGV


@pytest.mark.long
def test_writing_stays_within_its_buffers() -> None:
    # The debug allocator puts marks around every block, and checks them when it is freed.
    tests = (
        "tests/kernels/test_kernels.py::test_every_vector_is_read_and_written",
        "tests/kernels/test_kernels.py::test_every_length_at_the_edges_of_its_prefix",
        "tests/kernels/test_hostile_objects.py",
    )
    done = run("pytest", "-q", "-p", "no:cacheprovider", *tests, PYTHONMALLOC="debug")
    assert done.returncode == 0, done.stdout + done.stderr
