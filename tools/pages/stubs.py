"""`messages.pyi`: what editors and type checkers know about the bundled messages."""

from __future__ import annotations

import builtins
import json
import math
from typing import TYPE_CHECKING, Any

from flexwire.schema.catalog import catalog
from flexwire.schema.merge import merge
from flexwire.schema.resolve import parse_default
from flexwire.schema.spec import MessageType
from tools.pages.files import ROOT, write_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from flexwire.schema.catalog import Catalog, CatalogEntry
    from flexwire.schema.merge import MergedField
    from flexwire.schema.spec import FieldType

STUB = ROOT / "src" / "flexwire" / "messages.pyi"
_HEAD = """\
# Written by `python -m tools.pages.stubs` from the bundled catalog; do not edit.
# Editors show the docstring beneath a field, and Kafka's names can be long: hence `noqa`.
# ruff: noqa: PYI021, E501
# fmt: off

import uuid as _uuid
from typing import Literal, overload

from flexwire.codec import Message, MessageStruct
"""
_PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "uuid": "_uuid.UUID",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
}
_KINDS = {MessageType.METADATA: "metadata record", MessageType.DATA: "data"}
# Longer values cannot be read at a glance, and the linter requires an ellipsis for them.
_LONGEST_DEFAULT = 10
_Structs = dict[str, dict[str, "MergedField"]]


def files() -> dict[Path, str]:
    """Return the stub of the bundled catalog."""
    return {STUB: emit_stub(catalog())}


def emit_stub(bundled: Catalog) -> str:
    """Return the stub of every message in a catalog: its classes with their typed fields.

    A field is followed by its Kafka type and the versions that have it. Constructors accept only
    keywords, because a field's position may change in the next release. `message` returns the class
    of the given name. The class for a named release may have other fields, so its type is
    `Message`.
    """
    lines: list[str] = []
    for name in bundled.names():
        entry = bundled.entry(name)
        structs = merge(entry.specs())
        lines += ["", *_message(entry, structs)]
    return _HEAD + "\n".join([*lines, "", *_overloads(bundled.names()), ""])


def _overloads(names: Iterable[str]) -> Iterator[str]:
    """Yield the signatures of `flexwire.message`: one for each name, and one for other strings."""
    for name in names:
        yield "@overload"
        yield f'def message(name: Literal["{name}"], release: None = None) -> type[{name}]: ...'
    yield "@overload"
    yield "def message(name: str, release: str | None = None) -> type[Message]: ..."


def _message(entry: CatalogEntry, structs: _Structs) -> Iterator[str]:
    yield f"class {entry.name}(Message, kw_only=True):"
    yield f'    """{describe(entry)}"""'
    for name, fields in structs.items():
        if name != entry.name:
            yield ""
            yield f"    class {name}(MessageStruct, kw_only=True):{'' if fields else ' ...'}"
            yield from _fields(entry.name, fields, " " * 8)
    if structs[entry.name]:
        yield ""
    yield from _fields(entry.name, structs[entry.name], " " * 4)


def describe(entry: CatalogEntry) -> str:
    """Describe a message in one line: its kind, its versions, and the releases that contain it.

    >>> describe(catalog().entry("FetchRequest"))
    'Request, api key 1; versions 0-18, flexible 12+; in Kafka 2.4.1 to 4.4.0.'
    """
    kind = _KINDS.get(entry.type, entry.type.value)
    key = "" if entry.api_key is None else f", api key {entry.api_key}"
    releases = list(entry.releases)
    span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
    flexible = f"flexible {entry.flexible_versions}" if entry.flexible_versions else "not flexible"
    return f"{kind.capitalize()}{key}; versions {entry.versions}, {flexible}; in Kafka {span}."


def _fields(message: str, fields: dict[str, MergedField], indent: str) -> Iterator[str]:
    for field in fields.values():
        annotation = _annotation(message, field, set(fields))
        yield f"{indent}{field.attribute}: {annotation} = {_default(field)}"
        yield f'{indent}"""{describe_field(field)}"""'


def describe_field(field: MergedField) -> str:
    """Describe a field in one line: its Kafka type, and the versions of each of its properties."""
    words = [" or ".join(map(str, field.types)), f"versions {field.present_in()}"]
    if (tagged := field.tagged_in()) != "none":
        words.append(f"tagged {tagged} (tag {' or '.join(map(str, field.tags))})")
    if (nullable := field.nullable_in()) != "none":
        words.append(f"nullable {nullable}")
    if field.newest.ignorable:
        words.append("ignorable")
    return ", ".join(words) + "."


def _annotation(message: str, field: MergedField, taken: set[str]) -> str:
    kinds = dict.fromkeys(_python_type(message, kind, taken) for kind in field.types)
    return " | ".join([*kinds, *(["None"] if field.nullable else [])])


def _python_type(message: str, kind: FieldType, taken: set[str]) -> str:
    if kind.is_struct:
        name = f"{message}.{kind.name}"
    else:
        name = _builtin(_PYTHON_TYPES.get(kind.name, "int"), taken)
    return f"{_builtin('list', taken)}[{name}]" if kind.is_array else name


def _builtin(name: str, taken: set[str]) -> str:
    # In a class body a field of that name would hide the type.
    if name in taken and hasattr(builtins, name):
        raise ValueError(f"a field named {name!r} hides the type; import builtins in the stub")
    return name


def _default(field: MergedField) -> str:
    value: Any = parse_default(field.newest)
    text = "..."
    if isinstance(value, str):
        text = json.dumps(value)
    elif value is None or isinstance(value, bool | int | bytes) or _is_finite(value):
        text = repr(value).replace("b''", 'b""')
    return text if len(text) <= _LONGEST_DEFAULT else "..."


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


if __name__ == "__main__":
    write_files(files())
