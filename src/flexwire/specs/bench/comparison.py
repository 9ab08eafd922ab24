"""Compare two sets of specs: the differences, the breaking changes, and examples of bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from flexwire.codec import message_of
from flexwire.codec.explanation import explain
from flexwire.codec.samples import filled_message
from flexwire.schema.catalog import catalog
from flexwire.schema.editions import editions_of, released_editions
from flexwire.schema.header_versions import spec_header_versions
from flexwire.schema.sources import RELEASE, read_sources
from flexwire.specs.bench.changes import version_changes
from flexwire.specs.breaking.changes import breaking_rules, match_messages
from flexwire.specs.breaking.report import compare
from flexwire.specs.guide.messages import own_messages
from flexwire.specs.lint.config import Config
from flexwire.specs.lint.lint import lint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from flexwire.codec.explanation import Annotation
    from flexwire.schema.editions import Edition
    from flexwire.schema.parse import Mode
    from flexwire.schema.spec import MessageType
    from flexwire.schema.text import SpecText
    from flexwire.specs.bench.changes import VersionChange
    from flexwire.specs.finding import Finding, Report
    from flexwire.specs.guide.messages import GuideMessage

    Editions = Mapping[str, Edition]


@dataclass(frozen=True, slots=True)
class ByteExample:
    """A message in one version, with every field set: its bytes, and their meaning.

    ``default_size`` is the number of bytes if every field has its default.
    """

    version: int
    body: str
    data: bytes
    annotations: tuple[Annotation, ...]
    default_size: int


@dataclass(frozen=True, slots=True)
class MessageDifference:
    """A message that only one side contains, or that differs between the sides.

    ``old`` and ``new`` are the valid versions, or None if the side lacks the message. The header
    versions are empty for a message that is neither a request nor a response. ``before`` and
    ``after`` are examples in the newest version of each side.
    """

    name: str
    type: MessageType
    api_key: int | None
    old: str | None
    new: str | None
    old_headers: str
    new_headers: str
    changes: tuple[VersionChange, ...]
    before: ByteExample | None
    after: ByteExample | None
    vectors: tuple[str, ...]

    @property
    def only_text(self) -> bool:
        """True if only descriptions changed, such as the description of a field."""
        return self.old == self.new and not self.changes and self.old_headers == self.new_headers


@dataclass(frozen=True, slots=True)
class ReleaseBreaks:
    """The new specs' findings for a release, and the number of them that the old specs share."""

    release: str
    findings: tuple[Finding, ...]
    as_before: int


@dataclass(frozen=True)
class SpecComparison:
    """All results for a change from the specs ``old_name`` to the specs ``new_name``.

    ``breaking`` contains the findings of `schema breaking` against the old specs. ``lint`` contains
    the findings of `schema lint` that do not occur in the old specs, and ``lint_as_before`` counts
    the others. ``lint`` and ``lint_as_before`` are None for a release of the catalog, because the
    catalog contains no spec files. ``releases`` compares the changed messages with each final
    release, oldest first.
    """

    old_name: str
    new_name: str
    messages: tuple[MessageDifference, ...]
    breaking: tuple[Finding, ...]
    lint: tuple[Finding, ...] | None
    lint_as_before: int | None
    releases: tuple[ReleaseBreaks, ...]

    @cached_property
    def breaks(self) -> bool:
        """True if the change is breaking."""
        return bool(self.breaking)


def compare_specs(
    old: str, new: str, mode: Mode = "strict", *, releases: Collection[str] | None = None
) -> SpecComparison:
    """Compare two inputs: files, directories, jars, ``REV:PATH``, or ``release:NAME``.

    The changed messages are also compared with ``releases``, by default all final releases. Raises
    `SpecError` for an input that cannot be read or laid out.
    """
    old_editions, _ = _read(old, mode)
    new_editions, texts = _read(new, mode)
    pairs = {
        (before.spec.name if before else None, after.spec.name if after else None)
        for before, after in _different(old_editions, new_editions)
    }
    old_names = {name for name, _ in pairs if name is not None}
    new_names = {name for _, name in pairs if name is not None}
    before_messages = _guide({name: old_editions[name] for name in old_names})
    after_messages = _guide({name: new_editions[name] for name in new_names})
    messages = tuple(
        _difference(
            old_editions.get(old_name or ""),
            new_editions.get(new_name or ""),
            before_messages.get(old_name or ""),
            after_messages.get(new_name or ""),
        )
        for old_name, new_name in sorted(pairs, key=lambda pair: pair[1] or pair[0] or "")
    )
    findings, as_before = _new_lint(old, new, mode)
    changed_old = {name: old_editions[name] for name in new_names if name in old_editions}
    changed_new = {name: new_editions[name] for name in new_names}
    return SpecComparison(
        old,
        new,
        messages,
        _breaking(old_editions, new_editions, texts, mode).findings,
        findings,
        as_before,
        tuple(
            _released_breaks(release, changed_old, changed_new, texts, mode)
            for release in (catalog().final_releases if releases is None else releases)
        ),
    )


