"""A test with its own process passes, fails and is skipped like any other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.house.test_ending import BESIDE, session

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

OWN = """
import os, signal
import pytest

pytestmark = pytest.mark.own_process
FIRST = os.getppid(), os.getpid()

def test_passes(tmp_path):
    os.umask(0o777)
    os.environ["LEFT"] = "behind"
    assert tmp_path.exists()

def test_shares_its_process():
    assert os.environ["LEFT"] == "behind"

def test_fails():
    print("said before")
    assert 1 == 2, "one is not two"

def test_is_skipped():
    pytest.skip("not here")

@pytest.fixture
def broken():
    raise ValueError("no fixture")

def test_has_no_fixture(broken):
    pass

def test_fails_at_its_end(request):
    request.addfinalizer(lambda: 1 / 0)

@pytest.mark.parametrize("number", ["one two", "[a]::b"])
def test_of_any_name(number):
    assert number
"""
KILLED = """
import os, signal
import pytest

@pytest.mark.own_process
def test_first():
    pass

@pytest.mark.own_process
def test_kills_itself():
    os.kill(os.getpid(), signal.SIGKILL)

@pytest.mark.own_process
def test_after():
    pass

def test_beside():
    assert "LEFT" not in os.environ
"""


@pytest.mark.long
@pytest.mark.parametrize("arguments", [(), BESIDE], ids=["alone", "beside"])
def test_tests_of_an_own_process_are_reported_as_all_others(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    done = session(
        tmp_path, {"test_own.py": OWN, "test_killed.py": KILLED}, "-rA", "-v", *arguments
    )
    told = done.stdout + done.stderr
    outcomes = {
        (name, outcome)
        for outcome, name in re.findall(r"^(PASSED|FAILED) test_\w+\.py::(\w+)", told, re.MULTILINE)
    }
    assert outcomes == {
        ("test_passes", "PASSED"),
        ("test_shares_its_process", "PASSED"),
        ("test_fails", "FAILED"),
        ("test_has_no_fixture", "FAILED"),
        ("test_fails_at_its_end", "FAILED"),
        ("test_of_any_name", "PASSED"),
        ("test_first", "PASSED"),
        ("test_kills_itself", "FAILED"),
        ("test_after", "FAILED"),
        ("test_beside", "PASSED"),
    }, told
    for part in (
        "SKIPPED [1]",
        "not here",
        "one is not two",
        "said before",
        "no fixture",
        "division by zero",
    ):
        assert part in told
    assert "test_kills_itself has no result" in told
    assert "Its process ended with -9" in told
    assert "5 failed, 6 passed, 1 skipped" in told, told
    assert done.returncode == 1
