"""The guide as files: all pages, the style sheet, the scripts and the search index."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import flexwire
from flexwire.facts.units import TEXT_LIMIT, plural, safe
from flexwire.printable import printable
from flexwire.report.page_environment import page_environment, read_template_file
from flexwire.report.render import breakable
from flexwire.specs.guide.rows import steps
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from jinja2 import Environment

    from flexwire.specs.guide.messages import GuideMessage, MessageVersion
    from flexwire.specs.guide.rows import FieldRow, RowStep
    from flexwire.specs.guide.traffic import GuideTraffic


# The changed aspects of a step, as bits of a number in the data of a page.
_BITS = {"type": 1, "wire": 2, "default": 4, "properties": 8}

# Windows treats these names as devices, even if a dot and further text follow.
_DEVICES = frozenset({"aux", "con", "nul", "prn"}) | {
    f"{port}{number}" for port in ("com", "lpt") for number in range(10)
}


@dataclass(frozen=True, slots=True)
class VersionFact:
    """A fact about a version as a whole."""

    name: str
    value: str


@dataclass(frozen=True)
class FieldChange:
    """A step in words: the field, and the old and new values of each changed aspect."""

    kind: str
    row: FieldRow
    values: tuple[tuple[str, str, str], ...] = ()

    @property
    def only_wire(self) -> bool:
        """True if only the form on the wire changed."""
        return [aspect for aspect, _, _ in self.values] == ["wire"]


@dataclass(frozen=True)
class MessageChange:
    """The changes in a version of a message since the preceding version."""

    message: GuideMessage
    facts: tuple[tuple[str, str, str], ...]
    fields: tuple[FieldChange, ...]

    @property
    def plain(self) -> tuple[FieldChange, ...]:
        """The changes other than a new form on the wire."""
        return tuple(change for change in self.fields if not change.only_wire)

    @property
    def rewritten(self) -> tuple[FieldChange, ...]:
        """The fields that changed only in their wire form."""
        return tuple(change for change in self.fields if change.only_wire)


@dataclass(frozen=True)
class GuidePage:
    """A page about an API, with its request and response, or about a message without an API."""

    path: str
    title: str
    messages: tuple[GuideMessage, ...]

    @property
    def first(self) -> GuideMessage:
        """The request, or the first message if there is no request."""
        return self.messages[0]

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The versions of the page's messages, lowest first."""
        return tuple(sorted({number for message in self.messages for number in message.numbers}))

    @property
    def listeners(self) -> str:
        """The listeners of brokers and controllers that accept the request."""
        return ", ".join(self.first.listeners)

    @property
    def marks(self) -> dict[int, tuple[str, ...]]:
        """The marks of each version: removed, deprecated or unstable."""
        marks: dict[int, dict[str, None]] = {number: {} for number in self.numbers}
        for message in self.messages:
            for version in message.versions:
                marks[version.number] |= dict.fromkeys(version.marks)
        return {number: tuple(of_version) for number, of_version in marks.items()}

    @property
    def is_removed(self) -> bool:
        """True if none of the page's versions is in the newest release."""
        return not any(message.current for message in self.messages)

    def history(self) -> Iterator[tuple[int | None, int, tuple[MessageChange, ...]]]:
        """Yield the versions, highest first, each with the version before it and its changes."""
        for old, new in reversed(list(zip((None, *self.numbers), self.numbers, strict=False))):
            changes = () if old is None else tuple(self._changes(old, new))
            yield old, new, changes

    def _changes(self, old: int, new: int) -> Iterator[MessageChange]:
        for message in self.messages:
            before, after = message.by_number.get(old), message.by_number.get(new)
            if before and after:
                yield MessageChange(
                    message,
                    tuple(changed_facts(before, after, message)),
                    tuple(describe_steps(before.rows, after.rows, steps(before.rows, after.rows))),
                )


def make_pages(messages: Iterable[GuideMessage]) -> list[GuidePage]:
    """Group messages into pages by title."""
    grouped: dict[tuple[str, str], list[GuideMessage]] = {}
    for message in sorted(messages, key=lambda message: (message.title, message.type.value)):
        folder = "api" if message.is_api else "message"
        grouped.setdefault((folder, message.title), []).append(message)
    taken: set[str] = set()
    return [
        GuidePage(_path(folder, title, taken), title, tuple(members))
        for (folder, title), members in grouped.items()
    ]


def _path(folder: str, title: str, taken: set[str]) -> str:
    """Return a page's path and reserve it, so that the site can be copied to any file system."""
    # No title contains a "_".
    name = f"{title}_" if title.lower() in _DEVICES else title
    while f"{folder}/{name}".lower() in taken:
        name += "_"
    taken.add(f"{folder}/{name}".lower())
    return f"{folder}/{name}.html"


