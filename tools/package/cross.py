"""``python -m tools.package.cross PLATFORM …``: build wheels for other platforms with zig.

The wheel is for this Python's version and uses its headers, so it shows that the kernels compile
and link for a processor and a system. cibuildwheel builds the wheels of a release, each with the
headers of its own platform. Wheels go into ``out/cross``. One of the header files is specific to
the platform. Linux's file also fits other 64-bit Unix systems, but not Windows, where a C ``long``
is shorter: see `tools.package.windows`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from tools.package.backend import EPOCH

ROOT = Path(__file__).parents[2]
OUT: Final = ROOT / "out" / "cross"


THIS_PYTHON: Final = f"{sys.version_info.major}{sys.version_info.minor}"


class Platform(NamedTuple):
    """A platform, with its names for zig, wheels and extensions."""

    target: str
    tag: str
    suffix: str
    """The end of an extension's file name, with ``PY`` for the Python version, such as "312"."""
    linked: tuple[str, ...] = ("-shared",)
    compiled: tuple[str, ...] = ()
    """Additional compiler options."""
    refused: str = ""
    """An option with which this Python was compiled, but which the platform's compiler rejects."""


# Python's own build produces bundles, which zig's linker cannot produce. Python also loads
# libraries. Symbols of Python are resolved when the library is loaded.
_MACOS: Final = ("-shared", "-undefined", "dynamic_lookup")
# `manylinux_2_28` guarantees glibc 2.28.
PLATFORMS: Final = {
    "linux-x86_64": Platform(
        "x86_64-linux-gnu.2.28", "manylinux_2_28_x86_64", ".cpython-PY-x86_64-linux-gnu.so"
    ),
    "linux-aarch64": Platform(
        "aarch64-linux-gnu.2.28", "manylinux_2_28_aarch64", ".cpython-PY-aarch64-linux-gnu.so"
    ),
    "musl-x86_64": Platform(
        "x86_64-linux-musl", "musllinux_1_2_x86_64", ".cpython-PY-x86_64-linux-musl.so"
    ),
    "musl-aarch64": Platform(
        "aarch64-linux-musl", "musllinux_1_2_aarch64", ".cpython-PY-aarch64-linux-musl.so"
    ),
    "macos-arm64": Platform(
        "aarch64-macos.11.0", "macosx_11_0_arm64", ".cpython-PY-darwin.so", _MACOS
    ),
    "macos-x86_64": Platform(
        "x86_64-macos.11.0", "macosx_11_0_x86_64", ".cpython-PY-darwin.so", _MACOS
    ),
}
"""The possible names."""


# A wheel has the tag of the Python that builds the wheel, unless an option names another.
_SETUP: Final = """
import runpy, sys
from setuptools.command.bdist_wheel import bdist_wheel
tag = tuple(sys.argv.pop(1).split("-"))
bdist_wheel.get_tag = lambda command: tag
runpy.run_path("setup.py", run_name="__main__")
"""
_COMPILER: Final = """#!/bin/sh
for one do shift; [ "$one" = "{refused}" ] || set -- "$@" "$one"; done
exec {command} "$@"
"""


def bring_zig() -> None:
    """Install the pinned version of zig, unless this environment has one."""
    if find_spec("ziglang") is None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        lock = Path(__file__).with_name("zig.lock")
        subprocess.run([*pip, "--require-hashes", "--requirement", str(lock)], check=True)


def build(platform: Platform, out: Path, python: str = THIS_PYTHON) -> Path:
    """Build the wheel for a platform and a Python version from the sources; return its path."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        compiler = folder / "cc"
        words = [sys.executable, "-m", "ziglang", "cc", "-target", platform.target]
        command = shlex.join([*words, *platform.compiled])
        text = _COMPILER.format(command=command, refused=platform.refused)
        compiler.write_text(text, encoding="utf-8")
        compiler.chmod(0o700)
        environment = {
            **os.environ,
            "CC": str(compiler),
            "LDSHARED": shlex.join([str(compiler), *platform.linked, "-s"]),
            "SETUPTOOLS_EXT_SUFFIX": platform.suffix.replace("PY", python),
            "SOURCE_DATE_EPOCH": EPOCH,
            "PYTHONPATH": str(ROOT),
        }
        build_base = ["build", "--build-base", str(folder / "build")]
        packed = ["bdist_wheel", "--dist-dir", str(folder / "dist")]
        packed += ["--bdist-dir", str(folder / "packed")]
        tag = f"cp{python}-cp{python}-{platform.tag}"
        done = subprocess.run(
            [sys.executable, "-c", _SETUP, tag, "--quiet", *build_base, *packed],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or "without kernels" in done.stdout + done.stderr:
            sys.exit(f"error: {tag} cannot be built:\n{done.stdout}{done.stderr}")
        (wheel,) = (folder / "dist").glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        return leave_out(wheel, out / wheel.name)


def leave_out(wheel: Path, to: Path) -> Path:
    """Rewrite a wheel without the files that zig's linker puts next to a library for Windows."""
    with zipfile.ZipFile(wheel) as given:
        kept = [one for one in given.infolist() if not one.filename.endswith((".lib", ".pdb"))]
        left = {*given.namelist()} - {one.filename for one in kept}
        with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as taken:
            for entry in kept:
                data = given.read(entry)
                if entry.filename.endswith(".dist-info/RECORD"):
                    lines = data.decode().splitlines(keepends=True)
                    data = "".join(x for x in lines if x.partition(",")[0] not in left).encode()
                taken.writestr(entry, data)
    return to


def main() -> int:
    """Build the wheels for the named platforms."""
    parser = argparse.ArgumentParser(prog="python -m tools.package.cross", description=__doc__)
    parser.add_argument("platform", nargs="+", choices=PLATFORMS)
    given = parser.parse_args()
    bring_zig()
    for name in given.platform:
        wheel = build(PLATFORMS[name], OUT)
        sys.stdout.write(f"{wheel.name}: {wheel.stat().st_size:,} bytes\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
