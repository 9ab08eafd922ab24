"""``python -m tools.package.cross PLATFORM …``: builds wheels for other platforms, by zig.

It is for this Python's version, from this Python's headers, so it shows that the kernels compile
and link for a processor and a system. cibuildwheel builds the wheels of a release, each with the
headers of its own platform. Wheels go into ``out/cross``. One file of the headers is the platform's
own. That of Linux also fits other 64-bit Unix, and not Windows, whose C has a shorter long.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from tools.package.backend import EPOCH

ROOT = Path(__file__).parents[2]
OUT: Final = ROOT / "out" / "cross"


class Platform(NamedTuple):
    """A platform as zig, as wheels and as extensions name it."""

    target: str
    tag: str
    suffix: str
    linked: tuple[str, ...] = ("-shared",)


# Python's own build makes bundles, which zig's linker cannot. Python loads a library as well. What
# it calls of Python is looked up when it is loaded.
_MACOS: Final = ("-shared", "-undefined", "dynamic_lookup")
# glibc 2.28 is what `manylinux_2_28` promises.
PLATFORMS: Final = {
    "linux-x86_64": Platform("x86_64-linux-gnu.2.28", "manylinux_2_28_x86_64", "x86_64-linux-gnu"),
    "linux-aarch64": Platform(
        "aarch64-linux-gnu.2.28", "manylinux_2_28_aarch64", "aarch64-linux-gnu"
    ),
    "musl-x86_64": Platform("x86_64-linux-musl", "musllinux_1_2_x86_64", "x86_64-linux-musl"),
    "musl-aarch64": Platform("aarch64-linux-musl", "musllinux_1_2_aarch64", "aarch64-linux-musl"),
    "macos-arm64": Platform("aarch64-macos.11.0", "macosx_11_0_arm64", "darwin", _MACOS),
    "macos-x86_64": Platform("x86_64-macos.11.0", "macosx_11_0_x86_64", "darwin", _MACOS),
}
"""What can be named."""


def build(name: str, out: Path) -> Path:
    """Build the wheel of a platform from the sources; return its path."""
    platform = PLATFORMS[name]
    version = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        compiler = folder / "cc"
        words = [sys.executable, "-m", "ziglang", "cc", "-target", platform.target]
        compiler.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        compiler.chmod(0o700)
        environment = {
            **os.environ,
            "CC": str(compiler),
            "LDSHARED": shlex.join([str(compiler), *platform.linked, "-s"]),
            "SETUPTOOLS_EXT_SUFFIX": f".{version}-{platform.suffix}.so",
            "SOURCE_DATE_EPOCH": EPOCH,
            "PYTHONPATH": str(ROOT),
        }
        build_base = ["build", "--build-base", str(folder / "build")]
        packed = ["bdist_wheel", "--plat-name", platform.tag, "--dist-dir", str(folder / "dist")]
        packed += ["--bdist-dir", str(folder / "packed")]
        done = subprocess.run(
            [sys.executable, "setup.py", "--quiet", *build_base, *packed],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or "without kernels" in done.stdout + done.stderr:
            sys.exit(f"error: {name} cannot be built:\n{done.stdout}{done.stderr}")
        (wheel,) = (folder / "dist").glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, out))


def main() -> int:
    """Build the wheels of the platforms that are named."""
    parser = argparse.ArgumentParser(prog="python -m tools.package.cross", description=__doc__)
    parser.add_argument("platform", nargs="+", choices=PLATFORMS)
    for name in parser.parse_args().platform:
        wheel = build(name, OUT)
        sys.stdout.write(f"{wheel.name}: {wheel.stat().st_size:,} bytes\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