def facts(version: MessageVersion, message: GuideMessage) -> tuple[VersionFact, ...]:
    """Return the facts about a whole version that can differ between versions."""
    version_facts = [VersionFact("Flexible", "yes" if version.flexible else "no")]
    if version.header is not None:
        version_facts.append(
            VersionFact(f"{message.type.value.capitalize()} header", str(version.header))
        )
    return tuple(version_facts)


def changed_facts(
    old: MessageVersion, new: MessageVersion, message: GuideMessage
) -> Iterator[tuple[str, str, str]]:
    """Yield the facts that differ: name, old value, new value."""
    for before, after in zip(facts(old, message), facts(new, message), strict=True):
        if before != after:
            yield before.name, before.value, after.value


def first_appearance(message: GuideMessage, row: FieldRow, oldest: str) -> str:
    """Return the version that added a field, with the first release that has this version.

    The result is empty if the ``oldest`` known release already has the field, or if no release has
    it. A version above the versions of the newest release will appear in a later release.
    """
    first = next(version for version in message.versions if message.has(version.number, row.path))
    if first.support.after:
        return f"v{first.number}, after {first.support.after}"
    release = next(iter(first.support.releases), oldest)
    return "" if release == oldest else f"v{first.number}, in {release}"


def describe_steps(
    old: Sequence[FieldRow], new: Sequence[FieldRow], way: Iterable[RowStep]
) -> Iterator[FieldChange]:
    """Yield the steps that change something, in words."""
    for step in way:
        if step.old is None and step.new is not None:
            yield FieldChange(step.kind, new[step.new])
        elif step.new is None and step.old is not None:
            yield FieldChange(step.kind, old[step.old])
        elif step.aspects and step.old is not None and step.new is not None:
            before, after = old[step.old], new[step.new]
            values = [
                (aspect, word(before, aspect), word(after, aspect)) for aspect in step.aspects
            ]
            yield FieldChange(step.kind, after, tuple(values))


def word(row: FieldRow, aspect: str) -> str:
    """Return an aspect of a row as a string."""
    value = getattr(row, aspect)
    return ", ".join(value) or "none" if isinstance(value, tuple) else str(value)


def comparisons(message: GuideMessage) -> dict[str, object]:
    """Return the data with which a page's script compares any two versions.

    ``layouts`` contains the number of each version's layout. ``steps`` contains, under "old-new",
    the steps between two layouts that change something. Each step consists of the place in the old
    table and in the new table (-1 for none), and the aspects as bits. ``facts`` contains the facts
    that changed between two numbers in ``states``.
    """
    layouts = _numbered([_aspects(version) for version in message.versions])
    states = _numbered([facts(version, message) for version in message.versions])
    steps_by_layouts: dict[str, list[tuple[int, int, int]]] = {}
    changed: dict[str, list[tuple[str, str, str]]] = {}
    for at_new, new in enumerate(message.versions):
        for at_old, old in enumerate(message.versions[:at_new]):
            layout = layouts[at_old], layouts[at_new]
            if layout[0] != layout[1] and "{}-{}".format(*layout) not in steps_by_layouts:
                steps_by_layouts["{}-{}".format(*layout)] = _coded(old, new)
            state = states[at_old], states[at_new]
            if state[0] != state[1] and "{}-{}".format(*state) not in changed:
                changed["{}-{}".format(*state)] = list(changed_facts(old, new, message))
    return {
        "side": message.type.value,
        "name": message.name,
        "versions": message.numbers,
        "layouts": layouts,
        "steps": steps_by_layouts,
        "states": states,
        "facts": changed,
    }


def _numbered(values: Sequence[Hashable]) -> list[int]:
    """Number the values in the order of their first occurrence."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def _aspects(version: MessageVersion) -> tuple[Hashable, ...]:
    return tuple((row.path, row.aspects) for row in version.rows)


def _coded(old: MessageVersion, new: MessageVersion) -> list[tuple[int, int, int]]:
    return [
        (
            -1 if step.old is None else step.old,
            -1 if step.new is None else step.new,
            sum(_BITS[aspect] for aspect in step.aspects),
        )
        for step in steps(old.rows, new.rows)
        if step.kind != "same"
    ]


def spoken(numbers: Sequence[int]) -> str:
    """Return versions in the usual notation, such as "0-3,7", or a dash for none."""
    return str(Versions.of(numbers)) if numbers else "\u2013"


def write_index(pages: Sequence[GuidePage], mark: str) -> str:
    """Write the index as a script, because a page that is opened as a file can load only scripts.

    A page is [title, kind, api key or -1, path, versions, names of messages]. A field is [path,
    type, number of its page, place on the page], as in the highest version with this field.
    """
    entries: dict[str, list[list[object]]] = {
        "pages": [
            [
                page.title,
                "api" if page.first.is_api else page.first.type.value,
                -1 if page.first.api_key is None else page.first.api_key,
                page.path,
                spoken(page.numbers),
                [each_message.name for each_message in page.messages],
            ]
            for page in pages
        ],
        "fields": [
            [row.path, row.type, number, place]
            for number, page in enumerate(pages)
            for message in page.messages
            for row, place in _fields(message)
        ],
    }
    # Each entry is on its own line, so that two guides can be compared.
    lists = ",\n".join(
        f'"{name}": [\n' + ",\n".join(map(json.dumps, items)) + "\n]"
        for name, items in entries.items()
    )
    return f"/* {mark} */\nwindow.flexwireGuide = {{\n{lists}\n}};\n"


def place_of(number: int, message: GuideMessage, row: FieldRow) -> str:
    """Return the anchor of a row on the row's page."""
    return f"v{number}-{message.type.value}-{row.path}"


