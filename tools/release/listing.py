"""Compare the files in a wheel with a reviewed list.

`wheel-files.txt` contains a line for each directory and suffix: a new module in a package needs no
review, but a new kind of file does. ``python -m tools.release.listing`` rewrites the list from the
sources; look at the difference before you commit it. If wheels are given, they are compared with
the list.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
REVIEWED: Final = Path(__file__).with_name("wheel-files.txt")
# Sources of kernels, and files that are not in the package.
SOURCES: Final = frozenset({".pyx", ".pxd", ".h", ".c", ".so", ".pyd", ".pyc"})
KERNELS: Final = "flexwire/kernels/*.so"
ABOUT: Final = (
    "flexwire.data/data/share/man/man1/*.1",
    "flexwire.dist-info/METADATA",
    "flexwire.dist-info/RECORD",
    "flexwire.dist-info/WHEEL",
    "flexwire.dist-info/entry_points.txt",
    "flexwire.dist-info/licenses/LICENSE",
    "flexwire.dist-info/licenses/NOTICE",
    "flexwire.dist-info/top_level.txt",
)
_VERSIONED: Final = re.compile(r"^flexwire-[^/]+\.(data|dist-info)/")


def kinds(names: Iterable[str]) -> set[str]:
    """Return the directory and suffix of each file, or the whole name of a file without a suffix.

    >>> sorted(kinds(["flexwire/a.py", "flexwire/b.py", "flexwire-1.0.dist-info/WHEEL"]))
    ['flexwire.dist-info/WHEEL', 'flexwire/*.py']
    """
    return {_kind(_VERSIONED.sub(r"flexwire.\1/", name)) for name in names}


def _kind(name: str) -> str:
    path = PurePosixPath(name)
    # Kernels for Windows count as the same kind.
    suffix = ".so" if path.suffix == ".pyd" else path.suffix
    is_about = path.parts[0] == "flexwire.dist-info"
    return name if is_about or not suffix else str(path.with_name(f"*{suffix}"))


def wheel_names(wheel: Path) -> list[str]:
    """Return the names of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if not name.endswith("/")]


def source_names(root: Path = ROOT) -> set[str]:
    """Return the file names in a wheel built from these sources, without kernels and metadata."""
    source = root / "src"
    files = (*source.glob("*.py"), *(source / "flexwire").rglob("*"))
    return {
        str(PurePosixPath(path.relative_to(source)))
        for path in files
        if path.is_file() and path.suffix not in SOURCES
    }


def reviewed() -> set[str]:
    """Return the kinds of files that a wheel with kernels may have."""
    return {*REVIEWED.read_text(encoding="utf-8").splitlines()}


def findings(wheel: Path, root: Path, *, has_kernels: bool = True) -> list[str]:
    """Return what is wrong with the files in a wheel built from the sources below ``root``."""
    names = wheel_names(wheel)
    expected = reviewed() - (set() if has_kernels else {KERNELS})
    found = [f"nobody reviewed {kind}" for kind in sorted(kinds(names) - expected)]
    found += [f"{kind} is missing" for kind in sorted(expected - kinds(names))]
    inner = {
        name
        for name in names
        if not _VERSIONED.match(name) and PurePosixPath(name).suffix not in SOURCES
    }
    found += [f"{name} is not in the sources" for name in sorted(inner - source_names(root))]
    found += [f"{name} is missing" for name in sorted(source_names(root) - inner)]
    found += [f"{name} is there twice" for name in sorted({n for n in names if names.count(n) > 1})]
    return found


def expected_kinds(root: Path = ROOT) -> set[str]:
    """Return the kinds of files that a wheel from these sources has, with kernels."""
    return {*kinds(source_names(root)), KERNELS, *ABOUT}


def main() -> int:
    """Compare the named wheels with the reviewed list; without wheels, rewrite the list."""
    if wheels := [Path(name) for name in sys.argv[1:]]:
        found = [
            f"{wheel.name}: {finding}" for wheel in wheels for finding in findings(wheel, ROOT)
        ]
        sys.stdout.write("".join(f"{line}\n" for line in found))
        return 1 if found else 0
    REVIEWED.write_text("".join(f"{kind}\n" for kind in sorted(expected_kinds())), encoding="utf-8")
    sys.stdout.write(f"wrote {REVIEWED.relative_to(ROOT)}: review the difference\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
