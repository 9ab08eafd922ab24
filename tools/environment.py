"""Makes `.venv` what `requirements.lock` and `pyproject.toml` say, or returns at once if it is.

Run by `make` with the interpreter that `.venv` is to be made of, so it imports nothing but the
standard library. A stamp in `.venv` says what was installed: the interpreter and place it was made
for, and a digest of all that decides its contents.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
# Which interpreter the environment is made of. Scripts in it name its place, so that counts too.
MADE_FOR = VENV / ".made-for"
STAMP = VENV / ".installed"
LOCK = ROOT / "requirements.lock"
DECIDES = ("requirements.lock", "pyproject.toml", "tools/environment.py")


def main() -> None:
    """Make the environment, one process at a time."""
    build = ROOT / ".build"
    build.mkdir(exist_ok=True)
    # `make run` and `make test` may be started at once; the second waits for the first.
    with (build / "environment.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = digest()
        if PYTHON.exists() and read(MADE_FOR) == identity() and read(STAMP) == wanted:
            return
        make()
        STAMP.write_text(wanted)


def make() -> None:
    """Create the environment unless there is one for this interpreter, and install into it."""
    STAMP.unlink(missing_ok=True)
    if not is_ours():
        say(f"making .venv with Python {sys.version.split()[0]}")
        shutil.rmtree(VENV, ignore_errors=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        except subprocess.CalledProcessError:
            sys.exit(
                f"error: {sys.executable} cannot make a virtual environment (on Debian and Ubuntu "
                "that needs the package python3-venv); name another with make PYTHON=…"
            )
    MADE_FOR.write_text(identity())
    say("installing the dependencies that requirements.lock pins (Spark alone is 450 MB)")
    install("--require-hashes", "--requirement", build_tools())
    install("--require-hashes", "--requirement", LOCK)
    say("installing flexwire")
    install("--no-deps", "--editable", ROOT)
    say("looking for Java")
    run(PYTHON, "-m", "flexwire.spark.java")


def identity() -> str:
    """The interpreter that runs this, and the place of the environment."""
    base = Path(sys.base_prefix).resolve()
    return f"{sys.implementation.name} {sys.version.split()[0]} of {base} at {VENV}"


def is_ours() -> bool:
    """Whether `.venv` was made for this interpreter and place, by us or by hand."""
    made_for = read(MADE_FOR)
    if made_for:
        return made_for == identity() and PYTHON.exists()
    version = "import sys; print(sys.version.split()[0])"
    try:
        answer = subprocess.run(
            [PYTHON, "-c", version], capture_output=True, text=True, check=False
        )
    except OSError:
        return False
    return answer.stdout.strip() == sys.version.split()[0]


def digest() -> str:
    """All that decides what is installed, as one SHA-256 in hex."""
    sha = hashlib.sha256()
    for name in DECIDES:
        content = (ROOT / name).read_bytes()
        sha.update(f"{name} {len(content)}\n".encode())
        sha.update(content)
    return sha.hexdigest()


def build_tools() -> Path:
    """The lock's entry for setuptools, as a file of its own.

    PySpark is built from source. In pip's isolated build environment nothing would be pinned, so it
    is built in ours, which then must have setuptools before.
    """
    entry = re.search(r"^setuptools==.*(?:\n +--hash=.*)+$", LOCK.read_text(), re.MULTILINE)
    if entry is None:
        sys.exit("error: requirements.lock does not pin setuptools; run `make lock`")
    path = ROOT / ".build" / "build-tools.lock"
    path.write_text(f"{entry[0]}\n")
    return path


def install(*arguments: str | Path) -> None:
    """Run pip's install, without questions or advice, building with what is installed already."""
    options = ("--disable-pip-version-check", "--no-input", "--quiet", "--no-build-isolation")
    run(PYTHON, "-m", "pip", "install", *options, *arguments)


def run(*command: str | Path) -> None:
    """Run a command that has to succeed; its own output says why it did not."""
    # A user's PYTHONPATH or own packages must not stand in for the environment's.
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    environment |= {"PYTHONNOUSERSITE": "1", "PIP_USER": "0"}
    answer = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False)
    if answer.returncode:
        sys.exit(f"error: {' '.join(map(str, command[:4]))} … failed ({answer.returncode})")


def read(path: Path) -> str:
    """The text of a file, or nothing when there is none."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def say(text: str) -> None:
    """Tell what takes the time."""
    sys.stdout.write(f"flexwire: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
