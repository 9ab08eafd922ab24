"""A message spec as it is written: names, types and versions, before any decision is made."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from flexwire.versions import HIGHEST, Versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class MessageType(Enum):
    """The value of ``type`` in a message spec."""

    REQUEST = "request"
    RESPONSE = "response"
    HEADER = "header"
    METADATA = "metadata"
    DATA = "data"
    COORDINATOR_KEY = "coordinator-key"
    COORDINATOR_VALUE = "coordinator-value"

    @property
    def is_api(self) -> bool:
        """True if the message is a request or a response."""
        return self in {MessageType.REQUEST, MessageType.RESPONSE}

    def api_name(self, name: str) -> str:
        """Return the API of a request or response. The names of other types are returned unchanged.

        >>> MessageType.RESPONSE.api_name("FetchResponse")
        'Fetch'
        """
        if not self.is_api:
            return name
        return name.removesuffix(self.value.capitalize()) or name


def snake_case(name: str) -> str:
    """Return a name in a spec in snake_case, the style of Python and SQL.

    >>> snake_case("MetadataResponse")
    'metadata_response'
    """
    return _WORD_START.sub("_", name).lower()


def camel_case(name: str) -> str:
    """Return the JSON name of a Python attribute.

    >>> camel_case("last_offset_delta")
    'lastOffsetDelta'
    """
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the text of a spec. Both numbers are counted from 1, in characters."""

    line: int = 0
    column: int = 0


FIRST = Position(1, 1)
"""The place of findings that concern a whole message and not a field."""

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
    """A type as it is written in a spec: a primitive type, a structure, or an array of either.

    >>> FieldType.parse("[]int32")
    FieldType(name='int32', is_array=True)
    """

    name: str
    is_array: bool = False

    @classmethod
    def parse(cls, text: str) -> FieldType:
        """Parse a string such as ``int32``, ``[]int32``, ``Topic`` or ``[]Topic``.

        Raises `ValueError` for an array of arrays, for a missing element type, and for a name that
        is not a primitive type and does not begin with a capital letter as a structure's name does.
        """
        text = text.strip()
        is_array = text.startswith("[]")
        name = text[2:] if is_array else text
        if is_array and not name:
            raise ValueError("the array has no element type; write, for instance, '[]int32'")
        if name.startswith("[]"):
            raise ValueError("arrays of arrays are not supported; use an array of structures")
        if name not in PRIMITIVES and not name[:1].isupper():
            raise ValueError(f"unknown type {name!r}")
        return cls(name, is_array)

    @property
    def is_struct(self) -> bool:
        """True if the type, or its element type, is a structure."""
        return self.name not in PRIMITIVES

    @property
    def has_null(self) -> bool:
        """True if values of this type may be null in the versions that allow it."""
        return self.is_array or self.is_struct or self.name in {"string", "bytes", "records"}

    def __str__(self) -> str:
        return f"[]{self.name}" if self.is_array else self.name


# The names that every message class already uses. Fields cannot use these names.
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
# A capital letter begins a new word. The last capital letter in a series of them also begins a
# word, if a lowercase letter follows. Names such as "ProducerIDs" are rare. Kafka uses
# "KRaftVersion" and "LastKnownELR".
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A single field of a message spec.

    ``default`` is the text in the spec, or "" if the field has no default. ``flexible_versions``
    is the field's own override, or None if the field has no override. The source is the list of
    keys in KIP-482's JSON specs.
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
        """The name in the JSON form, which begins with a lowercase letter."""
        return self.name[0].lower() + self.name[1:]

    @property
    def attribute(self) -> str:
        """The Python attribute: snake_case, with "_" appended if Python reserves the name."""
        name = snake_case(self.name)
        return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN else name

    @property
    def names_topic(self) -> bool:
        """True if the field contains the name of one topic, according to its ``entityType``."""
        return (self.entity_type, str(self.type)) == ("topicName", "string")

    @property
    def identifies_topic(self) -> bool:
        """True if the field contains the id of one topic (KIP-516).

        Such a field has no ``entityType``.
        """
        return (self.name, str(self.type)) == ("TopicId", "uuid")

    @property
    def identifies_client_instance(self) -> bool:
        """True if the field contains the client instance id (KIP-714; in a header, KIP-1313)."""
        return (self.name, str(self.type)) == ("ClientInstanceId", "uuid")


