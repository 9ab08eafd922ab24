"""A run of tests ends with an error if it loses a process, or if it takes too long."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import conftest, ending
from tests.searching import in_make_long

ROOT = Path(__file__).parents[2]
SECONDS = 300
"""A run that takes longer has not ended; its test waits longer than this."""

CONFTEST = "from tests.conftest import *\n"
# One test waits in each of two workers, and many more are queued behind them.
WAITS = """
import time

def test_waits():
    time.sleep(1000)

def test_after():
    pass
"""

pytestmark = pytest.mark.slow


def session(
    room: Path, files: dict[str, str], *arguments: str, minutes: float = 0
) -> subprocess.CompletedProcess[str]:
    """Run these files in a separate session, with the common settings of all tests."""
    for name, text in ({"conftest.py": CONFTEST, "pytest.ini": INI} | files).items():
        (room / name).write_text(text)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=room,
        env={**environment, "PYTHONPATH": str(ROOT), ending.VARIABLE: str(minutes)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            told, errors = run.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            for pid in (*ending.descendants(run.pid), run.pid):
                os.kill(pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(run.args, run.returncode, told, errors)


INI = """
[pytest]
addopts = --import-mode=importlib
markers =
    own_process: see pyproject.toml
    spark: see pyproject.toml
"""
BESIDE = ("-n", "2", "--dist", "loadfile")
# The ways to lose a worker during a test.
LOSSES = {
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "ended": "import os; os._exit(0)",
    # A background run may have started with the signal ignored.
    "interrupted": """
    import _thread, signal, time
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _thread.interrupt_main()
    time.sleep(1000)
""",
    # The receiver thread ends as if it had run out of memory: the process continues, but receives
    # nothing.
    "alone": """
    import time
    plugins = request.config.pluginmanager.get_plugins()
    [worker] = [one for one in plugins if hasattr(one, "channel")]
    worker.channel.gateway._io.outfile.close()
    time.sleep(1000)
""",
    "broken": "request.config.hook.pytest_runtest_logreport = None",
}


# The limit is reached while every process runs a test, however busy the machine is.
SOON = """
import pytest
from tests import conftest
from tests.conftest import *

class Soon:
    def __init__(self, config):
        self.watch = config.stash[ending.WATCH]
        self.left = max(1, config.getoption("numprocesses") or 0)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logstart(self):
        self.left -= 1
        if not self.left:
            self.watch.limit(1e-9)

def pytest_configure(config):
    conftest.pytest_configure(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Soon(config))
"""


@pytest.mark.parametrize(
    "how", ["killed", *in_make_long(*(one for one in LOSSES if one != "killed"))]
)
def test_the_loss_of_a_worker_ends_the_run(how: str, tmp_path: Path) -> None:
    lost = f"def test_lost(request):\n    {LOSSES[how]}\n\ndef test_after():\n    pass\n"
    # The other worker would continue for a quarter of an hour, and a replacement would get a test.
    one = "def test_alone():\n    pass\n"
    done = session(tmp_path, {"test_a.py": lost, "test_b.py": WAITS, "test_c.py": one}, *BESIDE)
    told = done.stdout + done.stderr
    assert done.returncode not in {0, 5}, told
    assert "test_lost" in told
    assert "replacing crashed worker" not in told
    # If a worker is lost before xdist has sent all its tests, sending fails.
    if how != "broken" and "cannot send (already closed?)" not in told:
        assert re.search(r"The worker gw\d was lost \(.*\); the run ends here", told), told
        assert re.search(r"  gw\d: test_a.py::test_lost for \d+ s", told), told


FAILS = """
from tests import conftest
from tests.conftest import *

class Fails:
    def pytest_runtest_logstart(self):
        raise OSError("cannot send (already closed?)")

def pytest_configure(config):
    conftest.pytest_configure(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Fails())
"""


@pytest.mark.long
def test_a_run_that_fails_itself_names_the_tests_that_its_workers_had(tmp_path: Path) -> None:
    done = session(tmp_path, {"conftest.py": FAILS, "test_b.py": WAITS}, *BESIDE)
    assert done.returncode not in {0, 5}
    assert re.search(r"did not end:\n(.*\n)*  gw\d: test_b.py::test_waits", done.stderr), (
        done.stderr
    )


SHARES = """
import os
import pytest
# As in: spark: SparkSession

@pytest.mark.spark
def test_one():
    with open("told", "a") as told:
        told.write(f"{os.getpid()}\\n")

def test_two():
    pass
"""
HERE = """
from pathlib import Path
from tests import conftest
from tests.conftest import *

conftest.ROOT = Path(__file__).parent
conftest.SESSIONS = 2
"""


@pytest.mark.long
def test_a_run_without_a_loss_ends_with_0_and_two_processes_of_three_have_sessions(
    tmp_path: Path,
) -> None:
    files = {f"test_{name}.py": SHARES for name in "abcd"} | {"conftest.py": HERE}
    files |= {f"test_{name}.py": WAITS.replace("1000", "0") for name in "efg"}
    done = session(tmp_path, files, "-n", "3", "--dist", "loadfile", minutes=ending.MINUTES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "14 passed" in done.stdout
    assert len({*(tmp_path / "told").read_text().splitlines()}) == 2


@pytest.mark.long
@pytest.mark.parametrize("processes", [0, 2])
def test_a_run_that_takes_too_long_ends_and_says_what_it_was_doing(
    processes: int, tmp_path: Path
) -> None:
    names = "ab"[: processes or 1]
    files = {f"test_{name}.py": WAITS for name in names} | {"conftest.py": SOON}
    done = session(tmp_path, files, *(BESIDE if processes else ()), minutes=ending.MINUTES)
    told = done.stderr
    assert done.returncode not in {0, 5}, done.stdout + told
    assert "The tests took " in told
    assert f"{ending.VARIABLE} sets another limit" in told
    where = "gw[01]" if processes else "this process"
    for name in names:
        assert re.search(rf"  {where}: test_{name}.py::test_waits for \d+ s", told), told
    # The places where the tests wait.
    assert "most recent call first" in told, told


# The thread that enforces the limit pauses once, and then never gets the interpreter again.
HOLDS = """
import ctypes
from tests import ending

def test_holds(request):
    ending.GRACE_SECONDS = 1.0
    request.config.stash[ending.WATCH].limit(1e-9)
    ctypes.PyDLL(None).sleep(1000)
"""


def test_a_test_that_holds_the_interpreter_does_not_keep_its_run(tmp_path: Path) -> None:
    done = session(tmp_path, {"test_a.py": HOLDS}, minutes=ending.MINUTES)
    assert done.returncode not in {0, 5}, done.stdout + done.stderr
    assert "Timeout" in done.stderr
    assert "in test_holds" in done.stderr


def test_make_test_and_ci_have_the_usual_limit() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [recipe] = re.findall(r"^test:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert ending.VARIABLE not in recipe
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert ci.rstrip().endswith("\nmake test </dev/null\nexec make long </dev/null")
    assert (ROOT / "tests" / "conftest.py").samefile(conftest.__file__)
    assert ending.MINUTES == 20
