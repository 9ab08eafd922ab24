"""A message spec as it is written: names, types and versions, with nothing decided yet."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator


class MessageType(Enum):
    """The ``type`` of a message spec."""

    REQUEST = "request"
    RESPONSE = "response"
    HEADER = "header"
    METADATA = "metadata"
    DATA = "data"
    COORDINATOR_KEY = "coordinator-key"
    COORDINATOR_VALUE = "coordinator-value"

    @property
    def is_api(self) -> bool:
        """Whether it is a request or a response."""
        return self in {MessageType.REQUEST, MessageType.RESPONSE}

    def api_name(self, name: str) -> str:
        """Give the API's name, of a request or response by its own; of others just that.

        >>> MessageType.RESPONSE.api_name("FetchResponse")
        'Fetch'
        """
        if not self.is_api:
            return name
        return name.removesuffix(self.value.capitalize()) or name


def snake_case(name: str) -> str:
    """Give a name of a spec as Python and SQL write names.

    >>> snake_case("MetadataResponse")
    'metadata_response'
    """
    return _WORD_START.sub("_", name).lower()


def camel_case(name: str) -> str:
    """The name in JSON of what Python calls so.

    >>> camel_case("last_offset_delta")
    'lastOffsetDelta'
    """
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a spec's text; both count from 1, in characters."""

    line: int = 0
    column: int = 0


FIRST = Position(1, 1)
"""Where findings about a message as a whole are placed; no field stands there."""

PRIMITIVES = frozenset(
    {
        "bool",
        "int8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uuid",
        "float64",
        "string",
        "bytes",
        "records",
    }
)


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type as the spec names it: a primitive, a structure, or an array of either.

    >>> FieldType.parse("[]int32")
    FieldType(name='int32', is_array=True)
    """

    name: str
    is_array: bool = False

    @classmethod
    def parse(cls, text: str) -> FieldType:
        """Read ``int32``, ``[]int32``, ``Topic`` or ``[]Topic``.

        Raises `ValueError` for an array of arrays, for no element type, and for a name that is
        neither a primitive nor capitalized as a structure.
        """
        text = text.strip()
        is_array = text.startswith("[]")
        name = text[2:] if is_array else text
        if is_array and not name:
            raise ValueError("the array has no element type; write, for instance, '[]int32'")
        if name.startswith("[]"):
            raise ValueError("an array of arrays is not possible; use an array of structures")
        if name not in PRIMITIVES and not name[:1].isupper():
            raise ValueError(f"unknown type {name!r}")
        return cls(name, is_array)

    @property
    def is_struct(self) -> bool:
        """Whether the type, or its element type, is a structure."""
        return self.name not in PRIMITIVES

    @property
    def has_null(self) -> bool:
        """Whether a value of the type may be null, in the versions that say so."""
        return self.is_array or self.is_struct or self.name in {"string", "bytes", "records"}

    def __str__(self) -> str:
        return f"[]{self.name}" if self.is_array else self.name


# What every message class has already, so that no field can take the name.
_TAKEN = frozenset(
    {
        "decode",
        "decode_prefix",
        "decoder",
        "definition",
        "encode",
        "encoder",
        "entry",
        "from_json",
        "of",
        "replace",
        "to_json",
        "unknown_tagged_fields",
    }
)
# A capital begins a word, and so does the last of a run of capitals before a small letter:
# "ProducerIDs" is rare, "KRaftVersion" and "LastKnownELR" are what Kafka has.
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a message spec.

    ``default`` is the text in the spec, "" where it gives none. ``flexible_versions`` is the
    field's own override, None where it has none. Source: the keys of KIP-482's JSON specs.
    """

    name: str
    type: FieldType
    versions: Versions
    nullable_versions: Versions = Versions.NONE
    tag: int | None = None
    tagged_versions: Versions = Versions.NONE
    flexible_versions: Versions | None = None
    default: str = ""
    ignorable: bool = False
    map_key: bool = False
    zero_copy: bool = False
    entity_type: str = ""
    about: str = ""
    fields: tuple[FieldSpec, ...] = ()
    position: Position = field(default=Position(), compare=False)

    @property
    def json_name(self) -> str:
        """The name in the JSON form: the first letter in lower case."""
        return self.name[0].lower() + self.name[1:]

    @property
    def attribute(self) -> str:
        """The name of the Python attribute: snake_case, with "_" after a name that Python needs."""
        name = snake_case(self.name)
        return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN else name


@dataclass(frozen=True, slots=True)
class StructSpec:
    """A structure named in ``commonStructs``, to be used by several fields."""

    name: str
    versions: Versions
    fields: tuple[FieldSpec, ...]
    deprecated_versions: Versions = Versions.NONE
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """A whole message spec. ``source`` says where it was read, for error texts."""

    name: str
    type: MessageType
    valid_versions: Versions
    flexible_versions: Versions
    fields: tuple[FieldSpec, ...]
    api_key: int | None = None
    common_structs: tuple[StructSpec, ...] = ()
    deprecated_versions: Versions = Versions.NONE
    listeners: tuple[str, ...] = ()
    latest_version_unstable: bool = False
    source: str = field(default="", compare=False)

    def structs(self) -> dict[str, tuple[FieldSpec, ...]]:
        """The fields of every structure by its name, inline and common ones alike.

        A structure's name stands for one structure in the whole message; the first mention with
        fields gives them, and later mentions may leave them out.
        """
        structs = {struct.name: struct.fields for struct in self.common_structs}
        for field_spec in self.walk():
            if field_spec.type.is_struct and field_spec.fields:
                structs.setdefault(field_spec.type.name, field_spec.fields)
        return structs

    def fields_by_structure(self) -> dict[str, tuple[FieldSpec, ...]]:
        """The fields of every structure and, last, of the message, each by its name."""
        # The message's name is that of no structure in it.
        return self.structs() | {self.name: self.fields}

    def walk(self) -> Iterator[FieldSpec]:
        """Every field of the message and of its structures, outer before inner."""
        common = [field for struct in self.common_structs for field in struct.fields]
        # The next one stands last.
        pending = [*reversed(common), *reversed(self.fields)]
        while pending:
            field = pending.pop()
            yield field
            pending += reversed(field.fields)


def narrowed(spec: MessageSpec, valid: Versions) -> MessageSpec:
    """Return a spec with these valid versions only, and only the fields that they have.

    It has no unstable version where the unstable one is left out.
    """
    structs = (
        replace(struct, fields=_narrowed(struct.fields, valid)) for struct in spec.common_structs
    )
    return replace(
        spec,
        valid_versions=valid,
        fields=_narrowed(spec.fields, valid),
        common_structs=tuple(
            common_struct for common_struct in structs if common_struct.versions & valid
        ),
        latest_version_unstable=spec.latest_version_unstable
        and bool(valid)
        and valid.highest == spec.valid_versions.highest,
    )


def _narrowed(fields: tuple[FieldSpec, ...], valid: Versions) -> tuple[FieldSpec, ...]:
    return tuple(
        replace(field, fields=_narrowed(field.fields, valid))
        for field in fields
        if (field.versions | field.tagged_versions) & valid
    )
