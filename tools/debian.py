"""Unpack programs from Debian packages below ``.build/debian``, without installing anything.

This needs ``apt-get`` and ``dpkg``, but neither root nor the machine's package lists. Downloads are
resolved against the installed packages, or against nothing for another architecture. If a program
is not available, the error states this.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tools.maven import ROOT

KEPT = ROOT / ".build" / "debian"
# The places where Debian lists the sources of its packages.
SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
MOST_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Programs:
    """A set of packages, with a name."""

    name: str
    packages: tuple[str, ...]
    architecture: str = ""
    """Debian's name of the architecture, such as "arm64"; if empty, this machine's.

    If an architecture is named, all dependencies are downloaded too.
    """
    are_sources: bool = False
    """True if the packages' original source archives are downloaded, as the authors made them."""
    suite: str = ""
    """The Debian release that contains the packages. If empty, this machine's release is used."""

    def bring(self) -> Path:
        """Return the directory that replaces ``/``; raise `SystemExit` if packages are missing."""
        kind = [self.architecture, "sources" if self.are_sources else "", self.suite]
        asked = " ".join([*self.packages, *filter(None, kind)])
        digest = hashlib.sha256(asked.encode()).hexdigest()[:12]
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
        for name in ("lists/partial", "archives/partial", "root", "sources"):
            (making / name).mkdir(parents=True)
        sys.stderr.write(f"flexwire: bringing Debian's packages for {self.name}\n")
        # Separate lists and archives, without the machine's locks, so this does not need root.
        apt = ["apt-get", "-qq", "-y", "-o", "Debug::NoLocking=true"]
        apt += ["-o", "APT::Sandbox::User=", "-o", f"Dir::State::lists={making / 'lists'}"]
        apt += ["-o", f"Dir::Cache={making}", "-o", f"Dir::Cache::archives={making / 'archives'}"]
        apt += self._of_the_kind(making)
        try:
            self._run([*apt, "update"])
            if self.are_sources:
                self._unpack_sources(apt, making)
            else:
                self._unpack_programs(apt, making)
            (making / "root").rename(place)
        finally:
            shutil.rmtree(making)

    def _of_the_kind(self, making: Path) -> list[str]:
        """Return the options for another architecture, and for sources."""
        options = []
        if self.architecture:
            # Nothing of that architecture is installed, so all dependencies are downloaded too.
            making.joinpath("status").touch()
            options += ["-o", f"APT::Architecture={self.architecture}"]
            options += ["-o", f"APT::Architectures={self.architecture}"]
            options += ["-o", f"Dir::State::status={making / 'status'}"]
        if self.are_sources or self.suite:
            listed = SOURCES.read_text(encoding="utf-8") if SOURCES.is_file() else ""
            # Mirrors may contain only the programs of security updates, without their sources.
            parts = [part for part in listed.split("\n\n") if "-security" not in part]
            listed = "\n\n".join(parts)
            if self.are_sources:
                listed = re.sub(r"(?m)^Types:.*$", "Types: deb-src", listed)
            if self.suite:
                listed = re.sub(r"(?m)^Suites:.*$", f"Suites: {self.suite}", listed)
            making.joinpath("sources", SOURCES.name).write_text(listed, encoding="utf-8")
            options += ["-o", "Dir::Etc::SourceList=/dev/null"]
            options += ["-o", f"Dir::Etc::SourceParts={making / 'sources'}"]
        return options

    def _unpack_programs(self, apt: list[str], making: Path) -> None:
        install = ["install", "--download-only", "--no-install-recommends", "--reinstall"]
        self._run([*apt, *install, *self.packages])
        for archive in sorted((making / "archives").glob("*.deb")):
            self._run(["dpkg", "-x", str(archive), str(making / "root")])

    def _unpack_sources(self, apt: list[str], making: Path) -> None:
        self._run([*apt, "source", "--download-only", *self.packages], making / "archives")
        for archive in sorted((making / "archives").glob("*.orig.tar.*")):
            self._run(["tar", "-xf", str(archive), "-C", str(making / "root")])

    def _run(self, command: list[str], cwd: Path | None = None) -> None:
        try:
            ran = subprocess.run(
                command,
                cwd=cwd,
                capture_output=True,
                text=True,
                check=False,
                timeout=MOST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            self._give_up(f"{command[0]} took more than {MOST_SECONDS} s")
        if ran.returncode:
            # The first line of the output names the error.
            said = [line for line in ran.stderr.splitlines() if line.startswith("E: ")]
            self._give_up(said[0] if said else f"{command[0]} ended with {ran.returncode}")

    def _give_up(self, why: str) -> NoReturn:
        sys.exit(
            f"error: {', '.join(self.packages)} cannot be brought from Debian's packages: {why}\n"
            "This needs them once; afterwards they are kept in .build/debian."
        )


def environment(root: Path) -> dict[str, str]:
    """Return the environment for the unpacked programs, with their own libraries first."""
    libraries = sorted({str(one.parent) for one in root.glob("**/lib/*/*.so*")})
    programs = [str(root / name) for name in ("usr/sbin", "usr/bin", "sbin", "bin")]
    return {
        **os.environ,
        "PATH": os.pathsep.join([*programs, os.environ.get("PATH", "")]),
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
    }
