"""`flexwire schema docs`: write a guide to message specs as a website or as Markdown."""

from __future__ import annotations

import os
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flexwire.cli.options import InputError, read_mode_option
from flexwire.cli.standard_input import spec_name, takes_standard_input
from flexwire.cli.terminal import print_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.schema.catalog import Catalog, CatalogEntry
    from flexwire.schema.merge import MergedField
    from flexwire.schema.parse import Mode
    from flexwire.specs.finding import Report
    from flexwire.specs.guide.traffic import GuideTraffic

_OURS = "Written by `flexwire schema docs`"
_MARK = f"<!-- {_OURS}; do not edit. -->\n"
# The number of bytes at the beginning of a file that are searched for our mark.
_BEGINNING = 200
# Findings that prevent a guide although lint does not call them errors: their messages have no
# layout or no page.
_WITHOUT_LAYOUT = frozenset(
    {"ELEMENTS_WITHOUT_BYTES", "MESSAGE_REPEATED", "STRUCTS_TOO_DEEP", "STRUCT_WITHOUT_FIELDS"}
)
# The guide may describe a request without its response.
_HARMLESS = frozenset({"PARTNER_MISSING"})
_INDEX = "README.md"
_INTRODUCTION = """
# Every message

{messages} messages from {count} Kafka releases, {oldest} to {newest}. Each page describes one API,
or one message without an API. For each message, the page lists:

- its versions, which of them are flexible, and the header version of each;
- the versions in each release; brokers of the newest release accept only the versions listed for
  that release;
- the releases in which the layout or the field names differ from those in the newest release that
  has the version; to use such a layout, specify the release: `flexwire.message(name, release)`;
- its structures with their fields. A structure is a class inside the message's class:
  `FetchRequest.FetchTopic`. A field that is `maxWaitMs` in JSON is `max_wait_ms` in Python. "2+"
  means version 2 and later. If no default is shown, the default is null for records, and zero,
  false or an empty value for other types. An *ignorable* field is left out of a version that lacks
  it. A value for any other field that the version lacks is an error. A *map key* must be unique in
  its array.
"""


@click.command("docs")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The output directory for the pages.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["html", "markdown"]),
    default="html",
    show_default=True,
    help="The output format: a website that works offline, or, for the bundled messages, a "
    "reference in Markdown.",
)
@read_mode_option
@click.option(
    "--capture",
    metavar="ANALYSIS",
    help="Show which clients send each field, based on an output of 'flexwire analyze': a "
    "directory or URL.",
)
@takes_standard_input(paths=spec_name)
def schema_docs(
    *, paths: tuple[str, ...], out: Path, output: str, specs_mode: Mode, capture: str | None
) -> None:
    """Write a guide to message specs.

    The guide describes every API and message, version by version. It shows the fields in wire
    order, the header versions, the releases that support a version, and the changes between any two
    versions. The guide is searchable and works offline. Open index.html in a browser.

    PATH is a file, a directory, a jar (kafka-clients contains the specs of its release), REV:PATH
    (a path in a git revision), release:NAME (a release in the bundled catalog), or - for standard
    input. Without PATH, the guide covers all bundled messages. If a message no longer exists, the
    command removes its page. The command never replaces a file that it did not write. If specs are
    invalid, the command reports all errors, as lint does, and exits with 1.
    """
    from flexwire.facts.units import plural
    from flexwire.schema.catalog import catalog

    if output == "markdown":
        if paths or capture:
            reason = "leave out PATH and --capture"
            raise click.UsageError(f"Markdown is only for the bundled messages; {reason}")
        files, suffix = pages(catalog()), ".md"
    else:
        files, suffix = _guide(paths, specs_mode, capture), ".html"
    _write(out, files, suffix)
    count = sum(name.endswith(suffix) for name in files)
    print_line(f"wrote {plural(count, 'page')} to {out}")


def _guide(paths: tuple[str, ...], mode: Mode, capture: str | None) -> dict[str, str]:
    """Return the files of the website."""
    from flexwire.schema.catalog import catalog
    from flexwire.schema.editions import read_editions
    from flexwire.specs.guide import bundled_messages, own_messages, render

    bundled = catalog()
    traffic = _traffic(capture) if capture else None
    if not paths:
        title = f"Kafka {bundled.newest_release}"
        return render(bundled_messages(bundled), title, bundled.releases, traffic)
    report = _invalid(paths, mode)
    if report.findings:
        from flexwire.specs.lint import formats

        print(formats.to_text(report), end="")
        sys.exit(1)
    editions, _ = read_editions(paths, mode)
    return render(own_messages(editions), f"Specs of {', '.join(paths)}", bundled.releases, traffic)


