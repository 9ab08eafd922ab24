"""``python -m tools.release.containers``: build the images from ``containers``, and run them.

The command requires root on Debian with buildah and mmdebstrap, but no container daemon: each step
of a recipe runs in a chroot. The base image contains only Debian's packages, Python and pip,
because not every machine can reach an image registry; ``--base IMAGE`` names another base image.
``dist`` contains this machine's wheel (``make wheel``), and pip installs its dependencies.
Everything is below ``.build/images``. `RUNS` lists the commands that run in each image, and their
users.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tools.environment import ROOT
from tools.release.installation import DECODE, DECODED

if TYPE_CHECKING:
    from collections.abc import Sequence

KEPT: Final = ROOT / ".build" / "images"
RECIPES: Final = ROOT / "containers"
CAPTURE: Final = ROOT / "tests" / "vectors" / "captures" / "hosts"
BASE: Final = "localhost/flexwire-base"
PACKAGES: Final = ("python3", "python3-pip", "ca-certificates")
SOURCES: Final = Path("/etc/apt/sources.list.d/debian.sources")
# pip in the image finds packages where this machine's pip does.
_OF_PIP: Final = ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
# The directory for /data, which is writable by everybody.
_ANYBODY: Final = "12345:12345"


class Run(NamedTuple):
    """The arguments that follow the name of an image, and the expected output."""

    words: tuple[str, ...]
    told: str
    """The expected output may be only a part of the real output."""
    user: str = ""
    """The user that runs the command. If empty, the image's own user runs it."""


RUNS: Final = {
    "codec": (
        Run((), "Usage: flexwire"),
        Run(DECODE, DECODED),
        Run(("explain", "RequestHeader", "0012000300000007000161", "--version", "1"), "client"),
        Run(DECODE, DECODED, _ANYBODY),
    ),
    "spark": (
        Run((), "Usage: flexwire analyze"),
        Run(("analyze", "/data/capture", "--out", "/data/out"), "report.html"),
    ),
}
"""By recipe."""


class ImageError(Exception):
    """The error for a failed step, with the reason."""


def run(*command: str | Path) -> str:
    """Return what a command prints; raise `ImageError` if it fails."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        told = f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
        raise ImageError(f"{' '.join(map(str, command))}:\n{told}")
    return done.stdout


def buildah(*words: str | Path) -> str:
    """Run buildah on the images below ``.build/images``."""
    store: list[str | Path] = [
        "--root",
        KEPT / "store",
        "--runroot",
        KEPT / "run",
        "--storage-driver",
        "vfs",
    ]
    return run("buildah", *store, *words)


def make_base() -> str:
    """Make a Debian image with Python and pip; return its name."""
    root = KEPT / "base"
    if not root.is_dir():
        making = KEPT / "base.making"
        shutil.rmtree(making, ignore_errors=True)
        include = f"--include={','.join(PACKAGES)}"
        run("mmdebstrap", "--quiet", "--variant=minbase", include, "bookworm", making, SOURCES)
        # The base must let pip install packages, as Python images do.
        for mark in (making / "usr/lib").glob("python3*/EXTERNALLY-MANAGED"):
            mark.unlink()
        for left in ("var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(making / left, ignore_errors=True)
        making.rename(root)
    container = buildah("from", "scratch").strip()
    buildah("copy", "--quiet", container, root, "/")
    buildah("commit", "--quiet", "--rm", container, BASE)
    return BASE


def build(recipe: Path, base: str) -> str:
    """Build a recipe on a base; return the image's name."""
    name = f"localhost/flexwire-{recipe.stem}"
    volumes = [f"--volume={path}:{path}:ro" for path in _OF_PIP if Path(path).exists()]
    options = ["--isolation", "chroot", "--network", "host", *volumes]
    buildah("build", *options, "--build-arg", f"BASE={base}", "--file", recipe, "--tag", name, ROOT)
    return name


def size_of(image: str) -> int:
    """Return the total size of an image's files in bytes."""
    container = buildah("from", image).strip()
    try:
        root = Path(buildah("mount", container).strip())
        return sum(
            (Path(at) / name).lstat().st_size
            for at, _, names in os.walk(root)
            for name in names
            if not (Path(at) / name).is_symlink()
        )
    finally:
        buildah("rm", container)


def try_run(image: str, one: Run) -> str:
    """Run an image as a container, and compare its output; return how long it took."""
    container = buildah("from", image).strip()
    config = json.loads(buildah("inspect", "--type", "image", image))["OCIv1"]["config"]
    words = [*config["Entrypoint"], *(one.words or config["Cmd"])]
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as place:
            data = Path(place)
            data.chmod(0o777)
            shutil.copytree(CAPTURE, data / "capture")
            options = ["--isolation", "chroot", f"--volume={data}:/data"]
            options += ["--user", one.user] if one.user else []
            told = buildah("run", *options, container, "--", *words)
            if one.told not in told:
                raise ImageError(f"{' '.join(words)} printed {told!r}")
    finally:
        buildah("rm", container)
    return f"{time.monotonic() - began:.1f} s"


def rehearse(recipes: Sequence[str], base: str) -> None:
    """Build and run the recipes; raise `ImageError` if a step fails."""
    base = base or make_base()
    of_base = size_of(base)
    sys.stdout.write(f"base {base}: {of_base / 1e6:,.0f} MB\n")
    for recipe in recipes:
        image = build(RECIPES / f"{recipe}.Containerfile", base)
        sys.stdout.write(f"{recipe}: {(size_of(image) - of_base) / 1e6:,.1f} MB without its base\n")
        for one in RUNS[recipe]:
            who = f" as {one.user}" if one.user else ""
            took = try_run(image, one)
            sys.stdout.write(f"{recipe}: {' '.join(one.words) or 'nothing'}{who}: {took}\n")
            sys.stdout.flush()


def main() -> int:
    """Build and run all images; return 1 if a step failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.containers", description=__doc__)
    parser.add_argument("recipe", nargs="*", default=[*RUNS], choices=[*RUNS])
    parser.add_argument("--base", default="", help="an image of a registry, or of this machine")
    given = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    try:
        rehearse(given.recipe, given.base)
    except ImageError as error:
        sys.stdout.write(f"FAILED: {error}\n")
        return 1
    finally:
        shutil.rmtree(KEPT / "store", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
