"""``python -m tools.try_wheel [--python python3.12 …]``: test the wheel on each interpreter.

Each interpreter gets a clean environment with the packages in the lock, and a wheel that pip builds
with this interpreter. The tests run with the kernels of the wheel. ``--guard`` also runs every
kernel between protected memory pages, including the runs with ``--lie``.

``--packages`` is for an interpreter for which some packages of the lock have no wheel: only the
named packages are installed, at the lock's versions, with their dependencies.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tools.release.sbom import pinned

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[1]
# The test directories that use kernels.
TESTS = ("tests/kernels", "tests/records", "tests/columnar", "tests/codec", "tests/capture")
MARKS = "not kafka and not cluster"
# If a false length is detected at all, it is detected within a few seconds.
GUARD_ROUNDS = 20_000
_PROOF = """
import sys, flexwire
found = flexwire.kernel_status()
assert found.is_compiled, found
assert flexwire.__file__.startswith(sys.prefix), flexwire.__file__
print(found)
"""


def main() -> int:
    """Try the wheel on each interpreter; return 1 if a test fails."""
    parser = argparse.ArgumentParser(prog="python -m tools.try_wheel", description=__doc__)
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    parser.add_argument("--tests", nargs="+", default=TESTS)
    parser.add_argument("--marks", default=MARKS, help="which of the tests, for pytest")
    parser.add_argument("--packages", nargs="+", default=(), help="instead of the whole lock")
    parser.add_argument("--guard", type=int, nargs="?", const=GUARD_ROUNDS, default=0)
    given = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        for number, python in enumerate(given.python):
            place = Path(directory, str(number))
            failed += not _passes(_environment(python, place, given.packages), given)
    return 1 if failed else 0


def _environment(python: str, place: Path, packages: Sequence[str]) -> Path:
    """Make an environment with the wheel and these packages or the lock; return its interpreter."""
    subprocess.run([python, "-m", "venv", place], check=True)
    found = place / "bin" / "python"
    pip = [str(found), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    lock = ROOT / "requirements.lock"
    if packages:
        pins = place / "constraints.txt"
        pins.write_text(
            "".join(f"{name}=={version}\n" for name, version in pinned(lock.read_text()).items())
        )
        named = [*packages, "setuptools", "cython"]
        subprocess.run([*pip, "install", "--constraint", str(pins), *named], check=True)
    else:
        subprocess.run([*pip, "install", "--require-hashes", "-r", str(lock)], check=True)
    wheels = str(place / "wheels")
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", wheels, str(ROOT)], check=True)
    (wheel,) = Path(wheels).glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", str(wheel)], check=True)
    return found


def _passes(python: Path, given: argparse.Namespace) -> bool:
    environment = {one: os.environ[one] for one in os.environ if one != "PYTHONPATH"}
    # The tests take half an hour; any other run ends after 20 minutes.
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "FLEXWIRE_TEST_MINUTES": "120"}

    def run(*arguments: str) -> int:
        command = [str(python), *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode

    sys.stdout.write(f"== {python}\n")
    sys.stdout.flush()
    # The tests run outside the source directory, which an interpreter would find first.
    proof = subprocess.run([python, "-c", _PROOF], cwd=python.parent, env=environment, check=False)
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", given.marks, *given.tests)
    codes = [proof.returncode, run(*tests)]
    if given.guard:
        codes.append(run("-m", "fuzz.guard", "--rounds", str(given.guard)))
    return not any(codes)


if __name__ == "__main__":
    sys.exit(main())
