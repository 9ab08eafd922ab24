"""``python -m tools.wheel``: builds the wheel of this platform, its kernels compiled, into `dist`.

One wheel serves CPython 3.11 to 3.13: kernels call Python's public functions only, and what they
know of objects is the same in all of these. ``--machine aarch64`` builds for another machine, by
its linker (binutils-aarch64-linux-gnu). ``--check`` builds all twice and compares the bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from flexwire.kernels.library import LEVELS
from tools.wheel_hook import LIBRARIES, TAG

ROOT = Path(__file__).parents[1]
PYTHONS = "cp311.cp312.cp313"
# The oldest libc that pip asks for; kernels take nothing of it that is younger.
PLATFORM = "manylinux_2_17"
# Of numba and LLVM only what they make counts, not what is set for another purpose.
_UNSET = ("NUMBA_", "FLEXWIRE_", "PYTHONPATH")


def main() -> int:
    """Build the wheel, and say what it is; 1 where two builds are not the same."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheel", description=__doc__)
    parser.add_argument("--machine", default=os.uname().machine)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--check", action="store_true", help="build it twice, and compare")
    given = parser.parse_args()
    if sys.platform != "linux" or given.machine not in {one.machine for one in LEVELS}:
        sys.exit(f"error: wheels with compiled kernels are built on Linux, not for {given.machine}")
    wheel = build(given.machine, given.out)
    said = hashlib.sha256(wheel.read_bytes()).hexdigest()
    _say(f"{wheel.name}: {wheel.stat().st_size:,} bytes, sha256 {said}")
    if given.check:
        with tempfile.TemporaryDirectory() as directory:
            again = build(given.machine, Path(directory))
            same = again.name == wheel.name and again.read_bytes() == wheel.read_bytes()
        _say("built again: the same bytes" if same else "built again: OTHER BYTES")
        return 0 if same else 1
    return 0


def build(machine: str, out: Path) -> Path:
    """Compile the kernels for all levels of a machine and build the wheel; gives its path."""
    with tempfile.TemporaryDirectory() as directory:
        libraries = Path(directory)
        for level in (one for one in LEVELS if one.machine == machine):
            began = time.monotonic()
            path = libraries / level.file
            _run("tools.compile_kernels", level.file, str(path))
            _say(f"{level.file}: {path.stat().st_size:,} bytes, {time.monotonic() - began:.0f} s")
        tag = f"{PYTHONS}-none-{PLATFORM}_{machine}"
        environment = {LIBRARIES: str(libraries), TAG: tag}
        _run("hatchling", "build", "-t", "wheel", "-d", str(libraries), **environment)
        (built,) = libraries.glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(built, out / built.name))


def _run(module: str, *arguments: str, **environment: str) -> None:
    kept = {name: one for name, one in os.environ.items() if not name.startswith(_UNSET)}
    # Of the files of a wheel, their times say nothing: hatchling gives all the same.
    kept |= {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONHASHSEED": "0", **environment}
    command = [sys.executable, "-m", module, *arguments]
    subprocess.run(command, cwd=ROOT, env=kept, check=True)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
