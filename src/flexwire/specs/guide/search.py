"""The index that the guide's search looks in: pages, and the fields on them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flexwire.specs.guide.pages import spoken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.specs.guide.messages import Message
    from flexwire.specs.guide.pages import Page
    from flexwire.specs.guide.rows import FieldRow


def write_index(pages: Sequence[Page], mark: str) -> str:
    """Write the index as a script, because a page opened as a file can read no other kind of file.

    A page is [title, kind, api key or -1, path, versions, messages' names], a field is [path, type,
    number of its page, place on the page]: that of the highest version that has it.
    """
    found: dict[str, list[list[object]]] = {
        "pages": [
            [
                page.title,
                "api" if page.first.is_api else page.first.type.value,
                -1 if page.first.api_key is None else page.first.api_key,
                page.path,
                spoken(page.numbers),
                [one.name for one in page.messages],
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
    # One line for each, so that two guides can be compared.
    lists = ",\n".join(
        f'"{name}": [\n' + ",\n".join(map(json.dumps, items)) + "\n]"
        for name, items in found.items()
    )
    return f"/* {mark} */\nwindow.flexwireGuide = {{\n{lists}\n}};\n"


def place_of(number: int, message: Message, row: FieldRow) -> str:
    """The name of a row's place on its page."""
    return f"v{number}-{message.type.value}-{row.path}"


def _fields(message: Message) -> Iterator[tuple[FieldRow, str]]:
    seen: set[tuple[str, str]] = set()
    for version in reversed(message.versions):
        for row in version.rows:
            if (row.path, row.type) not in seen:
                seen.add((row.path, row.type))
                yield row, place_of(version.number, message, row)
