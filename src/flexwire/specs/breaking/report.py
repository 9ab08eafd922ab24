"""Report the breaking changes of specs as findings."""

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
    """The rules to apply, as `flexwire.specs.lint.config.Config` provides them."""

    @property
    def mode(self) -> Mode:
        """The mode in which specs are read."""

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
    """Compare the messages of the old and new sets according to the given rules.

    ``texts`` contains the texts of the new specs. Comments in these texts allow findings of the
    rules that they name. Messages that exist only in the new set cause no findings. Changes to a
    version that the old set marks as unstable are only counted, unless ``unstable`` is true. Raises
    `SpecError` for a spec that cannot be laid out.
    """
    everything = _compare(old, new, texts, rules, config)
    stable = without_unstable(old)
    if unstable or stable == old:
        return everything
    judged = _compare(stable, new, texts, rules, config)
    left_out = len(everything.findings) - len(judged.findings)
    return replace(judged, files=everything.files, unstable=max(0, left_out))


def _compare(
    old: Mapping[str, Edition],
    new: Mapping[str, Edition],
    texts: Mapping[str, SpecText],
    rules: Collection[str],
    config: BreakingConfig,
) -> Report:
    all_rules = breaking_rules()
    used_rules = [
        rule
        for name, rule in all_rules.items()
        if name in rules and config.mode not in rule.compatible_in
    ]
    findings: list[Finding] = []
    files = {_source(edition) for edition in new.values()}
    for edition, partner in match_messages(old, new):
        # A removed message is reported in its old file.
        text = texts.get(partner.spec.name) if partner else None
        source = _source(partner or edition)
        path = (partner or edition).path or source
        allowed = AllowedFindings(find_allow_comments(text) if text else ())
        reported = (
            _finding(change, source, text)
            for change in find_changes(edition, partner, used_rules)
            if not config.ignores(change.rule.id, path)
        )
        left = [finding for finding in reported if not allowed.takes(finding)]
        findings += left
        files |= {source} if left else set()
    return Report(
        tuple(sorted(findings)), tuple(sorted(files)), all_rules, "flexwire schema breaking"
    )


def _source(edition: Edition) -> str:
    return edition.spec.source or edition.spec.name


def _finding(change: BreakingChange, source: str, text: SpecText | None) -> Finding:
    at = change.position
    line = text.line(at.line) if text else ""
    return make_finding(source, at.line, at.column, change.rule.id, change.text, line)
