"""Writes `messages.pyi`: what editors and type checkers know of the bundled messages.

``python -m flexwire.codec.stubs`` writes it anew, after the catalog has changed.
"""

from __future__ import annotations

import builtins
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.schema.catalog import catalog
from flexwire.schema.merge import merge
from flexwire.schema.resolve import parse_default
from flexwire.schema.spec import MessageType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.schema.catalog import Catalog, CatalogEntry
    from flexwire.schema.merge import MergedField
    from flexwire.schema.spec import FieldType

STUB = Path(__file__).parents[1] / "messages.pyi"
_HEAD = """\
# Written by `python -m flexwire.codec.stubs` from the bundled catalog; do not edit.
# A docstring beneath a field is what an editor shows of it, and Kafka's names are as long as they
# are: hence `noqa`.
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
# Longer ones tell nothing at a glance, and the linter wants an ellipsis for them.
_LONGEST_DEFAULT = 10
_Structs = dict[str, dict[str, "MergedField"]]


def emit_stub(bundled: Catalog) -> str:
    """Write the stub of every message in a catalog: its classes with their typed fields.

    A field is followed by its Kafka type and the versions that have it. Constructors take keywords
    only, because a field's place may change with the next release. `message` gives the class whose
    name it gets; that of a named release may have other fields, and is any message's.
    """
    lines: list[str] = []
    for name in bundled.names():
        entry = bundled.entry(name)
        structs = merge(entry.specs())
        lines += ["", *_message(entry, structs)]
    return _HEAD + "\n".join([*lines, "", *_overloads(bundled.names()), ""])


def _overloads(names: Iterable[str]) -> Iterator[str]:
    """Write the signatures of `flexwire.message`: one for each name, and one for all other text."""
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
    """Say in one line what a message is, its versions, and which releases have it.

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
    for one in fields.values():
        yield f"{indent}{one.attribute}: {_annotation(message, one, set(fields))} = {_default(one)}"
        yield f'{indent}"""{describe_field(one)}"""'


def describe_field(one: MergedField) -> str:
    """Say in one line what a field is: its Kafka type, and what it is in which versions."""
    told = [" or ".join(map(str, one.types)), f"versions {one.present_in()}"]
    if (tagged := one.tagged_in()) != "none":
        told.append(f"tagged {tagged} (tag {' or '.join(map(str, one.tags))})")
    if (nullable := one.nullable_in()) != "none":
        told.append(f"nullable {nullable}")
    if one.newest.ignorable:
        told.append("ignorable")
    return ", ".join(told) + "."


def _annotation(message: str, one: MergedField, taken: set[str]) -> str:
    kinds = dict.fromkeys(_python_type(message, kind, taken) for kind in one.types)
    return " | ".join([*kinds, *(["None"] if one.nullable else [])])


def _python_type(message: str, kind: FieldType, taken: set[str]) -> str:
    if kind.is_struct:
        name = f"{message}.{kind.name}"
    else:
        name = _builtin(_PYTHON_TYPES.get(kind.name, "int"), taken)
    return f"{_builtin('list', taken)}[{name}]" if kind.is_array else name


def _builtin(name: str, taken: set[str]) -> str:
    # In a class body a field of the name would stand before the type.
    if name in taken and hasattr(builtins, name):
        raise ValueError(f"a field named {name!r} hides the type; import builtins in the stub")
    return name


def _default(one: MergedField) -> str:
    value: Any = parse_default(one.newest)
    text = "..."
    if isinstance(value, str):
        text = json.dumps(value)
    elif value is None or isinstance(value, bool | int | bytes) or _is_finite(value):
        text = repr(value).replace("b''", 'b""')
    return text if len(text) <= _LONGEST_DEFAULT else "..."


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


if __name__ == "__main__":
    STUB.write_text(emit_stub(catalog()), encoding="utf-8")
