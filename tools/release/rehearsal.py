"""``python -m tools.release.rehearsal``: run every step of a release except its push.

The rehearsal packs the committed files, as ``git archive`` does, and uses only these files.
Packages come from a directory; packages of the lock that this directory lacks are downloaded first.
After that, no step needs a network, and each step runs without one if the system allows this
(``unshare``). Each environment is empty at first. The steps write to ``out/release``.
docs/releasing.md describes what cannot be tried.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools.release import installation
from tools.release.listing import findings, wheel_names
from tools.release.notes import declared_version, notes
from tools.release.sbom import sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parents[2]
WHEELHOUSE: Final = ROOT / ".build" / "wheelhouse"
OUT: Final = ROOT / "out" / "release"
# The packages of the lock that an installation and a build need; `pip download` adds dependencies.
GIT: Final = (shutil.which("git") or "git", "-C", str(ROOT))
PACKAGES: Final = ("setuptools", "cython", "click", "google-crc32c", "msgspec")
NOT_HERE: Final = (
    "wheels of other platforms, which cibuildwheel builds on GitHub's machines",
    "the signatures of attestations: they take an identity of the workflow's run",
    "the upload to an index, by trusted publishing: it takes a project there that trusts the run",
    "the draft of the release, and its notes on its page",
    "images: they take a base from a registry of images",
)


class StepError(Exception):
    """The error for a failed step in the rehearsal, with the reason."""


class Rehearsal:
    """The steps of one rehearsal; each returns what it found."""

    def __init__(self, place: Path, out: Path) -> None:
        self.place = place
        self.out = out
        self.source = place / "source"
        self.python = Path()
        self.without_network = _unshare()

    def run(
        self, command: Sequence[str | Path], *, cwd: Path | None = None, **variables: str
    ) -> str:
        """Return a command's output, without a network; raise `StepError` if the command fails."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PIP_", "UV_", "PYTHON", "FLEXWIRE_", "VIRTUAL_ENV"))
        }
        environment = {**inherited, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        environment |= {"PIP_FIND_LINKS": str(WHEELHOUSE), "PIP_NO_CACHE_DIR": "1", **variables}
        done = subprocess.run(
            [*self.without_network, *map(str, command)],
            cwd=cwd or self.place,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise StepError(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def pack(self) -> str:
        """Pack the committed files, or the files of this tree if it is an archive itself."""
        self.source.mkdir()
        if (ROOT / ".git").exists():
            packed = self.place / "source.tar"
            archive = [*GIT, "archive", "--output", str(packed), "HEAD"]
            subprocess.run(archive, check=True)
            subprocess.run(["/bin/tar", "-xf", str(packed), "-C", str(self.source)], check=True)
            changed = subprocess.run(
                [*GIT, "status", "--porcelain"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            left = f"; {len(changed.splitlines())} changes are not committed" if changed else ""
        else:
            ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
            left = "; this tree is no clone"
            shutil.copytree(
                ROOT,
                self.source,
                dirs_exist_ok=True,
                ignore=lambda at, names: _ignored(at, names, ignored),
            )
        count = sum(path.is_file() for path in self.source.rglob("*"))
        return f"{count:,} files{left}"

    def say(self) -> str:
        """Take the notes for the version from the changelog."""
        version = declared_version(self.source)
        text = notes((self.source / "CHANGELOG.md").read_text(encoding="utf-8"), version)
        (self.out / "notes.md").write_text(text, encoding="utf-8")
        return f"{len(text.splitlines())} lines for the tag v{version}"

    def build(self) -> str:
        """Build the wheel and the source archive from the packed files, in an empty environment."""
        self.python = installation.environment(self.place / "builder")
        self.run([self.python, "-m", "pip", "install", "--quiet", "--upgrade", *PACKAGES[:2]])
        self._wheel(self.source, self.out)
        program = (
            "import sys; from tools.package.backend import build_sdist; build_sdist(sys.argv[1])"
        )
        self.run([self.python, "-c", program, self.out], cwd=self.source, PYTHONPATH=".")
        return ", ".join(f"{one.name} {one.stat().st_size:,} bytes" for one in self.built())

    def _wheel(self, source: Path, out: Path, **variables: str) -> Path:
        pip = [str(self.python), "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
        self.run([*pip, str(out), str(source)], cwd=None, **variables)
        return _only(out, "*.whl")

    def built(self) -> list[Path]:
        """Return the files that a release publishes."""
        return sorted((*self.out.glob("*.whl"), *self.out.glob("*.tar.gz")))

    @property
    def wheel(self) -> Path:
        """Return the wheel of this machine."""
        return _only(self.out, "*.whl")

    def build_again(self) -> str:
        """Build the wheel from the source archive, and compare its bytes."""
        again = self.place / "again"
        wheel = self._wheel(_only(self.out, "*.tar.gz"), again)
        if wheel.read_bytes() != self.wheel.read_bytes():
            raise StepError(f"{wheel.name} has other bytes if it is built from the archive")
        return "the same bytes from the archive of sources"

    def list(self) -> str:
        """Compare the files in the wheel with the sources, and with the reviewed list."""
        if found := findings(self.wheel, self.source):
            raise StepError("\n".join(found))
        return f"{len(wheel_names(self.wheel)):,} files, as reviewed"

    def install(self) -> str:
        """Install the wheel in an empty environment, and try it."""
        return installation.tried(self.run, self.place / "installed", self.wheel, kernels=True)

    def install_without_kernels(self) -> str:
        """Try a wheel without kernels in the same way, as on a machine that cannot compile."""
        wheel = self._wheel(self.source, self.place / "plain", FLEXWIRE_KERNELS="off")
        if found := findings(wheel, self.source, has_kernels=False):
            raise StepError("\n".join(found))
        return installation.tried(self.run, self.place / "slow", wheel, kernels=False)

    def run_as_tool(self) -> str:
        """Run a command as ``uvx flexwire`` does, which installs flexwire for one run."""
        uv = [sys.executable, "-m", "uv", "tool", "run", "--offline", "--no-index", "--python"]
        links = ["--find-links", str(WHEELHOUSE), "--from", str(self.wheel)]
        command = [*uv, str(self.python), *links, "flexwire", *installation.DECODE]
        began = time.monotonic()
        told = self.run(command, UV_CACHE_DIR=str(self.place / "uv"))
        if told != installation.DECODED:
            raise StepError(f"uvx flexwire printed {told!r}")
        return f"uvx flexwire decode: {time.monotonic() - began:.1f} s with the installation"

    def bill(self) -> str:
        """Write the bill of materials, and the list of files that attestations are about."""
        module = [sys.executable, "-m", "tools.release.sbom", *map(str, self.built())]
        text = self.run(module, cwd=self.source)
        (self.out / "sbom.json").write_text(text, encoding="utf-8")
        installation.check_bill(text, self.place / "installed")
        sums = "".join(f"{sha256(one)}  {one.name}\n" for one in self.built())
        (self.out / "SHA256SUMS").write_text(sums, encoding="utf-8")
        return f"sbom.json, and SHA256SUMS of {len(self.built())} files"

    def site(self) -> str:
        """Make the documentation site from the archive, with this checkout's packages."""
        where = self.out / "site"
        command = [sys.executable, "-m", "tools.site", "--out", str(where)]
        self.run(command, cwd=self.source, PYTHONPATH=str(self.source / "src"))
        return f"{sum(path.is_file() for path in where.rglob('*')):,} files"


def _only(folder: Path, pattern: str) -> Path:
    found = [*folder.glob(pattern)]
    if len(found) != 1:
        raise StepError(f"expected one {pattern} in {folder.name}, got {len(found)}")
    return found[0]


def _ignored(at: str, names: list[str], patterns: list[str]) -> set[str]:
    inner = [str(Path(at, name).relative_to(ROOT)) for name in names]
    return {
        name
        for name, path in zip(names, inner, strict=True)
        for pattern in patterns
        if fnmatch(name, pattern.strip("/")) or fnmatch(path, pattern)
    }


def _unshare() -> list[str]:
    """Return the prefix that runs a command without a network, or nothing if this is impossible."""
    words = ["unshare", "--user", "--map-root-user", "--net"]
    if shutil.which("unshare") is None:
        return []
    done = subprocess.run([*words, "true"], capture_output=True, check=False)
    return [] if done.returncode else words


def fetch() -> str:
    """Download the packages that the lock pins, with their dependencies, unless they exist."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = [re.findall(rf"^{name}==\S+", lock, re.MULTILINE)[-1] for name in PACKAGES]
    WHEELHOUSE.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    where = ["--dest", str(WHEELHOUSE), "--only-binary", ":all:", "--find-links", str(WHEELHOUSE)]
    for extra in (["--no-index"], []):
        command = [*pip, *where, *extra, *pins]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.returncode:
            return f"{len([*WHEELHOUSE.iterdir()])} packages" + (", all there" if extra else "")
    raise StepError(done.stderr)


def rehearse(rehearsal: Rehearsal, steps: Sequence[tuple[str, Callable[[], str]]]) -> list[str]:
    """Run the steps, print their findings, and return the names of the failed steps."""
    failed: list[str] = []
    for name, step in steps:
        began = time.monotonic()
        try:
            told = step()
        except (StepError, OSError, ValueError) as error:
            failed.append(name)
            told = f"FAILED: {error}"
        sys.stdout.write(f"{name:26} {time.monotonic() - began:6.1f} s  {told}\n")
        sys.stdout.flush()
        if failed and rehearsal.python == Path():
            break
    return failed


def main() -> int:
    """Rehearse a release; return 1 if a step failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.rehearsal", description=__doc__)
    parser.add_argument("--no-site", action="store_true", help="leave the documentation's site out")
    given = parser.parse_args()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        rehearsal = Rehearsal(Path(place), OUT)
        network = "none" if rehearsal.without_network else "there: only pip is told to use none"
        sys.stdout.write(f"network after the first step: {network}\n")
        steps: list[tuple[str, Callable[[], str]]] = [
            ("packages", fetch),
            ("git archive", rehearsal.pack),
            ("notes", rehearsal.say),
            ("build", rehearsal.build),
            ("build again", rehearsal.build_again),
            ("files of the wheel", rehearsal.list),
            ("install", rehearsal.install),
            ("install without kernels", rehearsal.install_without_kernels),
            ("uvx", rehearsal.run_as_tool),
            ("bill and checksums", rehearsal.bill),
        ]
        if not given.no_site:
            steps.append(("site", rehearsal.site))
        failed = rehearse(rehearsal, steps)
    sys.stdout.write("".join(f"not rehearsed: {what}\n" for what in NOT_HERE))
    if failed:
        sys.stdout.write(f"FAILED: {', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
