"""Plant mistakes in the source, one after the other, and list those that the tests catch.

    python -m tools.mistakes --draw 40 --into mistakes.jsonl
    python -m tools.mistakes --plant mistakes.jsonl --results before.jsonl

After a change, the tests must catch every mistake that they caught before. Draw the mistakes once,
plant them with the old and with the new tests, and compare both results. A mistake changes one
operator, number or condition of a module. The tests of a mistake are the module's doctests, the
test files that name the module, and a few that name the function. If no test names the module, the
tests of the modules that import it are used instead. The tests run in a copy of the checkout with
the compiled kernels: mistakes are drawn outside ``kernels/``. The stages of ``STAGES`` follow each
other until one fails, so Spark starts only for a mistake that quick tests do not catch. ``make
test`` leaves out the tests of the last stage, so a mistake that only they catch is not caught;
``--long`` runs them. A stage may take ten minutes; ``FLEXWIRE_TEST_MINUTES`` sets another limit. A
stage that reaches its limit proves nothing, unless the test that was running had an endless loop.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools.environment import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SOURCE: Final = Path("src", "flexwire")
LEFT_OUT: Final = (
    "kernels",
    "wire/limits.py",
    "wire/batch_layout.py",
    "logs/segment_layout.py",
    "__main__.py",
    "moved.py",
)
"""Kernels are compiled from these modules, which takes a minute; the last two modules are lists."""

MINUTES: Final = "10"
"""The time limit for the tests of one mistake, because a mistake may cause an endless loop."""

_AT_LIMIT: Final = " minutes, and are ended."
"""The text that `tests.ending` writes if tests reach their limit."""

_UNCOMPILED: Final = "PYTHONDONTWRITEBYTECODE"
_NOT_FAILED: Final = (0, 5)
"""pytest's exit codes if all tests passed, and if there were none."""

ROOMS: Final = {
    "client": "net",
    "logs": "capture",
    "specs": "check",
    "survey": "tables",
    "tap": "net",
}
"""The test folders whose names differ from those of the packages that they test."""

SPARK_FILES: Final = 5
"""Many Spark test files name a basic module: a few are enough, and all would take minutes."""

SHORT: Final = 5
"""A name of at most this length often means something else in a test."""

CALLING_FILES: Final = 3
"""The maximum number of test files that count as near because they name the function or class of
the mistake.
"""

NEAR_FILES: Final = 15
"""The maximum number of a module's test files that run first, because pytest imports all of them
before it runs one.
"""

WIDER_FILES: Final = 15
"""The maximum number of further test files that run if the module's own do not catch a mistake."""

_ELSEWHERE: Final = "cluster or kafka or browser"
STAGES: Final = {
    "near": ("near", f"not (spark or long or {_ELSEWHERE})"),
    "wider": ("wider", f"not (spark or long or {_ELSEWHERE})"),
    "spark": ("near", f"spark and not (long or {_ELSEWHERE})"),
    "long": ("near", f"long and not ({_ELSEWHERE})"),
}
"""Which test files each stage runs, and the markers of its tests."""

TOLD: Final = {"": "NOT CAUGHT", "long": "ONLY BY MAKE LONG", "limit": "TIME IS UP"}
"""The text that is printed for these stages. In all other stages, the mistake was caught."""

