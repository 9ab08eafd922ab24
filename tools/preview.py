"""Write what a Kafka source tree adds to a release, on one Markdown page.

    python -m tools.preview SOURCE [--against 4.4.0] [--out preview.md]

SOURCE is anything that `flexwire schema import` reads: trunk, a release candidate's tree, its jars.
The page ends with everything that flexwire would misread; if there is anything, the exit code is 1.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.codec import message_of
from flexwire.errors import CodecError, SpecError
from flexwire.protocol.credentials import credential_fields
from flexwire.protocol.error_codes import error_codes
from flexwire.schema.catalog import catalog
from flexwire.schema.editions import Edition, editions_of, released_editions
from flexwire.schema.header_versions import HEADER_NAMES, spec_header_versions
from flexwire.schema.pairs import same_bytes
from flexwire.schema.resolve import resolve
from flexwire.schema.sources import read_sources
from flexwire.specs.bench.changes import added_versions, field_detail, version_changes
from flexwire.specs.guide.messages import own_messages
from flexwire.specs.lint.config import Config
from flexwire.specs.lint.lint import lint
from flexwire.specs.lint.rule import Category
from flexwire.specs.lint.rules import rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.schema.sources import SpecFile
    from flexwire.specs.guide.messages import GuideMessage

Editions = dict[str, Edition]
# Kafka's list of error codes: `NAME(number, "text", …` on each line.
_ERRORS = "common/protocol/Errors.java"
_ERROR = re.compile(r"^    ([A-Z][A-Z0-9_]+)\((-?\d+),", re.MULTILINE)
_SECRET_NAME = re.compile(r"passw|secret|token|salt|hmac|authbytes|credential|key$", re.IGNORECASE)
_REFUSED = {Category.SYNTAX, Category.GENERATOR, Category.JAVA}


@dataclass
class Preview:
    """The parts of a page: the lines below each heading."""

    messages: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    error_codes: list[str] = field(default_factory=list)
    misread: list[str] = field(default_factory=list)

    def page(self, title: str) -> str:
        """Return the page as Markdown."""
        parts = [
            ("Messages", self.messages),
            ("Versions", self.versions),
            ("Fields", self.fields),
            ("Headers", self.headers),
            ("Error codes", self.error_codes),
            ("What flexwire would misread", self.misread),
        ]
        blocks = [f"# {title}"]
        for heading, lines in parts:
            blocks += [f"## {heading}", "\n".join(lines) or "Nothing new."]
        return "\n\n".join(blocks) + "\n"


def preview(source: str, against: str) -> Preview:
    """Compare the specs of a source with those of a release of the catalog."""
    page = Preview()
    new = _read(read_sources([source]), page)
    old = released_editions(against)
    _compare_names(old, new, page)
    before = {message.name: message for message in own_messages(old)}
    for message in own_messages(new):
        if message.name in before:
            _compare_message(before[message.name], message, page)
            _compare_released(old[message.name], new[message.name], page)
    _compare_error_codes(source, page)
    _try(old, new, page)
    return page


def _read(sources: Sequence[SpecFile], page: Preview) -> Editions:
    editions: Editions = {}
    for spec_file in sources:
        try:
            read, _ = editions_of([spec_file], "strict")
        except SpecError as error:
            page.misread.append(f"- {error}")
            continue
        editions |= {name: one for name, one in read.items() if one.spec.valid_versions}
    for finding in lint(sources, Config()).findings:
        rule = rules().get(finding.rule)
        if rule is not None and rule.category in _REFUSED:
            page.misread.append(f"- {finding}")
    return editions


def _compare_names(old: Editions, new: Editions, page: Preview) -> None:
    for name in sorted(new.keys() - old.keys()):
        spec = new[name].spec
        key = "" if spec.api_key is None else f", api key {spec.api_key}"
        page.messages.append(f"- new: {name} ({spec.type.value}{key}), {spec.valid_versions}")
    modules = {one.place.directory for one in new.values()}
    # A jar contains only some of the modules, so other modules' messages do not count as missing.
    gone = (name for name in old.keys() - new.keys() if old[name].place.directory in modules)
    page.messages += [f"- gone: {name}" for name in sorted(gone)]


def _compare_message(old: GuideMessage, new: GuideMessage, page: Preview) -> None:
    added = added_versions(old, new)
    # A message that exists only in the old release was removed.
    gone = added_versions(new, old)
    if added:
        page.versions.append(f"- {new.name} {added} is new")
    if gone:
        page.versions.append(f"- {new.name} {gone} is gone")
    for change in version_changes(old, new):
        released = ", which is released" if change.beside is None else ""
        where = f"- {new.name} v{change.version}{released}:"
        page.fields += [
            f"{where} {field.kind} {field.row.path} ({field_detail(field)})"
            for field in change.fields
        ]
        page.headers += [f"{where} {name} {was} → {now}" for name, was, now in change.facts]


def _compare_released(old: Edition, new: Edition, page: Preview) -> None:
    for version in old.spec.valid_versions & new.spec.valid_versions:
        layouts = (resolve(edition.at(version), version) for edition in (old, new))
        if not same_bytes(*layouts):
            page.misread.append(
                f"- {new.spec.name} v{version} has other bytes than in the release: "
                "name the release that wrote it"
            )


def _compare_error_codes(source: str, page: Preview) -> None:
    known = {code.code: code.name for code in error_codes()}
    root = Path(source)
    files = list(root.rglob(_ERRORS)) if root.is_dir() else []
    if not files:
        page.error_codes.append(f"Unknown: {source} has no {_ERRORS}.")
        return
    for name, number in _ERROR.findall(files[0].read_text(encoding="utf-8")):
        code = int(number)
        if known.get(code) != name:
            page.error_codes.append(f"- {code} {name}; flexwire has {known.get(code, 'none')}")
            page.misread.append(f"- error code {code} ({name}) has no name in flexwire")


def _try(old: Editions, new: Editions, page: Preview) -> None:
    headers = {name: new[name].spec.valid_versions for name in HEADER_NAMES.values() if name in new}
    for name, edition in new.items():
        spec = edition.spec
        newer = [
            version
            for version in spec.valid_versions
            if name not in old or version not in old[name].spec.valid_versions
        ]
        for version in newer:
            page.misread += [f"- {name} v{version}: {why}" for why in _faults(edition, version)]
            if spec.type.is_api and HEADER_NAMES[spec.type] in headers:
                header = spec_header_versions(spec).of(version)
                if header not in headers[HEADER_NAMES[spec.type]]:
                    page.misread.append(f"- {name} v{version}: no spec has its header {header}")
        page.misread += _unknown_secrets(name, old.get(name), edition)


def _faults(edition: Edition, version: int) -> Iterator[str]:
    made = message_of(edition.at(version))
    try:
        data = made().encode(version)
        if made.decode(data, version).encode(version) != data:
            yield "its default values change on the way"
    except CodecError as error:
        yield str(error)


def _unknown_secrets(name: str, old: Edition | None, new: Edition) -> Iterator[str]:
    withheld = {each.path[-1] for each in credential_fields(name)}
    before = set() if old is None else set(_field_names(old))
    for field_name in sorted(set(_field_names(new)) - before - withheld):
        if _SECRET_NAME.search(field_name):
            yield f"- {name}.{field_name} sounds like a secret, and flexwire would not withhold it"


def _field_names(edition: Edition) -> Iterator[str]:
    for fields in edition.spec.fields_by_structure().values():
        yield from (each.name for each in fields)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write the page; return 1 if flexwire would misread something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("--against", default=catalog().final_releases[-1])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    try:
        page = preview(given.source, given.against)
    except SpecError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    text = page.page(f"{given.source} beside Kafka {given.against}")
    if given.out is None:
        sys.stdout.write(text)
    else:
        given.out.write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {given.out}\n")
    return int(bool(page.misread))


if __name__ == "__main__":
    raise SystemExit(main())