def _traffic(capture: str) -> GuideTraffic:
    from flexwire.extras import needed_by

    with needed_by("--capture", "columnar"):
        from flexwire.specs.guide.traffic import read_traffic
    return read_traffic(capture)


def _invalid(paths: tuple[str, ...], mode: Mode) -> Report:
    """Return the lint findings that make a guide impossible."""
    from flexwire.schema.sources import RELEASE, read_sources
    from flexwire.specs.lint.config import Config
    from flexwire.specs.lint.lint import lint
    from flexwire.specs.lint.rules import rules

    errors = {name for name, rule in rules().items() if rule.level == "error"}
    rules_used = frozenset(errors | _WITHOUT_LAYOUT) - _HARMLESS
    sources = read_sources(path for path in paths if not path.startswith(RELEASE))
    return lint(sources, Config(rules_used, mode))


def _write(out: Path, files: dict[str, str], suffix: str) -> None:
    """Write files, and remove files of earlier runs.

    Raises `InputError` if another program wrote a file.
    """
    for name in files:
        if os.path.lexists(out / name) and not _is_ours(out / name):
            reason = "was not written by flexwire schema docs; choose another directory"
            raise InputError(f"{out / name} {reason}")
    from flexwire.atomic_files import write_together

    write_together(out, {name: content.encode() for name, content in files.items()})
    for path in sorted(out.rglob(f"*{suffix}")):
        if path.relative_to(out).as_posix() not in files and _is_ours(path):
            path.unlink()


def _is_ours(path: Path) -> bool:
    # Reading a pipe would never end, and a link might lead elsewhere.
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return _OURS.encode() in file.read(_BEGINNING)


def pages(bundled: Catalog) -> dict[str, str]:
    """Return every page by its path, starting with the index."""
    entries = [bundled.entry(name) for name in bundled.names()]
    grouped: dict[str, list[CatalogEntry]] = {}
    for entry in sorted(entries, key=_title):
        grouped.setdefault(_page(entry), []).append(entry)
    texts = {_INDEX: _MARK + _INTRODUCTION.format(**_figures(bundled)) + _index(grouped)}
    for page, messages in grouped.items():
        lines = [f"# {_title(messages[0])}", ""]
        for entry in messages:
            lines += _message(bundled, entry)
        texts[page] = _MARK + "\n" + "\n".join(lines).rstrip() + "\n"
    return texts


def _figures(bundled: Catalog) -> dict[str, object]:
    releases = bundled.releases
    return {
        "messages": len(bundled.names()),
        "count": len(releases),
        "oldest": releases[0],
        "newest": releases[-1],
    }


def _is_api(entry: CatalogEntry) -> bool:
    return entry.type.value in {"request", "response"}


def _title(entry: CatalogEntry) -> str:
    if not _is_api(entry):
        return entry.name
    # In specs, the names of all requests and responses end with these words.
    return entry.name.removesuffix("Request").removesuffix("Response")


def _page(entry: CatalogEntry) -> str:
    return f"{entry.module}/{_title(entry)}.md"


def _index(grouped: dict[str, list[CatalogEntry]]) -> str:
    apis = {page: entries for page, entries in grouped.items() if _is_api(entries[0])}
    rows = [
        (
            str(entries[0].api_key),
            f"[{_title(entries[0])}]({page})",
            str(entries[0].versions),
            _none(str(entries[0].flexible_versions)),
            _span(list(entries[0].releases)),
        )
        for page, entries in sorted(apis.items(), key=lambda item: item[1][0].api_key or 0)
    ]
    text = "\n## APIs\n\n" + _table(("key", "API", "versions", "flexible", "releases"), rows)
    other_pages = [(page, entries[0]) for page, entries in grouped.items() if page not in apis]
    by_module = sorted(other_pages, key=lambda item: item[1].module)
    for module, members in groupby(by_module, key=lambda item: item[1].module):
        rows = [
            (
                f"[{entry.name}]({page})",
                entry.type.value,
                str(entry.versions),
                _none(str(entry.flexible_versions)),
                _span(list(entry.releases)),
            )
            for page, entry in members
        ]
        header = ("message", "type", "versions", "flexible", "releases")
        text += f"\n## {module}\n\n" + _table(header, rows)
    return text