_COMPARED: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: (" is ", " is not "),
    ast.IsNot: (" is not ", " is "),
    ast.In: (" in ", " not in "),
    ast.NotIn: (" not in ", " in "),
}
_COUNTED: Final[dict[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
}


@dataclass(frozen=True, slots=True)
class Mistake:
    """One line of a file, and its replacement."""

    path: str
    line: int
    right: str
    wrong: str
    near: tuple[str, ...] = ()
    """The test files of the module, and the module itself for its doctests."""
    wider: tuple[str, ...] = ()
    """Further test files: those of the modules that import the module, and of its package."""


@dataclass(frozen=True, slots=True)
class Result:
    """The tests' result for a mistake, and their CPU time.

    ``stage`` is the stage that failed, "limit" if a stage reached its limit, or "".
    """

    mistake: Mistake
    is_caught: bool
    stage: str
    cpu_seconds: float
    told: str


def main() -> None:
    """Draw mistakes, or plant drawn ones."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draw", type=int, help="how many mistakes to draw, of all rooms")
    parser.add_argument("--rooms", nargs="+", help="draw only of these, as storage spark/sources")
    parser.add_argument("--seed", default="mistakes", help="what the draw depends on")
    parser.add_argument("--into", type=Path, help="the file for the mistakes that are drawn")
    parser.add_argument("--plant", type=Path, help="the file of the mistakes to plant")
    parser.add_argument("--results", type=Path, help="the file for what the tests said")
    parser.add_argument("--long", action="store_true", help="try the tests of make long too")
    asked = parser.parse_args()
    if asked.draw and asked.into:
        chance = random.Random(asked.seed)  # noqa: S311 - the drawn numbers are no secrets
        mistakes = draw(asked.draw, chance, asked.rooms)
        asked.into.write_text("".join(json.dumps(asdict(one)) + "\n" for one in mistakes))
    if asked.plant and asked.results:
        found = [json.loads(line) for line in asked.plant.read_text().splitlines()]
        with asked.results.open("a") as results:
            for result in plant((Mistake(**one) for one in found), long=asked.long):
                results.write(json.dumps(asdict(result)) + "\n")
                results.flush()


def draw(count: int, chance: random.Random, only: Sequence[str] | None = None) -> list[Mistake]:
    """Return this many mistakes, spread evenly over all packages, or over some of them."""
    rooms: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((ROOT / SOURCE).rglob("*.py")):
        inner = path.relative_to(ROOT / SOURCE)
        if not inner.as_posix().startswith(LEFT_OUT):
            # Spark's packages count like any other.
            depth = 2 if inner.parts[0] == "spark" else 1
            name = "/".join(inner.parts[:depth][: len(inner.parts) - 1])
            if not only or name in only:
                rooms[name].append(path)
    if unknown := {*(only or ())} - {*rooms}:
        raise LookupError(f"there are no rooms {', '.join(sorted(unknown))}")
    chooser = Chooser()
    found: list[Mistake] = []
    while len(found) < count:
        for paths in rooms.values():
            path = chance.choice(paths)
            mistakes = [*mistakes_of(path)]
            if mistakes and len(found) < count:
                one = chance.choice(mistakes)
                near, wider = chooser.of(path, one.line)
                found.append(replace(one, near=near, wider=wider))
    return found


def mistakes_of(path: Path) -> Iterator[Mistake]:
    """Yield each mistake that changes one thing in a line of the file."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        for begin, end, right, wrong in _changes(node):
            if begin.end_lineno == end.lineno:
                number = begin.end_lineno or 0
                line = lines[number - 1].encode()
                between = line[begin.end_col_offset : end.col_offset].decode()
                if between.count(right) == 1:
                    # The parser's offsets count bytes.
                    changed = (
                        line[: begin.end_col_offset]
                        + between.replace(right, wrong).encode()
                        + line[end.col_offset :]
                    )
                    name = path.relative_to(ROOT).as_posix()
                    yield Mistake(name, number, line.decode(), changed.decode())


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, str, str]]:
    """Yield the operator between two expressions, and its possible incorrect replacement."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        right, wrong = _COMPARED[type(node.ops[0])]
        yield node.left, node.comparators[0], right, wrong
    elif isinstance(node, ast.BoolOp):
        words = (" and ", " or ") if isinstance(node.op, ast.And) else (" or ", " and ")
        yield node.values[0], node.values[1], *words
    elif isinstance(node, ast.BinOp) and type(node.op) in _COUNTED:
        right, wrong = _COUNTED[type(node.op)]
        yield node.left, node.right, right, wrong


def public_names(text: str, line: int) -> set[str]:
    r"""Return the public function or class around a line, or the users of a private one.

    >>> sorted(public_names("def _a(): 1 + 1\n\ndef long_b(): _a()\n\ndef long_c(): pass", 1))
    ['long_b']
    """
    uses: dict[str, set[str]] = {}
    waiting: list[str] = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            uses[node.name] = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            if node.lineno <= line <= (node.end_lineno or 0):
                waiting.append(node.name)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            if name.startswith("_"):
                waiting += [user for user, used in uses.items() if name in used]
    # Short names may also be ordinary words.
    return {name for name in found if not name.startswith("_") and len(name) > SHORT}


class Chooser:
    """Find the test files of a module."""

    def __init__(self) -> None:
        self._source = _texts(ROOT / SOURCE)
        """The content of every module, by path, and of every test file that runs here."""
        self._tests = {
            name: text
            for name, text in _texts(ROOT / "tests").items()
            if Path(name).name.startswith("test_")
            and not {"kafka", "browser", "house"} & {*Path(name).parts}
        }

    def of(self, path: Path, line: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the test files near a line (those without Spark first), and the wider ones."""
        parts = path.relative_to(ROOT / SOURCE).with_suffix("").parts
        module = path.relative_to(ROOT).as_posix()
        words = {word for part in parts for word in (ROOMS.get(part, part), *part.split("_"))}

        names = sorted(public_names(self._source[module], line))
        called = re.compile(rf"\b({'|'.join(map(re.escape, names)) or '(?!)'})\b")

        def shared(test: str) -> int:
            calls = len({*called.findall(self._tests[test])})
            return 3 * calls + len(words & {*re.split(r"\W|_", test)})

        def closest(tests: Iterable[str]) -> list[str]:
            own = f"/test_{parts[-1]}.py"
            return sorted(dict.fromkeys(tests), key=lambda test: (own not in test, -shared(test)))

        near = self._naming(module, self._tests)
        importers, seen = [module], {module}
        while not near and importers:
            near, importers = self._beyond(importers, seen)
        near = near or self._of_room(parts[:-1])
        beyond, _ = self._beyond(importers, seen)
        alike = [test for test in self._tests if shared(test) > 1]
        near += closest(alike)[:CALLING_FILES] if names else []
        further = closest([*beyond, *alike, *self._of_room(parts[:-1])])
        starts = [test for test in (*closest(near), *further) if "mark.spark" in self._tests[test]]
        starts = [*dict.fromkeys(starts)][:SPARK_FILES]
        quick = [test for test in closest(near) if "mark.spark" not in self._tests[test]]
        wider = [test for test in further if test not in near and test not in starts]
        near = [*quick[:NEAR_FILES], *starts]
        return (module, *near), (*quick[NEAR_FILES:], *wider)[:WIDER_FILES]

    def _beyond(self, modules: list[str], seen: set[str]) -> tuple[list[str], list[str]]:
        """Return the tests of the modules that import these modules, and the importing modules."""
        found = [one for module in modules for one in self._naming(module, self._source)]
        importers = [one for one in dict.fromkeys(found) if one not in seen]
        seen.update(importers)
        tests = [test for one in importers for test in self._naming(one, self._tests)]
        return [*dict.fromkeys(tests)], importers

    def _naming(self, module: str, texts: dict[str, str]) -> list[str]:
        """Return the files that import the module, or mention its file."""
        parts = Path(module).relative_to(SOURCE).with_suffix("").parts
        dotted = ".".join(("flexwire", *parts)).removesuffix(".__init__")
        parent, _, name = dotted.rpartition(".")
        sign = re.compile(
            rf"\b{re.escape(dotted)}\b|/{name}\.py\b"
            rf"|from {re.escape(parent)} import (?:[^()\n]*|\([^)]*)\b{name}\b"
        )
        own = f"/test_{name}.py"
        return [one for one, text in texts.items() if one.endswith(own) or sign.search(text)]

    def _of_room(self, parts: tuple[str, ...]) -> list[str]:
        """Return the tests in the innermost folder that has any."""
        found: list[str] = []
        for depth in range(len(parts), 0, -1):
            room = "/".join(("tests", ROOMS.get(parts[0], parts[0]), *parts[1:depth])) + "/"
            found = found or [test for test in self._tests if test.startswith(room)]
        return found