def _read(path: str, mode: Mode) -> tuple[Editions, dict[str, SpecText]]:
    if path.startswith(RELEASE):
        return released_editions(path.removeprefix(RELEASE)), {}
    return editions_of(read_sources([path]), mode)


def _different(old: Editions, new: Editions) -> Iterator[tuple[Edition | None, Edition | None]]:
    """Yield the messages that differ, with their partners on the other side."""
    matched = {}
    for before, after in match_messages(old, new):
        if after is not None:
            matched[after.spec.name] = before
        if after is None or not _is_same(before, after):
            yield before, after
    for name, after in new.items():
        if name not in matched and (name not in old or not _is_same(old[name], after)):
            yield old.get(name), after


def _is_same(old: Edition, new: Edition) -> bool:
    return old.spec == new.spec and dict(old.by_version) == dict(new.by_version)


def _guide(editions: Editions) -> dict[str, GuideMessage]:
    return {message.name: message for message in own_messages(editions)}


def _difference(
    old: Edition | None,
    new: Edition | None,
    before: GuideMessage | None,
    after: GuideMessage | None,
) -> MessageDifference:
    edition = new or old
    assert edition is not None  # noqa: S101 - a pair has at least one side
    changes = () if after is None else tuple(version_changes(before, after))
    vectors: list[str] = []
    if new is not None:
        numbers = [change.version for change in changes] if old else [*new.spec.valid_versions]
        for number in numbers:
            vectors += _vectors(new, number)
    return MessageDifference(
        name=edition.spec.name,
        type=edition.spec.type,
        api_key=edition.spec.api_key,
        old=None if old is None else str(old.spec.valid_versions),
        new=None if new is None else str(new.spec.valid_versions),
        old_headers=_headers(old),
        new_headers=_headers(new),
        changes=changes,
        before=_example(old),
        after=_example(new),
        vectors=tuple(vectors),
    )


def _headers(edition: Edition | None) -> str:
    """Return the header version of each valid version of a request or response."""
    if edition is None or not edition.spec.type.is_api or not edition.spec.valid_versions:
        return ""
    valid = edition.spec.valid_versions
    ranges = ((header, versions & valid) for versions, header in spec_header_versions(edition.spec))
    return ", ".join(f"{header} in {versions}" for header, versions in ranges if versions)


def _example(edition: Edition | None) -> ByteExample | None:
    if edition is None or not edition.spec.valid_versions:
        return None
    version = edition.spec.valid_versions.highest
    kind = message_of(_own(edition, version))
    sample = filled_message(kind, version)
    data = sample.encode(version)
    body = json.dumps(sample.to_json(version), indent=2, ensure_ascii=False)
    annotations = explain(kind, data, version).annotations
    return ByteExample(version, body, data, annotations, len(kind().encode(version)))


def _own(edition: Edition, version: int) -> Any:
    return replace(edition.at(version), source="")


def _vectors(edition: Edition, version: int) -> Iterator[str]:
    """Yield a message of defaults and a full message, as lines for `schema cost --vectors`."""
    kind = message_of(_own(edition, version))
    for case, sample in (("defaults", kind()), ("all fields", filled_message(kind, version))):
        facts = {
            "message": edition.spec.name,
            "version": version,
            "case": case,
            "hex": sample.encode(version).hex(),
            "json": sample.to_json(version),
        }
        yield json.dumps(facts)


def _breaking(old: Editions, new: Editions, texts: Mapping[str, SpecText], mode: Mode) -> Report:
    return compare(old, new, texts, breaking_rules(), Config(mode=mode))


def _new_lint(old: str, new: str, mode: Mode) -> tuple[tuple[Finding, ...] | None, int | None]:
    """Return the findings that occur only in the new specs, and the number of shared findings."""
    if new.startswith(RELEASE):
        return None, None
    findings = lint(read_sources([new]), Config(mode=mode)).findings
    earlier_findings = set()
    if not old.startswith(RELEASE):
        earlier = lint(read_sources([old]), Config(mode=mode)).findings
        earlier_findings = {_without_place(finding) for finding in earlier}
    fresh = tuple(
        finding for finding in findings if _without_place(finding) not in earlier_findings
    )
    return fresh, len(findings) - len(fresh)


def _without_place(finding: Finding) -> tuple[str, str, str]:
    """Return a finding without its line, which changes when another line is added."""
    file = finding.source.replace("\\", "/").rpartition("/")[2]
    return file, finding.rule, finding.message


def _released_breaks(
    release: str, old: Editions, new: Editions, texts: Mapping[str, SpecText], mode: Mode
) -> ReleaseBreaks:
    """Return the findings for the changed messages that this release contains."""
    editions = released_editions(release)
    released = {name: editions[name] for name in new if name in editions}
    earlier = _breaking(released, old, {}, mode).findings if old else ()
    earlier_findings = {_without_place(finding) for finding in earlier}
    findings = _breaking(released, new, texts, mode).findings
    fresh = tuple(
        finding for finding in findings if _without_place(finding) not in earlier_findings
    )
    return ReleaseBreaks(release, fresh, len(findings) - len(fresh))
