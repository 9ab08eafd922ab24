"""A compiled kernel is never older than its source, and a warm process compiles none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.compiles

PACKAGE = Path(__file__).parents[2] / "src" / "flexwire"
# With the kernel that is compiled soonest: whether it gives what plain Python does.
HASH = """
import pyarrow
from flexwire.measures.bounded import hash_of, hashes_and_texts
value = bytes([255])
print(int(hashes_and_texts(pyarrow.array([value]))[0][0]) == hash_of(value))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the package, to be changed."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, root / "flexwire", ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture(scope="module")
def warm(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a cache that has the copy's kernels."""
    cache = tmp_path_factory.mktemp("cache")
    assert run(copy, cache) == "True"
    return cache


def run(root: Path, cache: Path, script: str = HASH, given: str = "") -> str:
    """Run a script on the copy, with a cache of its own."""
    # Kernels that somebody left in the temporary directory would be found there.
    places = {"XDG_CACHE_HOME": str(cache), "TMPDIR": str(cache)}
    environment = {**os.environ, "PYTHONPATH": str(root), **places}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout.strip()


def objects(cache: Path) -> dict[Path, int]:
    """The compiled kernels of a cache, and when each was."""
    return {one: one.stat().st_mtime_ns for one in cache.rglob("*.o")}


def test_an_edit_of_any_kernel_file_is_seen(copy: Path, warm: Path) -> None:
    kept = objects(warm)
    assert kept
    assert run(copy, warm) == "True"
    assert objects(warm) == kept
    # A helper in a file that no kernel stands in: numba alone would not notice.
    machine = copy / "flexwire" / "kernels" / "machine.py"
    source = machine.read_text()
    load = "load_uint8 = make_loader(8, swap=False, signed=False)"
    assert load in source
    machine.write_text(source.replace(load, load.replace("signed=False", "signed=True")))
    assert run(copy, warm) == "False"
    machine.write_text(source)
    assert run(copy, warm) == "True"


def test_every_file_of_the_kernels_is_in_the_cache_s_name(copy: Path) -> None:
    room = copy / "flexwire" / "kernels"
    kernels = [*room.rglob("*.py")]
    # And what they import that stands elsewhere.
    compiled = (text for one in kernels if "\n@" in (text := one.read_text()))
    imported = re.findall(r"^from flexwire\.(wire\.\w+) import", "".join(compiled), re.MULTILINE)
    kernels += {copy / "flexwire" / f"{one.replace('.', '/')}.py" for one in imported}
    assert len(kernels) > 30
    script = """
import sys
from pathlib import Path
from flexwire.kernels.sources import sources
print(sources())
for file in map(Path, sys.stdin.read().splitlines()):
    before = file.read_bytes()
    file.write_bytes(before + b"\\n")
    sources.cache_clear()
    print(sources())
    file.write_bytes(before)
sources.cache_clear()
print(sources())
"""
    first, *changed, last = run(copy, copy, script, "\n".join(map(str, kernels))).splitlines()
    assert first == last
    assert len({first, *changed}) == len(kernels) + 1


def test_where_nothing_can_be_written_a_temporary_directory_will_do(
    copy: Path, tmp_path: Path
) -> None:
    # A file where the cache would be, so that not even root can make it.
    taken = {"flexwire", f"flexwire-{os.getuid()}"}
    for name in taken:
        (tmp_path / name).write_text("")
    script = f"""
import os, tempfile
from flexwire.kernels.cache import cache_directory
tempfile.tempdir = {str(tmp_path)!r}
print(os.access(cache_directory(), os.W_OK), cache_directory())"""
    writable, found = run(copy, tmp_path, script).split(" ", 1)
    assert writable == "True"
    assert Path(found).is_relative_to(tmp_path)
    # It goes with the process.
    assert {one.name for one in tmp_path.iterdir()} == taken


def test_without_kernels_the_reference_does_it_all(copy: Path, tmp_path: Path) -> None:
    script = "import os; os.environ['FLEXWIRE_KERNELS'] = 'off'" + HASH
    assert run(copy, tmp_path, script) == "True"
    assert not objects(tmp_path)
