"""The Python classes of a message: one for the message, and one for each of its structures.

A class contains the fields of every version. A field that a version lacks keeps its default.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

from flexwire.errors import ArgumentError, SpecError, short
from flexwire.schema.merge import identifying
from flexwire.schema.resolve import MOST_NESTED, parse_default
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from flexwire.schema.message_schemas import MessageSchemas
    from flexwire.schema.resolve import Fields
    from flexwire.schema.spec import FieldSpec, FieldType


# An inner structure is created together with the structure around it. Specs may double the number
# of structures at each level.
_MOST_BY_DEFAULT = 10_000


class Origin(Protocol):
    """The definition of a class, through which another process finds the class."""

    classes: dict[str, type[MessageStruct]]
    # For each structure, the fields that `repr` never leaves out. The first call of `repr` fills
    # this mapping.
    shown: dict[str, frozenset[str]]

    @property
    def fields(self) -> Fields:
        """The specs' description of each field, by structure and attribute."""

    def restore(self) -> tuple[Callable[..., MessageStruct], tuple[Any, ...]]:
        """Return a function and its first arguments.

        The name and the values of a structure are the remaining arguments.
        """


class MessageStruct(msgspec.Struct, gc=False, kw_only=True):
    """A structure of a message. Fields are attributes. Structures with equal values are equal.

    ``unknown_tagged_fields`` maps tags that are not in its spec to their bytes. After lenient
    reading, a key may be above 2**31 - 1: see `flexwire.wire.tags`. Objects can be pickled, even
    objects with a release's layout and objects of your own specs. Evaluating the result of `repr`
    creates an equal object. `repr` leaves out defaults, except for fields that are in every
    version and have no default in their spec, because partition 0 is just one of many partitions.
    """

    definition: ClassVar[Origin]
    if TYPE_CHECKING:
        # This field is the last field of every class.
        unknown_tagged_fields: dict[int, bytes] = msgspec.field(default_factory=dict)

        # A class that is looked up by name accepts any fields. Only the classes in
        # `flexwire.messages` declare the types of their fields.
        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    @classmethod
    def of(cls, /, **fields: Any) -> Self:
        """Create an object from simple values.

        At any depth, structures may be mappings or objects. The names are Python attribute names.
        The class itself also accepts and writes mappings, but does not convert them, so an object
        with mappings does not equal the decoded object. Raises `ArgumentError` with the path of a
        name that is not a field, and the most similar name.

        >>> from flexwire.codec import message
        >>> message("MetadataRequest").of(topics=[{"name": "orders"}]).topics[0].name
        'orders'
        """
        message: Self = _object_of(cls, fields, "")
        return message

    def replace(self, **changes: Any) -> Self:
        """Return a copy in which the named fields have new values.

        Values that are not replaced are shared with the original object, as with `copy.copy`.
        `copy.deepcopy` shares nothing. Raises `TypeError` for a name that is not a field.

        >>> from flexwire.codec import message
        >>> ping = message("RequestHeader")(correlation_id=7, client_id="ping")
        >>> ping.replace(correlation_id=8)
        RequestHeader(request_api_key=0, request_api_version=0, correlation_id=8, client_id='ping')
        """
        return msgspec.structs.replace(self, **changes)

    @recursive_repr()
    def __repr__(self) -> str:
        cls = type(self)
        plain, always = cls(), _always_shown(cls)
        # If a field's attribute was deleted, there is no value to show.
        fields = (name for name in self.__struct_fields__ if hasattr(self, name))
        values = ((name, getattr(self, name)) for name in fields)
        shown = (
            f"{name}={value!r}"
            for name, value in values
            if name in always or value != getattr(plain, name)
        )
        return f"{cls.__qualname__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        restore, arguments = type(self).definition.restore()
        values = tuple(getattr(self, name) for name in self.__struct_fields__)
        return restore, (*arguments, type(self).__name__, values)


