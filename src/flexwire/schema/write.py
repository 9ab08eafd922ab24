"""Write a `MessageSpec` as KIP-482 JSON: facts only, one field per line, in a fixed order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.schema.spec import FieldSpec, MessageSpec, StructSpec

_Item = tuple[str, object]


def write_spec(spec: MessageSpec) -> str:
    """Write a spec so that reading it returns an equal spec, without ``about`` texts.

    >>> from flexwire.schema.parse import parse_spec
    >>> print(write_spec(parse_spec('{"type": "data", "name": "Foo", "validVersions": "0", '
    ...     '"fields": [{"name": "Bar", "type": "int8", "versions": "0+", "about": "A bar."}]}')))
    {
      "type": "data",
      "name": "Foo",
      "validVersions": "0",
      "flexibleVersions": "none",
      "fields": [
        {"name": "Bar", "type": "int8", "versions": "0+"}
      ]
    }
    <BLANKLINE>
    """
    return "\n".join([*_message(spec, ""), ""])


def write_specs(specs: Sequence[MessageSpec]) -> str:
    """Write several specs as a JSON array, or a single spec without an array."""
    if len(specs) == 1:
        return write_spec(specs[0])
    blocks = ["\n".join(_message(spec, "  ")) for spec in specs]
    return "[\n" + ",\n".join(blocks) + "\n]\n"


def _message(spec: MessageSpec, indent: str) -> Iterator[str]:
    items = _present(
        ("apiKey", spec.api_key),
        ("type", spec.type.value),
        ("listeners", list(spec.listeners) or None),
        ("name", spec.name),
        ("validVersions", str(spec.valid_versions)),
        ("deprecatedVersions", _versions(spec.deprecated_versions)),
        ("flexibleVersions", str(spec.flexible_versions)),
        ("headerVersions", spec.header_versions and spec.header_versions.texts()),
        ("latestVersionUnstable", spec.latest_version_unstable or None),
    )
    yield f"{indent}{{"
    for key, value in items:
        yield f'{indent}  "{key}": {json.dumps(value)},'
    if spec.common_structs:
        yield from _block("commonStructs", map(_struct, spec.common_structs), f"{indent}  ", ",")
    yield from _block("fields", map(_field, spec.fields), f"{indent}  ", "")
    yield f"{indent}}}"


def _block(key: str, items: Iterable[_Line], indent: str, after: str) -> Iterator[str]:
    lines = list(_lines(items, f"{indent}  "))
    if not lines:
        yield f'{indent}"{key}": []{after}'
        return
    yield f'{indent}"{key}": ['
    yield from lines
    yield f"{indent}]{after}"


def _lines(items: Iterable[_Line], indent: str) -> Iterator[str]:
    """Yield a line for each field, followed by the fields of its structure in brackets."""
    pending = list(items)
    for place, (facts, fields) in enumerate(pending):
        comma = "," if place + 1 < len(pending) else ""
        inner = ", ".join(f'"{key}": {json.dumps(value)}' for key, value in facts)
        if not fields:
            yield f"{indent}{{{inner}}}{comma}"
            continue
        yield f'{indent}{{{inner}, "fields": ['
        yield from _lines(map(_field, fields), f"{indent}  ")
        yield f"{indent}]}}{comma}"


_Line = tuple[list[_Item], "tuple[FieldSpec, ...]"]


def _struct(struct: StructSpec) -> _Line:
    facts = _present(
        ("name", struct.name),
        ("versions", str(struct.versions)),
        ("deprecatedVersions", _versions(struct.deprecated_versions)),
    )
    return facts, struct.fields


def _field(field: FieldSpec) -> _Line:
    override = field.flexible_versions
    facts = _present(
        ("name", field.name),
        ("type", str(field.type)),
        ("versions", str(field.versions)),
        ("nullableVersions", _versions(field.nullable_versions)),
        ("tag", field.tag),
        ("taggedVersions", _versions(field.tagged_versions)),
        ("flexibleVersions", None if override is None else str(override)),
        ("default", field.default or None),
        ("ignorable", field.ignorable or None),
        ("mapKey", field.map_key or None),
        ("zeroCopy", field.zero_copy or None),
        ("entityType", field.entity_type or None),
    )
    return facts, field.fields


def _versions(versions: Versions) -> str | None:
    return None if versions == Versions.NONE else str(versions)


def _present(*items: _Item) -> list[_Item]:
    return [(key, value) for key, value in items if value is not None]
