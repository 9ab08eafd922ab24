"""Make `.venv` from `requirements.lock` and `pyproject.toml`; return immediately if it exists.

`make` runs it with the interpreter for `.venv`, so it imports only the standard library. A stamp in
`.venv` records what was installed: the interpreter, the path, and a digest of everything that
determines the contents. Another stamp does the same for the kernels, which are compiled next to
their sources.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
# The interpreter in the environment. Scripts in the environment contain its path, so the path
# counts too.
MADE_FOR = VENV / ".made-for"
STAMP = VENV / ".installed"
LOCK = ROOT / "requirements.lock"
DECIDES = ("requirements.lock", "pyproject.toml", "tools/environment.py")
# The compiled kernels, and their sources.
COMPILED = VENV / ".kernels"
KERNELS = ROOT / "src" / "flexwire" / "kernels"
COMPILES = ("setup.py", "tools/package/extension.py")
# These are for a machine without a C compiler.
ZIG = ROOT / "tools" / "package" / "zig.lock"


def main() -> None:
    """Make the environment, one process at a time."""
    build = ROOT / ".build"
    build.mkdir(exist_ok=True)
    # `make run` and `make test` may be started at the same time; the second waits for the first.
    with (build / "environment.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = digest(ROOT / name for name in DECIDES)
        if not PYTHON.exists() or read(MADE_FOR) != identity() or read(STAMP) != wanted:
            make()
            STAMP.write_text(wanted)
        compile_kernels()


def make() -> None:
    """Create the environment unless it exists for this interpreter, and install into it."""
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
    # Changed kernels are compiled below.
    install("--no-deps", "--editable", ROOT, FLEXWIRE_KERNELS="off")
    say("looking for Java")
    run(PYTHON, "-m", "flexwire.spark.java")


def compile_kernels() -> None:
    """Compile kernels whose sources have changed; FLEXWIRE_BUILD names another kind of build."""
    sources = sorted(one for one in KERNELS.rglob("*.*") if one.suffix in {".pyx", ".pxd", ".h"})
    of_sources = digest([*(ROOT / name for name in COMPILES), *sources])
    wanted = f"{identity()} {os.environ.get('FLEXWIRE_BUILD', '')} {of_sources}"
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    made = [one.with_suffix(suffix).exists() for one in sources if one.suffix == ".pyx"]
    if all(made) and read(COMPILED) == wanted:
        return
    COMPILED.unlink(missing_ok=True)
    if "CC" not in os.environ and not any(shutil.which(one) for one in ("cc", "gcc", "clang")):
        say("this machine has no C compiler: installing zig's (100 MB)")
        install("--require-hashes", "--requirement", ZIG)
    say("compiling kernels")
    run(PYTHON, "setup.py", "--quiet", "build_ext", "--inplace")
    COMPILED.write_text(wanted)


def identity() -> str:
    """Return the interpreter that runs this script, and the path of the environment."""
    base = Path(sys.base_prefix).resolve()
    return f"{sys.implementation.name} {sys.version.split()[0]} of {base} at {VENV}"


def is_ours() -> bool:
    """Return whether `.venv` was made for this interpreter and path, by us or by hand."""
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


def digest(files: Iterable[Path]) -> str:
    """Return a single SHA-256, in hex, of the names and contents of files."""
    sha = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        sha.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode())
        sha.update(content)
    return sha.hexdigest()


def build_tools() -> Path:
    """Return the lock's entry for setuptools, as the content of a separate file.

    PySpark is built from source. pip's isolated build environment would pin nothing, so PySpark is
    built in `.venv`, which needs setuptools first.
    """
    entry = re.search(r"^setuptools==.*(?:\n +--hash=.*)+$", LOCK.read_text(), re.MULTILINE)
    if entry is None:
        sys.exit("error: requirements.lock does not pin setuptools; run `make lock`")
    path = ROOT / ".build" / "build-tools.lock"
    path.write_text(f"{entry[0]}\n")
    return path


def install(*arguments: str | Path, **variables: str) -> None:
    """Run pip's install, without questions or advice, and build with installed packages."""
    options = ("--disable-pip-version-check", "--no-input", "--quiet", "--no-build-isolation")
    run(PYTHON, "-m", "pip", "install", *options, *arguments, **variables)


def run(*command: str | Path, **variables: str) -> None:
    """Run a command that must succeed; its own output explains a failure."""
    # A user's PYTHONPATH or packages must not replace the environment's.
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    environment |= {"PYTHONNOUSERSITE": "1", "PIP_USER": "0", **variables}
    answer = subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False
    )
    if answer.returncode:
        sys.exit(f"error: {' '.join(map(str, command[:4]))} … failed ({answer.returncode})")


def read(path: Path) -> str:
    """Return the content of a file, or an empty string if the file does not exist."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def say(text: str) -> None:
    """Print the name of a step that takes time."""
    sys.stdout.write(f"flexwire: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
