"""``python -m tools.try_wheel WHEEL [--python python3.12 …]``: tests the wheel where numba is not.

For each interpreter a clean environment gets the wheel and all packages of the lock but numba and
llvmlite. The tests run there over the kernels of the wheel, on each level that is asked for; with
``--guard`` every kernel runs between pages that nobody may touch too, its lies included.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What the wheel does without.
_LEFT_OUT = ("numba==", "llvmlite==")
# The rooms that run on kernels; the files below them are about compiling.
TESTS = ("tests/kernels", "tests/records", "tests/columnar", "tests/codec", "tests/capture")
ABOUT_NUMBA = (
    "tests/columnar/test_crc.py",
    "tests/kernels/test_cache.py",
    "tests/kernels/test_emitting.py",
    "tests/kernels/test_objects.py",
    "tests/kernels/test_staleness.py",
    "tests/kernels/test_wire.py",
)
MARKS = "not compiles and not kafka and not cluster"
# In a few seconds each of them would be caught that is caught at all.
GUARD_ROUNDS = 20_000
_PROOF = """
import importlib.util, flexwire
for name in ("numba", "llvmlite"):
    assert importlib.util.find_spec(name) is None, name
found = flexwire.kernels()
assert found.compiled_by == "wheel", found
assert flexwire.load_kernels()
print(found.level)
"""


def main() -> int:
    """Try the wheel on each interpreter; 1 where a test fails."""
    parser = argparse.ArgumentParser(prog="python -m tools.try_wheel", description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    parser.add_argument("--tests", nargs="+", default=TESTS)
    parser.add_argument("--marks", default=MARKS, help="which of the tests, for pytest")
    parser.add_argument("--level", nargs="+", default=[""], help="of processors; else the newest")
    parser.add_argument("--guard", type=int, nargs="?", const=GUARD_ROUNDS, default=0)
    given = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        for number, python in enumerate(given.python):
            clean = _environment(python, given.wheel.absolute(), Path(directory, str(number)))
            for level in given.level:
                failed += not _passes(clean, level, given)
    return 1 if failed else 0


def _environment(python: str, wheel: Path, place: Path) -> Path:
    """Make an environment with the wheel; gives its interpreter."""
    subprocess.run([python, "-m", "venv", place], check=True)
    # An entry goes on in lines that are indented: its hashes.
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text(encoding="utf-8"))
    wanted = [one for one in entries if not one.startswith(_LEFT_OUT)]
    (place / "wanted.txt").write_text("\n".join(wanted), encoding="utf-8")
    pip = [str(place / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "install", "--require-hashes", "-r", str(place / "wanted.txt")], check=True
    )
    subprocess.run([*pip, "install", "--no-deps", str(wheel)], check=True)
    return place / "bin" / "python"


def _passes(python: Path, level: str, given: argparse.Namespace) -> bool:
    environment = {one: os.environ[one] for one in os.environ if one != "PYTHONPATH"}
    environment |= {"FLEXWIRE_KERNELS": level, "PYTHONDONTWRITEBYTECODE": "1"}
    # Half an hour of tests, where a run of all others ends after 20 minutes.
    environment |= {"FLEXWIRE_TEST_MINUTES": "120"}

    def run(*arguments: str) -> int:
        command = [str(python), *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode

    _say(f"== {python}, {level or 'the newest level'}")
    # Not where the sources are, which an interpreter would find first.
    proof = subprocess.run([python, "-c", _PROOF], cwd=python.parent, env=environment, check=False)
    ignored = [f"--ignore={one}" for one in ABOUT_NUMBA]
    tests = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        given.marks,
        *ignored,
        *given.tests,
    ]
    codes = [proof.returncode, run(*tests)]
    if given.guard:
        codes.append(run("-m", "fuzz.guard", "--rounds", str(given.guard)))
    return not any(codes)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
