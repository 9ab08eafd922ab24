"""``python -m tools.package.foreign PLATFORM …``: run wheels for other kinds of Linux here.

zig builds each wheel (`tools.package.cross`). Each wheel is installed with its dependencies, and
runs `tests/house/portable.py` and some commands. With ``--tests``, it also runs the tests. qemu
emulates aarch64. Python for aarch64 with glibc is Debian's, and Python for musl is built
(`tools.package.musl`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from tools.debian import Programs
from tools.package import musl
from tools.package.cross import OUT, PLATFORMS, ROOT, bring_zig, build
from tools.release.installation import tried_elsewhere
from tools.release.listing import findings
from tools.release.sbom import pinned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

KEPT: Final = ROOT / ".build" / "foreign"
NAMES: Final = ("linux-aarch64", "musl-x86_64", "musl-aarch64")
QEMU: Final = Programs("qemu", ("qemu-user-static",))
PYTHON_ARM: Final = Programs("python", ("python3.11", "libstdc++6"), architecture="arm64")
VERSION: Final = musl.VERSION
EXTRAS: Final = ("cramjam", "rich", "numpy", "pyarrow", "zlib-ng", "zstandard")
OF_TESTS: Final = ("pytest", "hypothesis")
# Names of wheels for glibc contain the oldest glibc that they support.
_OLDER: Final = ("manylinux_2_17", "manylinux_2_27")


class Interpreter(NamedTuple):
    """A Python of another kind, and the command that starts it."""

    words: tuple[str | Path, ...]
    described: str


def interpreter(name: str) -> Interpreter:
    """Return the Python that runs wheels for a platform."""
    system, _, processor = name.partition("-")
    words: tuple[str | Path, ...] = ()
    if processor == "aarch64":
        words = (QEMU.bring() / "usr" / "bin" / "qemu-aarch64-static",)
    if system == "musl":
        return Interpreter((*words, musl.python(processor)), "Python built for musl")
    root = PYTHON_ARM.bring()
    return Interpreter((*words, "-L", root, root / "usr" / "bin" / "python3.11"), "Debian's Python")


def install(wheel: Path, name: str, packages: Sequence[str]) -> Path:
    """Install a wheel, and packages at the lock's versions; return the directory."""
    site = KEPT / name
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(parents=True)
    pins = pinned((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    # For newer Pythons, the lock contains another version.
    pins.pop("numpy")
    constraints = KEPT / f"{name}.txt"
    constraints.write_text("".join(f"{one}=={pins[one]}\n" for one in pins), encoding="utf-8")
    tag = PLATFORMS[name].tag
    older = [tag.replace("manylinux_2_28", one) for one in _OLDER if "manylinux" in tag]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    where = ["--target", str(site), "--python-version", VERSION, "--constraint", str(constraints)]
    where += [word for one in (tag, *older) for word in ("--platform", one)]
    links = []
    if name.startswith("musl"):
        # This package has no wheel for musl; pip on a machine without a compiler builds it too.
        wheel_of = ["wheel", "--no-deps", "--no-binary", "google-crc32c", "--wheel-dir", str(KEPT)]
        pure = {**os.environ, "CRC32C_PURE_PYTHON": "1"}
        named = f"google-crc32c=={pins['google-crc32c']}"
        subprocess.run([*pip, *wheel_of, named], check=True, env=pure)
        links = ["--find-links", str(KEPT)]
    command = [*pip, "install", "--only-binary", ":all:", *links, *where, str(wheel), *packages]
    subprocess.run(command, check=True)
    return site


def environment(site: Path) -> dict[str, str]:
    """Return the variables that let a Python find the packages in a directory."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}


def runner(python: Interpreter, site: Path) -> Callable[..., str]:
    """Return a function that runs an interpreter that can import the packages in a directory."""

    def run(*words: str | Path) -> str:
        done = subprocess.run(
            [*python.words, *words],
            env=environment(site),
            cwd=KEPT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            told = f"{done.stdout}{done.stderr[-3000:]}"
            sys.exit(f"error: {words}: status {done.returncode}:\n{told}")
        return done.stdout

    return run


def passes(python: Interpreter, site: Path, tests: Sequence[str]) -> bool:
    """Run tests in an interpreter; return whether they pass."""
    command = [*python.words, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    return not subprocess.run(command, env=environment(site), cwd=ROOT, check=False).returncode


def main() -> int:
    """Build the wheels for the named platforms, and run them."""
    parser = argparse.ArgumentParser(prog="python -m tools.package.foreign", description=__doc__)
    parser.add_argument("platform", nargs="*", default=[*NAMES], help=", ".join(NAMES))
    parser.add_argument("--tests", nargs="+", default=(), help="tests to run there, for pytest")
    given = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    bring_zig()
    failed = 0
    for name in given.platform:
        wheel = build(PLATFORMS[name], OUT)
        if found := findings(wheel, ROOT):
            sys.exit(f"error: {wheel.name}: {'; '.join(found)}")
        python = interpreter(name)
        site = install(wheel, name, [*EXTRAS, *(OF_TESTS if given.tests else ())])
        told = tried_elsewhere(runner(python, site))
        size = f"{wheel.stat().st_size:,} bytes"
        sys.stdout.write(f"{wheel.name}: {size}; {python.described}; {told}\n")
        sys.stdout.flush()
        failed += bool(given.tests) and not passes(python, site, given.tests)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
