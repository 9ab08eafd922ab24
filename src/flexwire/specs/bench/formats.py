"""Print a comparison as Markdown for a review, as an HTML page with the bytes, or as JSON."""

from __future__ import annotations

import json
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import flexwire
from flexwire.facts.units import plural, safe, shorten
from flexwire.printable import printable
from flexwire.report.page_environment import page_environment, read_template_file
from flexwire.report.render import breakable
from flexwire.specs.bench.changes import field_detail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jinja2 import Environment

    from flexwire.codec.explanation import Annotation
    from flexwire.specs.bench.changes import VersionChange
    from flexwire.specs.bench.comparison import (
        ByteExample,
        MessageDifference,
        ReleaseBreaks,
        SpecComparison,
    )

MOST_SHOWN: Final = 60
"""The largest number of messages whose changes the page and the Markdown show. The table lists all
messages.
"""

_MOST_FINDINGS: Final = 50
_LONGEST_VALUE: Final = 60
_BYTES_IN_A_LINE: Final = 16


def verdicts(comparison: SpecComparison) -> Iterator[tuple[bool, str]]:
    """Yield the answers to a reviewer's first questions, and whether each is bad news."""
    old, count = printable(comparison.old_name), len(comparison.breaking)
    if count:
        yield True, f"Compared with {old}, the change is breaking: {plural(count, 'finding')}."
    else:
        yield False, f"Compared with {old}, no breaking change was found."
    if comparison.lint is None:
        yield False, "Lint did not run, because the catalog does not contain spec files."
    else:
        fresh, others = len(comparison.lint), comparison.lint_as_before or 0
        words_of_lint = plural(fresh, "new finding") if fresh else "nothing new"
        before = f" ({plural(others, 'finding')} as before)" if others else ""
        yield bool(fresh), f"Lint found {words_of_lint}{before}."
    broken = [release for release in comparison.releases if release.findings]
    if broken:
        names = f"{broken[0].release} to {broken[-1].release}" if broken[1:] else broken[0].release
        yield True, f"The change breaks {plural(len(broken), 'final release')}: {names}."
    differing = [message for message in comparison.messages if not message.only_text]
    parts = (
        (sum(message.old is None for message in differing), "new"),
        (sum(message.new is None for message in differing), "removed"),
        (sum(None not in {message.old, message.new} for message in differing), "changed"),
        (len(comparison.messages) - len(differing), "changed only in descriptions"),
    )
    words = ", ".join(f"{number} {word}" for number, word in parts if number)
    yield False, f"Messages: {words}." if words else "Both sides have the same messages."


def change_lines(change: VersionChange) -> Iterator[str]:
    """Yield the changes of a version, one line each."""
    for name, was, now in change.facts:
        yield f"{name}: {was} → {now}"
    for field in change.fields:
        detail = field_detail(field)
        yield f"{field.kind} {field.row.path}" + (f" ({detail})" if detail else "")
    if not change.facts and not change.fields:
        yield "the same fields"


def change_title(change: VersionChange) -> str:
    """Return the version with which a change is compared, in words."""
    if change.beside is None:
        return f"Version {change.version}, which already exists"
    return f"Version {change.version}, compared with version {change.beside}"


def sizes(before: ByteExample | None, after: ByteExample | None) -> tuple[str, str]:
    """Return the old and new sizes of a message of defaults and of a full message."""
    pairs = []
    for size in (lambda example: example.default_size, lambda example: len(example.data)):
        both = ["none" if example is None else f"{size(example):,}" for example in (before, after)]
        pairs.append(both[0] if both[0] == both[1] else " → ".join(both))
    return pairs[0], pairs[1]