def _fields(message: GuideMessage) -> Iterator[tuple[FieldRow, str]]:
    seen: set[tuple[str, str]] = set()
    for version in reversed(message.versions):
        for row in version.rows:
            if (row.path, row.type) not in seen:
                seen.add((row.path, row.type))
                yield row, place_of(version.number, message, row)


MARK = "Written by `flexwire schema docs`; do not edit."
"""The first line of every file.

This line allows a later run to recognize the files that the guide wrote.
"""


def render(
    messages: Iterable[GuideMessage],
    title: str,
    releases: Sequence[str],
    traffic: GuideTraffic | None = None,
) -> dict[str, str]:
    """Return every file of the guide, by path.

    ``title`` describes the source of the messages. ``releases`` lists the releases whose support is
    shown, and contains at least one. ``traffic`` contains the senders of messages and fields. The
    same messages always result in the same files. All texts are treated as hostile: they are
    escaped, and unprintable characters are made visible. Raises `FlexwireError` if Jinja2 is not
    installed.
    """
    pages = make_pages(messages)
    releases = [printable(release) for release in releases]
    environment = _environment()
    shared = {
        "mark": MARK,
        "title": printable(title),
        "releases": releases,
        "flexwire_version": flexwire.__version__,
        "paths": {page.path for page in pages},
        "traffic": traffic,
    }
    files = {"index.html": _write(environment, "index.html.j2", shared | _index(pages, releases))}
    for page in pages:
        view = {
            "page": page,
            "root": "../",
            "data": _data(page),
            "namesakes": _namesakes(pages, page),
        }
        files[page.path] = _write(environment, "page.html.j2", shared | view)
    files["search.js"] = write_index(pages, MARK)
    files["guide.js"] = f"/* {MARK} */\n{read_template_file('flexwire.specs.guide', 'guide.js')}"
    # The guide shares the style sheet of the report.
    style = (
        read_template_file("flexwire.report", "report.css")
        + "\n"
        + read_template_file("flexwire.specs.guide", "guide.css")
    )
    files["guide.css"] = f"/* {MARK} */\n{style}"
    return files


@cache
def _environment() -> Environment:
    environment = page_environment("flexwire.specs.guide", "the guide", "docs")
    environment.filters.update(plural=plural, spoken=spoken, run=_run, shown=_shorten)
    environment.filters["breakable"] = breakable
    environment.globals.update(
        facts=facts,
        describe_steps=describe_steps,
        place_of=place_of,
        first_appearance=first_appearance,
    )
    return environment


def _write(environment: Environment, template: str, view: dict[str, Any]) -> str:
    return environment.get_template(template).render(view).strip() + "\n"


def _shorten(name: str) -> str:
    """Shorten a foreign name, which may be long and is repeated in each row of a client."""
    text: str = safe(name, TEXT_LIMIT)
    return text


def _run(releases: Sequence[str]) -> str:
    """Return the first and last of consecutive releases, or the only one."""
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _index(pages: Sequence[GuidePage], releases: Sequence[str]) -> dict[str, Any]:
    def key(page: GuidePage) -> tuple[int, str]:
        return (-1 if page.first.api_key is None else page.first.api_key, page.title)

    apis = sorted((page for page in pages if page.first.is_api), key=key)
    groups: dict[str, list[GuidePage]] = {}
    for page in pages:
        if not page.first.is_api:
            groups.setdefault(page.first.group, []).append(page)
    return {
        "root": "",
        "apis": [page for page in apis if not page.is_removed],
        "removed": [page for page in apis if page.is_removed],
        "groups": sorted(groups.items()),
        "pages": pages,
        "releases": releases,
        "layouts": sum(len(message.versions) for page in pages for message in page.messages),
    }


def _data(page: GuidePage) -> str:
    """Return the data for a page's script.

    A "<" in the data could end the surrounding element, so this character is escaped.
    """
    text = json.dumps([comparisons(message) for message in page.messages], separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _namesakes(pages: Sequence[GuidePage], page: GuidePage) -> list[GuidePage]:
    """Return other pages with the same API key.

    Such pages exist because the name of an API key may change.
    """
    if page.first.api_key is None or not page.first.is_api:
        return []
    key = page.first.api_key
    return [
        other
        for other in pages
        if other is not page and other.first.is_api and other.first.api_key == key
    ]
