"""List the packages of `requirements.lock` that lack a wheel: `python -m tools.platforms`.

For each platform, the lock file is resolved without installing anything. Packages without a wheel
are left out until the lock file can be resolved. A package that exists only as pure Python source
can be built anywhere, so it does not count.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
PLATFORMS = {
    "Linux, glibc, x86-64": "x86_64-manylinux_2_28",
    "Linux, glibc, aarch64": "aarch64-manylinux_2_28",
    "Linux, musl, x86-64": "x86_64-unknown-linux-musl",
    "Linux, musl, aarch64": "aarch64-unknown-linux-musl",
    "macOS, Apple silicon": "aarch64-apple-darwin",
    "macOS, Intel": "x86_64-apple-darwin",
    "Windows, x86-64": "x86_64-pc-windows-msvc",
}
# These packages exist only as source, in pure Python.
PURE = ("pyspark",)
PYTHON = "3.11"
_MISSING = re.compile(r"Because (?P<name>[\w.-]+)==[\w.+!-]+ has no (?:usable )?wheels")


def missing(platform: str) -> list[str]:
    """Return the pinned packages without a wheel for a platform, sorted by name."""
    left = LOCK.read_text(encoding="utf-8")
    found: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        while True:
            lock = Path(place) / "requirements.lock"
            lock.write_text(left, encoding="utf-8")
            told = resolved(lock, platform)
            if told is None:
                return sorted(found)
            match = _MISSING.search(told)
            if match is None:
                sys.exit(f"{platform}: {told}")
            found.append(match["name"])
            left = without(left, match["name"])


def resolved(lock: Path, platform: str) -> str | None:
    """Return the error from resolving a lock for a platform, or None."""
    command = [sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--quiet", "--no-deps"]
    command += ["--target", str(lock.parent / "none"), "--python-version", PYTHON]
    command += ["--python-platform", platform, "--only-binary", ":all:", "--require-hashes"]
    for name in PURE:
        command += ["--no-binary", name]
    answer = subprocess.run(
        [*command, "--requirement", str(lock)], capture_output=True, text=True, check=False
    )
    return answer.stderr if answer.returncode else None


def without(lock: str, name: str) -> str:
    """Return a lock without one of its packages."""
    return re.sub(rf"(?m)^{re.escape(name)}==.*\n(?:[ \t]+.*\n)*", "", lock)


def main() -> None:
    """Print one table row for each platform."""
    sys.stdout.write("| platform | packages without a wheel |\n|---|---|\n")
    for name, platform in PLATFORMS.items():
        gaps = ", ".join(f"`{one}`" for one in missing(platform)) or "nothing"
        sys.stdout.write(f"| {name} | {gaps} |\n")


if __name__ == "__main__":
    main()