def _texts(folder: Path) -> dict[str, str]:
    """Return the content of every Python file in the folder, by its path in the checkout."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.py"))
    }


def plant(mistakes: Iterable[Mistake], *, long: bool = False) -> Iterator[Result]:
    """Plant each mistake in a copy of this checkout, and yield the result of its tests."""
    with tempfile.TemporaryDirectory() as room:
        copy = Path(room, "copy")
        names = subprocess.run(
            ["git", "ls-files", "-z"],  # noqa: S607 - it is the git of the checkout
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, names.stdout.split("\0")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
        for kernel in (ROOT / SOURCE / "kernels").glob("*.so"):
            shutil.copy2(kernel, copy / SOURCE / "kernels" / kernel.name)
        (copy / ".venv").symlink_to(ROOT / ".venv")
        for one in mistakes:
            yield _planted(one, copy, [name for name in STAGES if long or name != "long"])


def _planted(mistake: Mistake, copy: Path, stages: list[str]) -> Result:
    path = copy / mistake.path
    sound = path.read_text(encoding="utf-8")
    lines = sound.splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if line.rstrip("\n") == mistake.right]
    if not places:
        raise LookupError(f"{mistake.path} has no line {mistake.right!r} any more")
    nearest = min(places, key=lambda place: abs(place + 1 - mistake.line))
    lines[nearest] = mistake.wrong + "\n"
    path.write_text("".join(lines), encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    failed = ""
    for stage in stages:
        tests, marked = STAGES[stage]
        files = getattr(mistake, tests)
        if not files:
            # pytest would run all tests.
            continue
        done = _tried(files, copy, marked)
        if done.returncode not in _NOT_FAILED:
            failed = "limit" if _AT_LIMIT in done.stderr else stage
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    path.write_text(sound, encoding="utf-8")
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    running = re.findall(r"(?m)^  this process: .*", done.stderr) if failed == "limit" else []
    last = [*done.stdout.splitlines(), done.stderr[-200:]][-2:]
    text = " ".join(told or running or last)
    result = Result(mistake, failed not in TOLD, failed, round(seconds, 1), text)
    print(  # noqa: T201 - it is the purpose of the command
        TOLD.get(failed, "caught"),
        f"{mistake.path}:{mistake.line}",
        result.told,
    )
    return result


def _tried(tests: tuple[str, ...], copy: Path, marked: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of these files that have these markers until the first one fails."""
    options = ("-n", "0", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-m", marked)
    minutes = os.environ.get("FLEXWIRE_TEST_MINUTES", MINUTES)
    # With this variable, each process would compile all modules again.
    kept = {name: value for name, value in os.environ.items() if name != _UNCOMPILED}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=copy,
        # Processes that tests start must have the mistake too.
        env={**kept, "PYTHONPATH": str(copy / "src"), "FLEXWIRE_TEST_MINUTES": minutes},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


if __name__ == "__main__":
    main()
