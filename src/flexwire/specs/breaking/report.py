"""What a change of specs breaks, as findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from flexwire.specs.allow_comments import AllowedFindings, find_allow_comments
from flexwire.specs.breaking.changes import (
    BreakingChange,
    breaking_rules,
    find_changes,
    match_messages,
    without_unstable,
)
from flexwire.specs.finding import Finding, Report, make_finding

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from flexwire.schema.editions import Edition
    from flexwire.schema.parse import Mode
    from flexwire.schema.text import SpecText


class BreakingConfig(Protocol):
    """What is asked for, as `flexwire.specs.lint.config.Config` says it."""

    @property
    def mode(self) -> Mode:
        """How strictly specs are read."""

    def ignores(self, rule: str, path: str) -> bool:
        """Return whether a rule is ignored in a file."""


def compare(
    old: Mapping[str, Edition],
    new: Mapping[str, Edition],
    texts: Mapping[str, SpecText],
    rules: Collection[str],
    config: BreakingConfig,
    *,
    unstable: bool = False,
) -> Report:
    """Compare all messages of the old set with the new one's, by the rules named.

    ``texts`` are those of the new specs; comments in them allow what they name. Messages that only
    the new set has break nothing. A change of a version that the old set calls unstable breaks
    nothing either and is only counted, unless ``unstable``. Raises `SpecError` for a spec that
    cannot be laid out.
    """
    everything = _compare(old, new, texts, rules, config)
    kept = without_unstable(old)
    if unstable or kept == old:
        return everything
    judged = _compare(kept, new, texts, rules, config)
    left_out = len(everything.findings) - len(judged.findings)
    return replace(judged, files=everything.files, unstable=max(0, left_out))


def _compare(
    old: Mapping[str, Edition],
    new: Mapping[str, Edition],
    texts: Mapping[str, SpecText],
    rules: Collection[str],
    config: BreakingConfig,
) -> Report:
    known = breaking_rules()
    wanted = [
        rule
        for name, rule in known.items()
        if name in rules and config.mode not in rule.compatible_in
    ]
    findings: list[Finding] = []
    files = {_source(one) for one in new.values()}
    for one, other in match_messages(old, new):
        # What is gone is reported where it was.
        text = texts.get(other.spec.name) if other else None
        source = _source(other or one)
        path = (other or one).path or source
        allowed = AllowedFindings(find_allow_comments(text) if text else ())
        told = (
            _finding(change, source, text)
            for change in find_changes(one, other, wanted)
            if not config.ignores(change.rule.id, path)
        )
        left = [finding for finding in told if not allowed.takes(finding)]
        findings += left
        files |= {source} if left else set()
    return Report(tuple(sorted(findings)), tuple(sorted(files)), known, "flexwire schema breaking")


def _source(one: Edition) -> str:
    return one.spec.source or one.spec.name


def _finding(change: BreakingChange, source: str, text: SpecText | None) -> Finding:
    at = change.position
    line = text.line(at.line) if text else ""
    return make_finding(source, at.line, at.column, change.rule.id, change.text, line)
