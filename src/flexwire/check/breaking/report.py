"""What a change of specs breaks, as findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.check.breaking.changes import Change, Edition, breaking_rules, changes, match
from flexwire.check.finding import Finding, found
from flexwire.check.report import Report
from flexwire.schema.spec import Position

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from flexwire.check.config import Config
    from flexwire.schema.text import SpecText

_FIRST = Position(1, 1)


def compare(
    old: Mapping[str, Edition],
    new: Mapping[str, Edition],
    texts: Mapping[str, SpecText],
    rules: Collection[str],
    config: Config,
) -> Report:
    """Compare all messages of the old set with the new one's, by the rules named.

    ``texts`` are those of the new specs. Messages that only the new set has break nothing. Raises
    `SpecError` for a spec that cannot be laid out.
    """
    known = breaking_rules()
    wanted = [rule for name, rule in known.items() if name in rules]
    findings: list[Finding] = []
    for one, other in match(old, new):
        text = texts.get(other.spec.name) if other else None
        source = text.source if text else one.spec.source or one.spec.name
        findings += [
            _finding(change, source, text)
            for change in changes(one, other, wanted)
            if not config.ignores(change.rule.id, source)
        ]
    files = {text.source for text in texts.values()} or set(new)
    return Report(tuple(sorted(findings)), tuple(sorted(files)), known, "flexwire schema breaking")


def _finding(change: Change, source: str, text: SpecText | None) -> Finding:
    at = change.position
    if text is not None and at == _FIRST:
        # A message's own findings stand where its spec begins, behind the comments.
        at = text.position(text.read(whole=False).offset)
    line = text.line(at.line) if text else ""
    return found(source, at.line, at.column, change.rule.id, change.text, line)