@dataclass(frozen=True, slots=True)
class StructSpec:
    """A structure in ``commonStructs``, which several fields can use."""

    name: str
    versions: Versions
    fields: tuple[FieldSpec, ...]
    deprecated_versions: Versions = Versions.NONE
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class HeaderVersions:
    """The header version for each version of the body, as ranges in ascending order.

    >>> headers = HeaderVersions.parse({"0-1": "1", "2+": "2"})
    >>> headers.of(1), headers.of(2), str(headers)
    (1, 2, '1 in 0-1, 2 in 2+')
    """

    ranges: tuple[tuple[Versions, int], ...]

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> HeaderVersions:
        """Return the header versions in the key ``headerVersions`` of a spec, in ascending order.

        Raises `ValueError` for a key that is not a range, and for a value that is not a number.
        """
        ranges = [(Versions.parse(versions), int(header)) for versions, header in texts.items()]
        return cls(tuple(sorted(ranges, key=lambda item: item[0].lowest)))

    def of(self, version: int) -> int:
        """Return the header version of any body version.

        A version above all ranges has the header of the last range, like a version above those in
        the catalog. A version in a gap has the header of the range before the gap. A version below
        all ranges has the header of the first range. `flexwire schema lint` reports specs with such
        gaps (HEADER_VERSIONS_INCOMPLETE).
        """
        for versions, header in reversed(self.ranges):
            if version >= versions.lowest:
                return header
        return self.ranges[0][1]

    def up_to(self, highest: int) -> HeaderVersions:
        """Return the ranges that begin at or below a version. The last range has no end.

        >>> str(HeaderVersions.parse({"0": "1", "1-4": "2", "5+": "3"}).up_to(3))
        '1 in 0, 2 in 1+'
        """
        kept = [part for part in self.ranges if part[0].lowest <= max(highest, 0)]
        if not kept:
            return self
        (last, header) = kept[-1]
        return HeaderVersions((*kept[:-1], (Versions(last.lowest, HIGHEST), header)))

    def texts(self) -> dict[str, str]:
        """Return the ranges in the form of the key ``headerVersions`` in a spec."""
        return {str(versions): str(header) for versions, header in self.ranges}

    def __iter__(self) -> Iterator[tuple[Versions, int]]:
        return iter(self.ranges)

    def __str__(self) -> str:
        return ", ".join(f"{header} in {versions}" for versions, header in self.ranges)


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """A whole message spec. For error messages, ``source`` is the file from which it was read.

    ``header_versions`` is None if the spec does not have the key ``headerVersions``, which Kafka
    requires since 4.5 (`flexwire.schema.header_versions`).
    """

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
    header_versions: HeaderVersions | None = None
    source: str = field(default="", compare=False)

    def structs(self) -> dict[str, tuple[FieldSpec, ...]]:
        """Return the fields of every structure, inline or common, by structure name.

        In a message, each name belongs to one structure. The first place that lists fields defines
        the structure, and later places may leave out the fields.
        """
        structs = {struct.name: struct.fields for struct in self.common_structs}
        for field_spec in self.walk():
            if field_spec.type.is_struct and field_spec.fields:
                structs.setdefault(field_spec.type.name, field_spec.fields)
        return structs

    def fields_by_structure(self) -> dict[str, tuple[FieldSpec, ...]]:
        """Return the fields of every structure by structure name, the message's fields last."""
        # No structure in a message has the name of the message.
        return self.structs() | {self.name: self.fields}

    def walk(self) -> Iterator[FieldSpec]:
        """Yield every field of the message and its structures, from the outside inwards."""
        common = [field for struct in self.common_structs for field in struct.fields]
        # The next field is at the end of the list.
        pending = [*reversed(common), *reversed(self.fields)]
        while pending:
            field = pending.pop()
            yield field
            pending += reversed(field.fields)


def narrowed(spec: MessageSpec, valid: Versions) -> MessageSpec:
    """Return a spec with only these valid versions, and only the fields of these versions.

    If the unstable version is not among these versions, the result has no unstable version.
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
        header_versions=spec.header_versions and spec.header_versions.up_to(valid.highest),
    )


def _narrowed(fields: tuple[FieldSpec, ...], valid: Versions) -> tuple[FieldSpec, ...]:
    return tuple(
        replace(field, fields=_narrowed(field.fields, valid))
        for field in fields
        if (field.versions | field.tagged_versions) & valid
    )
