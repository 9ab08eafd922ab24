"""Programs of Debian's packages, unpacked below ``.build/debian``: nothing is installed.

It needs ``apt-get`` and ``dpkg``, but neither root nor the machine's package lists: downloads are
resolved against the installed packages. If a program is not available, the error says so.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from tools.maven import ROOT

if TYPE_CHECKING:
    from pathlib import Path

KEPT = ROOT / ".build" / "debian"
MOST_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Programs:
    """A set of packages and its name."""

    name: str
    packages: tuple[str, ...]

    def bring(self) -> Path:
        """The directory that stands for ``/``; `SystemExit` says why packages are not available."""
        digest = hashlib.sha256(" ".join(self.packages).encode()).hexdigest()[:12]
        place = KEPT / f"{self.name}-{digest}"
        KEPT.mkdir(parents=True, exist_ok=True)
        with KEPT.joinpath("lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.is_dir():
                self._bring(place)
        return place

    def _bring(self, place: Path) -> None:
        if shutil.which("apt-get") is None:
            self._give_up("there is no apt-get on the path: this is not Debian, nor made of it")
        making = place.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        for name in ("lists/partial", "archives/partial", "root"):
            (making / name).mkdir(parents=True)
        sys.stderr.write(f"flexwire: bringing Debian's packages for {self.name}\n")
        # Its own lists and archives, without the machine's locks, so it does not need root.
        apt = ["apt-get", "-qq", "-y", "-o", "Debug::NoLocking=true"]
        apt += ["-o", "APT::Sandbox::User=", "-o", f"Dir::State::lists={making / 'lists'}"]
        apt += ["-o", f"Dir::Cache={making}", "-o", f"Dir::Cache::archives={making / 'archives'}"]
        install = ["install", "--download-only", "--no-install-recommends", "--reinstall"]
        try:
            self._run([*apt, "update"])
            self._run([*apt, *install, *self.packages])
            for archive in sorted((making / "archives").glob("*.deb")):
                self._run(["dpkg", "-x", str(archive), str(making / "root")])
            (making / "root").rename(place)
        finally:
            shutil.rmtree(making)

    def _run(self, command: list[str]) -> None:
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=MOST_SECONDS
            )
        except subprocess.TimeoutExpired:
            self._give_up(f"{command[0]} took more than {MOST_SECONDS} s")
        if ran.returncode:
            # The first line says what is wrong.
            said = [line for line in ran.stderr.splitlines() if line.startswith("E: ")]
            self._give_up(said[0] if said else f"{command[0]} ended with {ran.returncode}")

    def _give_up(self, why: str) -> NoReturn:
        sys.exit(
            f"error: {', '.join(self.packages)} cannot be brought from Debian's packages: {why}\n"
            "This needs them once; afterwards they are kept in .build/debian."
        )


def environment(root: Path) -> dict[str, str]:
    """The environment for unpacked programs, with their own libraries first."""
    libraries = sorted({str(one.parent) for one in root.glob("**/lib/*/*.so*")})
    programs = [str(root / name) for name in ("usr/sbin", "usr/bin", "sbin", "bin")]
    return {
        **os.environ,
        "PATH": os.pathsep.join([*programs, os.environ.get("PATH", "")]),
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
    }
