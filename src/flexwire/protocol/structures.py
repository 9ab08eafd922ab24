"""The structures of a message in its JSON form, each with the schema that it has there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.wire.schema import struct_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexwire.wire.schema import Schema


class Structure(NamedTuple):
    """One structure: its object in the JSON form, its schema, and the path to it."""

    form: dict[str, Any]
    schema: Schema
    path: str

    def at(self, name: str) -> str:
        """The path to a field of it."""
        return f"{self.path}.{name}" if self.path else name


def structures(
    form: Any, schema: Schema, names: Mapping[str, Mapping[str, str]] | None = None, path: str = ""
) -> Iterator[Structure]:
    """Every structure, outer before inner; what is not of the schema's shape is left out.

    ``names`` are what fields are called in other releases (`Served.former_names`). A structure may
    be altered when it is given: those inside it are looked for after that.
    """
    if not isinstance(form, dict):
        return
    here = Structure(form, schema, path)
    yield here
    inner = {one.json_name: found for one in schema.fields if (found := struct_of(one.type))}
    former = (names or {}).get(schema.name, {})
    for name, value in list(form.items()):
        within = inner.get(former.get(name, name))
        if within is None:
            continue
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from structures(item, within, names, f"{here.at(name)}[{index}]")
        else:
            yield from structures(value, within, names, here.at(name))
