"""What `make try-wheel` runs can be imported where numba is not."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from tools.try_wheel import ABOUT_NUMBA, TESTS

ROOT = Path(__file__).parents[2]
# Imports each module where neither can be; gives those that fail.
_TRY = """
import json, sys
from importlib import import_module
sys.modules["numba"] = sys.modules["llvmlite"] = None
failed = []
for name in json.load(sys.stdin):
    try:
        import_module(name)
    except ImportError:
        failed.append(name)
print(json.dumps(failed))
"""


def imported(file: Path) -> set[str]:
    """Give the modules of the kernels that a file imports as it is imported itself."""
    found: set[str] = set()
    for one in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(one, ast.ImportFrom) and one.module:
            names = [one.module, *(f"{one.module}.{alias.name}" for alias in one.names)]
            found |= {name for name in names if name.startswith("flexwire.kernels")}
        elif isinstance(one, ast.Import):
            found |= {
                alias.name for alias in one.names if alias.name.startswith("flexwire.kernels")
            }
    return {name for name in found if module_file(name).exists()}


def module_file(name: str) -> Path:
    place = ROOT.joinpath("src", *name.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def test_no_test_of_the_wheel_s_kernels_imports_what_numba_compiles() -> None:
    files = [one for place in TESTS for one in (ROOT / place).rglob("*.py")]
    kept = [one for one in files if str(one.relative_to(ROOT)) not in ABOUT_NUMBA]
    users = {one: imported(one) for one in kept}
    wanted = sorted(set().union(*users.values()))
    assert len(wanted) > 5
    tried = subprocess.run(
        [sys.executable, "-c", _TRY],
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        check=True,
    )
    failed = set(json.loads(tried.stdout))
    assert {
        str(one.relative_to(ROOT)): both for one in users if (both := users[one] & failed)
    } == {}