def structs_at(struct: Any, path: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the structures at a path of attributes, each with the structures that enclose it.

    If a structure or array on the path is null, nothing is yielded.
    """
    if not path:
        yield (struct,)
        return
    value = getattr(struct, path[0])
    for inner in value if isinstance(value, list) else [value]:
        if inner is not None:
            for found in structs_at(inner, path[1:]):
                yield (struct, *found)


def _object_of(cls: type[MessageStruct], fields: Mapping[Any, Any], path: str) -> Any:
    """Create an object of a class from mappings at any depth. ``path`` is used in errors."""
    attributes = cls.definition.fields[cls.__name__]
    values = {}
    for name, value in fields.items():
        if name not in attributes and name != UNKNOWN_TAGGED_FIELDS:
            near = difflib.get_close_matches(str(name), attributes, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            where = f" at {path}" if path else ""
            raise ArgumentError(f"{cls.__qualname__}{where} has no field {short(name)}{hint}")
        here = f"{path}.{name}" if path else name
        values[name] = (
            _field_value(cls, attributes[name][0][0].type, value, here)
            if name in attributes
            else value
        )
    return cls(**values)


def _field_value(cls: type[MessageStruct], kind: FieldType, value: Any, path: str) -> Any:
    """Create the value of a field. Only mappings and lists of mappings are converted."""
    if not kind.is_array:
        return _structure(cls, kind, value, path)
    if not isinstance(value, list | tuple):
        return value
    return [_structure(cls, kind, item, f"{path}[{at}]") for at, item in enumerate(value)]


def _structure(cls: type[MessageStruct], kind: FieldType, value: Any, path: str) -> Any:
    if kind.is_struct and isinstance(value, Mapping):
        return _object_of(cls.definition.classes[kind.name], value, path)
    return value


def _always_shown(cls: type[MessageStruct]) -> frozenset[str]:
    """Return the fields that `repr` always shows, whatever their values are."""
    shown = cls.definition.shown
    if cls.__name__ not in shown:
        shown[cls.__name__] = identifying(cls.definition.fields[cls.__name__])
    return shown[cls.__name__]


class ClassBuilder:
    """Build the classes of one message, with the fields of all versions.

    The defaults and the field order of the newest spec are used.
    """

    def __init__(self, served: MessageSchemas, module: str) -> None:
        self.module = module
        self.message_name = served.name
        self.source = served.specs[0][0].source or served.name
        self.fields = served.fields
        self.classes: dict[str, type[MessageStruct]] = {}
        # The number of objects in a structure's default object, including the object itself.
        self.sizes: dict[str, int] = {}

    def build(self, base: type[MessageStruct]) -> dict[str, type[MessageStruct]]:
        """Return the classes by structure name. The message's class extends ``base``."""
        root = self._class(self.message_name, base, ())
        for name in self.fields:
            self._class(name, MessageStruct, ())
        for name, cls in self.classes.items():
            if cls is not root:
                setattr(root, name, cls)
        return self.classes

    def _class(
        self, name: str, base: type[MessageStruct], open_: tuple[str, ...]
    ) -> type[MessageStruct]:
        if name in self.classes:
            return self.classes[name]
        if name in open_:
            raise SpecError(f"structure {name} contains itself", source=self.source)
        if len(open_) >= MOST_NESTED:
            raise SpecError(f"more than {MOST_NESTED} nested structures", source=self.source)
        self.sizes[name] = 1
        newest = [mentions[0][0] for mentions in self.fields[name].values()]
        fields = [self._field(name, field, open_) for field in newest]
        fields.append((UNKNOWN_TAGGED_FIELDS, Any, {}))
        cls: type[Any] = msgspec.defstruct(
            name, fields, bases=(base,), module=self.module, gc=False
        )
        if name != self.message_name:
            cls.__qualname__ = f"{self.message_name}.{name}"
        self.classes[name] = cls
        return cls

    def _field(self, struct: str, field: FieldSpec, open_: tuple[str, ...]) -> tuple[str, Any, Any]:
        default = parse_default(field, self.source)
        if default == () and field.type.is_array:
            return (field.attribute, Any, [])
        if field.type.is_struct:
            if field.type.name not in self.fields:
                raise SpecError(f"structure {field.type.name} is never defined", source=self.source)
            inner = self._class(field.type.name, MessageStruct, (*open_, struct))
            if default is not None:
                self.sizes[struct] += self.sizes[field.type.name]
                if self.sizes[struct] > _MOST_BY_DEFAULT:
                    raise SpecError(
                        f"a default {struct} contains more than {_MOST_BY_DEFAULT} structures",
                        source=self.source,
                    )
                return (field.attribute, Any, msgspec.field(default_factory=inner))
        return (field.attribute, Any, default)
