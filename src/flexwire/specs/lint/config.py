"""The rules in use, and the files that they ignore: `flexwire.toml` or `pyproject.toml`."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from flexwire.errors import FlexwireError
from flexwire.schema.coercion import nearest
from flexwire.schema.parse import Mode
from flexwire.specs.breaking.changes import breaking_rules
from flexwire.specs.lint.rule import Category
from flexwire.specs.lint.rules import rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from enum import Enum

    from flexwire.specs.finding import RuleInfo

ALL = "ALL"
DEFAULT = "DEFAULT"
_KEYS = ("use", "except", "ignore", "mode")


class ConfigError(FlexwireError):
    """A configuration that cannot be used: an unknown key or rule, or an invalid value."""


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rules of one command.

    The rules are configured in a table that has the name of the command.
    """

    table: str
    rules: Callable[[], Mapping[str, RuleInfo]]
    left_out: Enum | None = None
    """The category that is used only if the user selects it."""

    def defaults(self) -> frozenset[str]:
        """Return the ids of the rules that are used by default."""
        rules = self.rules().items()
        return frozenset(name for name, rule in rules if rule.category is not self.left_out)


LINT = Ruleset("lint", rules, Category.PEDANTIC)
BREAKING = Ruleset("breaking", breaking_rules)
_TABLES = (LINT.table, BREAKING.table)


@dataclass(frozen=True, slots=True)
class Config:
    """The rules to apply, and the exceptions.

    ``ignored`` pairs rules with a path pattern, relative to ``root``. In a pattern, "*" means any
    characters, including slashes. A directory stands for all files in it.
    """

    rules: frozenset[str] = field(default_factory=LINT.defaults)
    mode: Mode = "strict"
    ignored: tuple[tuple[frozenset[str], str], ...] = ()
    root: Path = Path()

    def ignores(self, rule: str, path: str) -> bool:
        """Return whether a rule is ignored in a file, or at this path in git or a jar."""
        patterns = [pattern for ids, pattern in self.ignored if rule in ids]
        if patterns and Path(path).is_absolute():
            path = os.path.relpath(path, self.root)
        inside = Path(path).as_posix()
        return any(
            fnmatchcase(inside, pattern) or fnmatchcase(inside, f"{pattern}/*")
            for pattern in patterns
        )


def find_config(start: Path) -> Path | None:
    """Return the nearest configuration file in ``start`` and the directories above it.

    The file is a `flexwire.toml`, or a `pyproject.toml` with a table for flexwire.
    """
    for directory in (start.absolute(), *start.absolute().parents):
        if (own := directory / "flexwire.toml").is_file():
            return own
        if (shared := directory / "pyproject.toml").is_file() and _table(shared) is not None:
            return shared
    return None


def read_config(path: Path, of: Ruleset = LINT) -> Config:
    """Read ``[lint]`` in `flexwire.toml`, or ``[tool.flexwire.lint]`` in `pyproject.toml`.

    For another set of rules, the function reads the table of that set. Raises `ConfigError`. For an
    unknown name, the error suggests the nearest known name.
    """
    table = _table(path) or {}
    where = f"{path}: " if path.name == "flexwire.toml" else f"{path}: tool.flexwire: "
    _check_keys(table, _TABLES, where)
    options = table.get(of.table, {})
    if not isinstance(options, dict):
        raise ConfigError(f"{where}{of.table}: expected a table, got {options!r}")
    where += f"{of.table}: "
    _check_keys(options, _KEYS, where)
    mode = options.get("mode", "strict")
    if mode not in get_args(Mode):
        raise ConfigError(f"{where}mode {mode!r}; {nearest(str(mode), get_args(Mode))}")
    used = choose(_names(options, "use", where), _names(options, "except", where), where, of)
    ignored = tuple(_ignored(options.get("ignore", []), where, of))
    return Config(used, mode, ignored, path.parent)


def choose(
    use: Iterable[str], leave_out: Iterable[str], where: str = "", of: Ruleset = LINT
) -> frozenset[str]:
    """Return the rule ids in ``use``, or else the defaults, without the ids in ``leave_out``.

    Raises `ConfigError` for a name that is neither a rule nor a category.
    """
    used = (
        frozenset(rule_id for name in use for rule_id in rules_named(name, where, of))
        or of.defaults()
    )
    return used - frozenset(
        rule_id for name in leave_out for rule_id in rules_named(name, where, of)
    )


def rules_named(name: str, where: str = "", of: Ruleset = LINT) -> frozenset[str]:
    """Return the ids of the rules that a name selects: a category, a rule, "ALL" or "DEFAULT"."""
    if name == DEFAULT:
        return of.defaults()
    all_rules = of.rules()
    ids = frozenset(
        rule_id for rule_id, rule in all_rules.items() if name in (ALL, rule.category.name, rule_id)
    )
    if not ids:
        categories = dict.fromkeys(rule.category.name for rule in all_rules.values())
        names = [ALL, DEFAULT, *categories, *all_rules]
        hint = nearest(name, names)
        if hint.startswith("known"):
            command = f"flexwire schema {of.table} --explain ALL"
            hint = f"'{command}' lists the rules and categories"
            for other in (LINT, BREAKING):
                if name in other.rules():
                    hint = f"this name belongs to 'flexwire schema {other.table}'"
        raise ConfigError(f"{where}no rule or category {name!r}; {hint}")
    return ids


def _table(path: Path) -> dict[str, Any] | None:
    """Return the file's table, or flexwire's part of `pyproject.toml` (None if it is missing)."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ConfigError(f"{path}: {reason or error}") from None
    if path.name != "pyproject.toml":
        return table
    tool = table.get("tool")
    ours = tool.get("flexwire") if isinstance(tool, dict) else None
    return ours if isinstance(ours, dict) else None


def _check_keys(table: dict[str, Any], known_keys: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known_keys:
            raise ConfigError(f"{where}unknown key {key!r}; {nearest(key, known_keys)}")


def _names(table: dict[str, Any], key: str, where: str) -> list[str]:
    return _texts(table.get(key, []), f"{where}{key}")


def _texts(value: object, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{where}: expected a list of strings, got {value!r}")
    return value


def _ignored(value: object, where: str, of: Ruleset) -> Iterable[tuple[frozenset[str], str]]:
    """Yield ignored rules and paths.

    A list of paths applies to all rules. A table contains the names of rules.
    """
    table = value if isinstance(value, dict) else {ALL: value}
    for name, paths in table.items():
        ids = rules_named(name, f"{where}ignore: ", of)
        for path in _texts(paths, f"{where}ignore"):
            yield ids, path.rstrip("/")
