"""A message spec, as the rules see it: its structures, its fields, and the position of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from flexwire.schema.spec import MessageType, Position
from flexwire.schema.text import JsonArray, JsonObject
from flexwire.specs.allow_comments import find_allow_comments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.parse import Mode
    from flexwire.schema.spec import FieldSpec, MessageSpec, StructSpec
    from flexwire.schema.text import Node, SpecText
    from flexwire.specs.allow_comments import AllowComment
    from flexwire.versions import Versions


WITH_API_KEYS = frozenset(MessageType) - {MessageType.HEADER, MessageType.DATA}
"""The types whose messages have an API key, which is unique for each type in a directory."""


@dataclass(frozen=True, slots=True)
class CheckedStructure:
    """The fields of a message, of a common structure, or of a field.

    ``versions`` are the versions in which all structures around this structure are present.
    ``holder`` is the field that defines an inline structure. ``in_common`` is true inside a common
    structure.
    """

    name: str
    fields: tuple[FieldSpec, ...]
    versions: Versions
    position: Position
    holder: FieldSpec | None = None
    in_common: bool = False


@dataclass(frozen=True, eq=False)
class CheckedMessage:
    """A spec that was read, even if it has problems.

    ``damaged`` contains the positions of objects that could not be read completely. Only parts of
    these objects are known, so rules do not judge them.
    """

    spec: MessageSpec
    text: SpecText
    root: Node
    mode: Mode
    damaged: frozenset[Position]

    @property
    def top(self) -> Position:
        """The position at which the spec begins."""
        return self.text.position(self.root.offset)

    @property
    def readable(self) -> bool:
        """True if the message's own members could be read, even if its fields could not."""
        return self.top not in self.damaged

    @property
    def header_ranges(self) -> tuple[tuple[Versions, int], ...]:
        """The ranges in ``headerVersions`` with their header versions, if rules can judge them.

        The result is empty if the spec has no such key or cannot be read.
        """
        headers = self.spec.header_versions
        if headers is None or not self.readable:
            return ()
        return headers.ranges

    @cached_property
    def _objects(self) -> dict[Position, JsonObject]:
        return {
            self.text.position(json_object.offset): json_object for json_object in self.objects()
        }

    def objects(self) -> Iterator[JsonObject]:
        """Yield every JSON object of the spec."""
        pending = [self.root]
        while pending:
            node = pending.pop()
            if isinstance(node, JsonObject):
                yield node
                pending += [member.value for member in node.members.values()]
            elif isinstance(node, JsonArray):
                pending += node.items

    def at(self, element: FieldSpec | StructSpec | CheckedStructure | None, key: str) -> Position:
        """Return the position of a member's value, or of the object if the member is missing.

        None stands for the message itself.
        """
        position = self.top if element is None else element.position
        json_object = self._objects.get(position)
        member = json_object.members.get(key) if json_object else None
        return self.text.position(member.value.offset) if member else position

    def has(self, element: FieldSpec | StructSpec | None, key: str) -> bool:
        """Return whether the spec contains a member, whatever the member's value is."""
        return key in self._objects[self.top if element is None else element.position].members

    @cached_property
    def structures(self) -> tuple[CheckedStructure, ...]:
        """Every structure that has fields, the message first."""
        spec = self.spec
        valid = spec.valid_versions
        outermost = [CheckedStructure(spec.name, spec.fields, valid, self.top)]
        outermost += [
            CheckedStructure(
                struct.name, struct.fields, valid & struct.versions, struct.position, in_common=True
            )
            for struct in spec.common_structs
        ]
        pending = list(reversed(outermost))
        structures = []
        while pending:
            structure = pending.pop()
            structures.append(structure)
            pending += [
                CheckedStructure(
                    field.type.name,
                    field.fields,
                    structure.versions & field.versions,
                    field.position,
                    field,
                    structure.in_common,
                )
                for field in reversed(structure.fields)
                if field.fields
            ]
        return tuple(structures)

    def fields(self) -> Iterator[tuple[FieldSpec, CheckedStructure]]:
        """Yield every field that could be read, with its structure."""
        for structure in self.structures:
            for field in structure.fields:
                if field.position not in self.damaged:
                    yield field, structure

    @cached_property
    def allows(self) -> tuple[AllowComment, ...]:
        """The comments that allow findings, valid or not."""
        return find_allow_comments(self.text)

    @cached_property
    def nesting(self) -> Nesting:
        """The nesting of the structures."""
        return Nesting(self)


class Nesting:
    """The structures of a message by name, inner structures before outer ones.

    ``closing`` contains each field whose own structure already contains the field, so that the
    nesting would never end. These methods do not use recursion, because a spec may have thousands
    of structures, each inside the next.
    """

    def __init__(self, message: CheckedMessage) -> None:
        fields = message.spec.fields_by_structure()
        self.fields = fields
        self.order: list[str] = []
        self.closing: list[FieldSpec] = []
        opened: set[str] = set()
        done: set[str] = set()
        for outermost in fields:
            if outermost in done:
                continue
            opened.add(outermost)
            path = [(outermost, iter(fields[outermost]))]
            while path:
                name, rest = path[-1]
                for field in rest:
                    inner = field.type.name
                    if inner in opened:
                        self.closing.append(field)
                    elif inner in fields and inner not in done:
                        opened.add(inner)
                        path.append((inner, iter(fields[inner])))
                        break
                else:
                    path.pop()
                    opened.remove(name)
                    done.add(name)
                    self.order.append(name)


@dataclass(frozen=True, eq=False)
class Directory:
    """The messages of one directory, in the order of the files' names.

    ``whole`` is true if all files in the directory were read. In this case, a message that is not
    found is really missing.
    """

    messages: tuple[CheckedMessage, ...]
    whole: bool

    def pairs(self) -> Iterator[tuple[CheckedMessage, CheckedMessage]]:
        """Yield each request with its response, if both are present and could be read."""
        readable = [
            each_message
            for each_message in self.messages
            if each_message.readable and each_message.spec.api_key is not None
        ]
        responses = {
            message.spec.api_key: message
            for message in readable
            if message.spec.type is MessageType.RESPONSE
        }
        for message in readable:
            if message.spec.type is MessageType.REQUEST and message.spec.api_key in responses:
                yield message, responses[message.spec.api_key]