def _message(bundled: Catalog, entry: CatalogEntry) -> Iterator[str]:
    from flexwire.schema.merge import merge

    key = "" if entry.api_key is None else f", api key {entry.api_key}"
    flexible = f"{entry.flexible_versions} flexible" if entry.flexible_versions else "none flexible"
    yield f"## {entry.name}"
    yield ""
    yield f"Type {entry.type.value}{key}; versions {entry.versions}, {flexible}."
    yield ""
    for heading, text in _header_versions(entry):
        yield f"- {heading}: {text}."
    yield f"- Releases: {'; '.join(_releases(bundled, entry))}."
    if layouts := list(_other_layouts(entry)):
        yield f"- Fields have another layout or other names in: {'; '.join(layouts)}."
    yield ""
    for name, fields in merge(entry.specs()).items():
        yield f"### {name}" if name == entry.name else f"### {entry.name}.{name}"
        yield ""
        yield _fields(fields.values()) if fields else "No fields.\n"


def _header_versions(entry: CatalogEntry) -> Iterator[tuple[str, str]]:
    from flexwire.protocol.headers import request_header_version, response_header_version
    from flexwire.versions import Versions

    if not _is_api(entry) or entry.api_key is None:
        return
    say = request_header_version if entry.type.value == "request" else response_header_version
    of_version = {version: say(entry.api_key, version) for version in entry.versions}
    runs = [
        f"{header} in {Versions.of(versions)}"
        for header, versions in groupby(of_version, key=of_version.__getitem__)
    ]
    yield f"Version of the {entry.type.value} header", ", ".join(runs)


def _releases(bundled: Catalog, entry: CatalogEntry) -> Iterator[str]:
    # Releases that removed the message are listed with "none". Releases without the module are left
    # out.
    since = bundled.releases[bundled.releases.index(next(iter(entry.releases))) :]
    releases = [
        release
        for release in since
        if release in entry.releases or entry.module in bundled.release_modules[release]
    ]
    for versions, run in groupby(
        releases, key=lambda release: str(entry.releases.get(release, "none"))
    ):
        yield f"{_span(list(run))}: {versions}"


def _other_layouts(entry: CatalogEntry) -> Iterator[str]:
    from flexwire.versions import Versions

    def differing(release: str) -> str:
        return str(
            Versions.of(
                version
                for version in entry.releases[release]
                if entry.spec(version, release) is not entry.spec(version)
            )
        )

    for versions, run in groupby(entry.releases, key=differing):
        if versions != "none":
            yield f"{_span(list(run))}: {versions}"


def _fields(fields: Iterable[MergedField]) -> str:
    rows = []
    for field in fields:
        newest = field.newest
        tagged = field.tagged_in()
        notes = [word for word, holds in _notes(field) if holds]
        rows.append(
            (
                f"`{field.attribute}`",
                f"`{newest.json_name}`",
                " or ".join(map(str, field.types)),
                field.present_in(),
                _none(field.nullable_in()),
                "" if tagged == "none" else f"tag {' or '.join(map(str, field.tags))} in {tagged}",
                f"`{newest.default}`" if newest.default else "",
                ", ".join(notes),
            )
        )
    header = ("Python", "JSON", "type", "versions", "nullable", "tagged", "default", "notes")
    return _table(header, rows)


def _notes(field: MergedField) -> tuple[tuple[str, bool], ...]:
    override = field.newest.flexible_versions
    return (
        ("ignorable", field.newest.ignorable),
        ("map key", field.newest.map_key),
        (f"flexible {override}", override is not None),
    )


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table without the columns that are empty in every row."""
    columns = [at for at in range(len(header)) if any(row[at] for row in rows)]
    lines = [[header[at] for at in columns], ["---"] * len(columns)]
    lines += [[row[at] for at in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _span(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{items[0]} to {items[-1]}"


def _none(text: str) -> str:
    return "" if text == "none" else text