def to_markdown(comparison: SpecComparison, costs: str = "") -> str:
    """Return the text of a review comment on a change. ``costs`` is the output of `schema cost`."""
    old, new = printable(comparison.old_name), printable(comparison.new_name)
    lines = [f"## {_marked_down(new)}, compared with {_marked_down(old)}", ""]
    lines += [
        f"- {'**' if bad else ''}{_marked_down(sentence)}{'**' if bad else ''}"
        for bad, sentence in verdicts(comparison)
    ]
    for title, findings in (
        ("What breaks", comparison.breaking),
        ("New lint findings", comparison.lint or ()),
    ):
        if findings:
            lines += ["", f"### {title}", ""]
            lines += [f"- {_marked_down(str(finding))}" for finding in findings[:_MOST_FINDINGS]]
            lines += _rest(len(findings) - _MOST_FINDINGS, "finding")
    if comparison.messages:
        lines += ["", "### Messages", "", *_message_table(comparison.messages)]
    changed = [message for message in comparison.messages if message.changes]
    for message in changed[:MOST_SHOWN]:
        lines += ["", f"#### {_marked_down(message.name)}"]
        for change in message.changes:
            lines += ["", f"{change_title(change)}:", ""]
            lines += [f"- {_marked_down(line)}" for line in change_lines(change)]
    lines += _rest(len(changed) - MOST_SHOWN, "changed message")
    if costs:
        lines += ["", "### Bytes of the capture", "", "```", costs.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def _rest(count: int, noun: str) -> list[str]:
    return ["", f"… and {plural(count, noun)} more."] if count > 0 else []


def _message_table(messages: Sequence[MessageDifference]) -> Iterator[str]:
    yield "| message | versions | header versions | bytes, all defaults | bytes, all fields set |"
    yield "|---|---|---|---|---|"
    for message in messages:
        cells = (
            message.name,
            _from_to(message.old, message.new),
            _from_to(message.old_headers, message.new_headers),
            *sizes(message.before, message.after),
        )
        yield f"| {' | '.join(map(_marked_down, cells))} |"


def _from_to(old: str | None, new: str | None) -> str:
    """Return an old and a new value in words.

    >>> _from_to("0-3", "0-4"), _from_to(None, "0"), _from_to("0", None), _from_to("1", "1")
    ('0-3 → 0-4', 'new: 0', 'removed: 0', '1')
    """
    if old is None:
        return f"new: {new}"
    if new is None:
        return f"removed: {old}"
    return new if old == new else f"{old} → {new}" if old and new else old or new


_SPECIAL: Final = str.maketrans({letter: f"\\{letter}" for letter in "\\`*_[]<>|#"})


def _marked_down(text: str) -> str:
    """Return a string on one line, in which no character has a special meaning in Markdown."""
    return printable(text).translate(_SPECIAL)


def to_json(comparison: SpecComparison, costs: dict[str, Any] | None = None) -> str:
    """Return all results except the HTML.

    ``costs`` is the output of `schema cost --format json`.
    """
    document = {
        "old": comparison.old_name,
        "new": comparison.new_name,
        "breaking": [str(finding) for finding in comparison.breaking],
        "lint": None if comparison.lint is None else [str(one) for one in comparison.lint],
        "lintAsBefore": comparison.lint_as_before,
        "releases": [
            {
                "release": release.release,
                "findings": [str(finding) for finding in release.findings],
                "asBefore": release.as_before,
            }
            for release in comparison.releases
        ],
        "messages": [_message_json(message) for message in comparison.messages],
        "cost": costs,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _message_json(message: MessageDifference) -> dict[str, Any]:
    return {
        "message": message.name,
        "type": message.type.value,
        "apiKey": message.api_key,
        "oldVersions": message.old,
        "newVersions": message.new,
        "oldHeaderVersions": message.old_headers or None,
        "newHeaderVersions": message.new_headers or None,
        "changes": [
            {
                "version": change.version,
                "comparedWith": change.version if change.beside is None else change.beside,
                "exists": change.beside is None,
                "lines": [*change_lines(change)],
            }
            for change in message.changes
        ],
        "vectors": [json.loads(line) for line in message.vectors],
    }


def to_html(comparison: SpecComparison, costs: str = "") -> str:
    """Return a page that needs no other files and no network. ``costs`` is as in `to_markdown`."""
    shown = [message for message in comparison.messages if not message.only_text][:MOST_SHOWN]
    view = {
        "comparison": comparison,
        "verdicts": [*verdicts(comparison)],
        "shown": shown,
        "releases": [*_release_runs(comparison)],
        "left_out": len(comparison.messages) - len(shown),
        "findings": [
            ("breaking", f"What breaks compared with {comparison.old_name}", comparison.breaking),
            ("lint", "New lint findings", comparison.lint or ()),
        ],
        "most_findings": _MOST_FINDINGS,
        "costs": costs,
        "flexwire_version": flexwire.__version__,
        "style": read_template_file("flexwire.report", "report.css"),
    }
    return _environment().get_template("bench.html.j2").render(view).strip() + "\n"


def _release_runs(comparison: SpecComparison) -> Iterator[tuple[str, ReleaseBreaks]]:
    """Yield releases with findings. Consecutive releases with equal findings are combined."""

    def key_of(release: ReleaseBreaks) -> tuple[object, ...]:
        return release.as_before, *((each.rule, each.message) for each in release.findings)

    for key, run in groupby(comparison.releases, key=key_of):
        releases = [*run]
        names = dict.fromkeys((releases[0].release, releases[-1].release))
        if key != (0,):
            yield " to ".join(names), releases[0]


@cache
def _environment() -> Environment:
    environment = page_environment("flexwire.specs.bench", "the page of the bench", "docs")
    environment.filters.update(breakable=breakable, plural=plural, safe_text=safe)
    environment.globals.update(
        change_lines=change_lines,
        change_title=change_title,
        byte_rows=byte_rows,
        from_to=_from_to,
        sizes=sizes,
    )
    return environment


def byte_rows(
    example: ByteExample, other: ByteExample | None
) -> Iterator[tuple[int, str, str, str, str, bool]]:
    """Yield each field of an example: offset, bytes, path, type, value, and whether it is new."""
    other_places = set() if other is None else {_place(part) for part in other.annotations}
    for part in example.annotations:
        data = example.data[part.offset : part.offset + part.length]
        rows = [
            data[start : start + _BYTES_IN_A_LINE].hex(" ")
            for start in range(0, len(data), _BYTES_IN_A_LINE)
        ]
        value = shorten(printable(str(part.value)), _LONGEST_VALUE)
        is_new = other is not None and _place(part) not in other_places
        yield part.offset, "\n".join(rows), part.path, part.type, value, is_new


def _place(part: Annotation) -> tuple[str, str]:
    return part.path, part.type
