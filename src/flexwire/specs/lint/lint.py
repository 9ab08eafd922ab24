"""Run every lint rule on every spec, and collect the findings."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from flexwire.errors import SpecError
from flexwire.schema.parse import parse_node
from flexwire.schema.sources import LARGEST
from flexwire.schema.spec import Position
from flexwire.schema.text import MOST_PROBLEMS, SpecText
from flexwire.specs.allow_comments import AllowedFindings
from flexwire.specs.finding import Report, make_finding
from flexwire.specs.lint.message import CheckedMessage, Directory
from flexwire.specs.lint.rules import rules

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from flexwire.schema.parse import Mode
    from flexwire.schema.sources import SpecFile
    from flexwire.schema.text import Problem
    from flexwire.specs.finding import Finding
    from flexwire.specs.lint.config import Config
    from flexwire.specs.lint.rule import Rule

_UNUSED = "ALLOW_UNUSED"


def lint(sources: Iterable[SpecFile], config: Config) -> Report:
    """Check specs by directory, because API keys and partners belong to a directory.

    For each file or directory, at most 1000 findings of each rule, and 1000 of the parser, are
    kept.
    """
    directories: dict[str, list[SpecFile]] = {}
    for source in sources:
        directories.setdefault(source.directory, []).append(source)
    chosen = [rule for rule in rules().values() if rule.id in config.rules]
    findings: list[Finding] = []
    for members in directories.values():
        findings += _lint_directory(members, chosen, config)
    files = [source.name for members in directories.values() for source in members]
    return Report(tuple(sorted(findings)), tuple(files), rules(), "flexwire schema lint")


def _lint_directory(
    sources: list[SpecFile], chosen: list[Rule], config: Config
) -> Iterator[Finding]:
    ids = {rule.id for rule in chosen}
    messages: dict[CheckedMessage, SpecFile] = {}
    allowed: dict[CheckedMessage, AllowedFindings] = {}
    broken = False
    for source in sources:
        message, problems = read_message(source, config.mode)
        if message is None:
            broken = True
            yield from (
                problem for problem in problems if _is_asked_for(problem.rule, source, ids, config)
            )
            continue
        messages[message] = source
        comments = allowed[message] = AllowedFindings(message.allows)
        problems += [each_finding for rule in chosen for each_finding in _found_in(message, rule)]
        yield from (
            problem
            for problem in problems
            if _is_asked_for(problem.rule, source, ids, config) and not comments.takes(problem)
        )
    whole = all(source.whole for source in sources) and not broken
    directory = Directory(tuple(messages), whole)
    for rule in chosen:
        found_here = rule.directory(directory) if rule.directory else ()
        for message, at, reason in islice(found_here, MOST_PROBLEMS):
            finding = _finding(message.text, rule.id, reason, at)
            asked_for = _is_asked_for(rule.id, messages[message], ids, config)
            if asked_for and not allowed[message].takes(finding):
                yield finding
    # If a rule did not run, a comment that allows its findings may still be needed.
    judged = {rule.id for rule in chosen if whole or not rule.directory}
    for message, source in messages.items():
        if _is_asked_for(_UNUSED, source, ids, config):
            yield from (
                _finding(
                    message.text,
                    _UNUSED,
                    f"{comment.rule} finds nothing here; remove the comment",
                    comment.at,
                )
                for comment in islice(allowed[message].unused(), MOST_PROBLEMS)
                if _is_asked_for(comment.rule, source, judged, config)
            )


def _is_asked_for(rule: str, source: SpecFile, ids: Collection[str], config: Config) -> bool:
    return rule in ids and not config.ignores(rule, source.path)


def read_message(source: SpecFile, mode: Mode) -> tuple[CheckedMessage | None, list[Finding]]:
    """Read a spec as far as possible. Return the spec and the parser's findings."""
    if len(source.content) > LARGEST:
        reason = f"larger than {LARGEST >> 20} MiB, the limit for a spec"
        return None, [make_finding(source.name, 1, 1, "TEXT_NOT_JSON", reason, "")]
    problems: list[Problem] = []
    try:
        text = SpecText(source.content.decode("utf-8"), source.name, problems)
    except UnicodeDecodeError as error:
        before = SpecText(source.content[: error.start].decode("utf-8"), source.name)
        at = before.position(len(before.text))
        return None, [_finding(before, "TEXT_NOT_JSON", f"not UTF-8: {error.reason}", at)]
    message = None
    unreadable = None
    try:
        root = text.read(whole=mode != "legacy")
        spec = parse_node(text, root, mode=mode)
        damaged = frozenset(
            problem.owner for problem in problems if problem.owner and _damages(problem)
        )
        message = CheckedMessage(spec, text, root, mode, damaged)
    except SpecError as error:
        if len(problems) < MOST_PROBLEMS:
            at = Position(error.line, error.column)
            unreadable = _finding(text, "TEXT_NOT_JSON", error.reason, at)
    findings = [_finding(text, problem.rule, problem.reason, problem.at) for problem in problems]
    return message, findings + ([unreadable] if unreadable else [])


def _damages(problem: Problem) -> bool:
    return rules()[problem.rule].unreadable


def _found_in(message: CheckedMessage, rule: Rule) -> Iterator[Finding]:
    for at, reason in islice(rule.message(message) if rule.message else (), MOST_PROBLEMS):
        yield _finding(message.text, rule.id, reason, at)


def _finding(text: SpecText, rule: str, reason: str, at: Position) -> Finding:
    return make_finding(text.source, at.line, at.column, rule, reason, text.line(at.line))
