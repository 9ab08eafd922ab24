"""``python -m tests.sanitized PLACE MODULE …`` runs a module with sanitized kernels.

If their sources have changed, the kernels are compiled into `.build` with AddressSanitizer and
UndefinedBehaviorSanitizer. An access outside a buffer, or an overflow, ends the process and prints
the line. If sanitizers are not available, `lacking` returns the reason.
"""

from __future__ import annotations

import ast
import hashlib
import os
import runpy
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
KERNELS = Path("src", "flexwire", "kernels")
BUILD = ROOT / ".build" / "sanitized"
# The files that a build depends on.
_SOURCES = (".pyx", ".pxd", ".h")
_BUILDS = ("setup.py", "pyproject.toml", "tools/package/extension.py")
# Words that occur in the messages of sanitizers.
FOUND = ("AddressSanitizer", "runtime error")
# If Python and Arrow used their own memory pools, a sanitizer would not see where an object ends.
_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "PYTHONMALLOC": "malloc",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "FLEXWIRE_KERNELS": "",
}


def compiler() -> str:
    """Return the C compiler that ``CC`` names, or ``cc``."""
    return os.environ.get("CC", "cc").split()[0]


def runtime() -> str | None:
    """Return the library that sanitizers require a process to load first; None if there is none."""
    if sys.platform != "linux" or shutil.which(compiler()) is None:
        return None
    asked = [compiler(), "-print-file-name=libasan.so"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return said if Path(said).is_absolute() and Path(said).exists() else None


def lacking() -> str | None:
    """Return why sanitizers cannot be used here; None if they can be used."""
    if sys.platform != "linux":
        return "sanitizers are tried on Linux only"
    if shutil.which(compiler()) is None:
        return "this machine has no C compiler, and zig brings no sanitizers"
    return None if runtime() else f"{compiler()} has no AddressSanitizer (libasan)"


def built(tree: Path = ROOT, place: Path = BUILD) -> Path:
    """Return the directory of a tree's sanitized kernels; compile them if sources have changed."""
    stamp = place / "digest"
    wanted = _digest(tree)
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        stamp.unlink(missing_ok=True)
        places = ("--build-lib", str(place / "lib"), "--build-temp", str(place / "temp"))
        done = subprocess.run(
            [sys.executable, "setup.py", "--quiet", "build_ext", *places],
            cwd=tree,
            env={**os.environ, "FLEXWIRE_BUILD": "sanitized", "FLEXWIRE_KERNELS": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert any((place / "lib").rglob("*.so")), done.stdout + done.stderr
        stamp.write_text(wanted, encoding="utf-8")
    return place / "lib" / "flexwire" / "kernels"


def run(kernels: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module with sanitized kernels and arguments; it prints the kernels' names last."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "tests.sanitized", str(kernels), *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            **_ENVIRONMENT,
            "LD_PRELOAD": runtime() or "",
            "PYTHONPATH": paths,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def rooms(printed: str) -> set[str]:
    """Return the names of the sanitized kernels that a run used, from the end of its output."""
    return set(ast.literal_eval(printed.strip().splitlines()[-1]))


def _digest(tree: Path) -> str:
    sha = hashlib.sha256(f"{sys.version} {compiler()}".encode())
    files = [one for one in (tree / KERNELS).rglob("*.*") if one.suffix in _SOURCES]
    for file in sorted([*files, *(tree / one for one in _BUILDS)]):
        sha.update(str(file.relative_to(tree)).encode())
        sha.update(file.read_bytes())
    return sha.hexdigest()


def _main(place: str, module: str, *arguments: str) -> None:
    """Run a module as a program, with the kernels in the directory ``place``."""
    import_module("flexwire.kernels").__path__.insert(0, place)
    # The instrumented kernels must be the ones that run: other kernels would prove nothing.
    sys.argv = [module, *arguments]
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else bool(ending.code)
    watched = [
        name.rpartition(".")[2]
        for name, one in list(sys.modules.items())
        if (getattr(one, "__file__", None) or "").startswith(f"{place}{os.sep}")
    ]
    sys.stdout.write(f"{sorted(watched)}\n")
    sys.stdout.flush()
    # With a sanitizer, the interpreter takes long to exit, and this exit is not checked.
    os._exit(int(code))


if __name__ == "__main__":
    _main(*sys.argv[1:])
