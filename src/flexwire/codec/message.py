"""Message classes: one class for each message, which covers all its versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from flexwire.arguments import to_bytes, to_flag, to_int, to_kind, to_text, to_version
from flexwire.codec.definition import Definition, functions_of
from flexwire.codec.json_form import read_json, write_json
from flexwire.codec.mappings import from_plain, to_plain
from flexwire.codec.structs import MessageStruct
from flexwire.errors import CodecError, DecodeError, JsonFormError, MissingFieldsError
from flexwire.forks import lock_over_forks
from flexwire.schema.catalog import catalog, on_change
from flexwire.schema.message_schemas import SpecSource, schemas_of
from flexwire.schema.spec import MessageSpec
from flexwire.wire.cursor import Writer
from flexwire.wire.encoding import Encoding

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.schema.message_schemas import MessageSchemas


_KAFKA = Encoding.KAFKA


class Message(MessageStruct, gc=False):
    """A Kafka message as an object. The methods that read and write a message require the version.

    >>> header = message("RequestHeader").decode(bytes.fromhex("001200030000000700016100"), 2)
    >>> header.client_id, header.encode(version=1).hex()
    ('a', '0012000300000007000161')
    """

    definition: ClassVar[Definition]
    entry: ClassVar[SpecSource]
    if TYPE_CHECKING:
        # A class that is looked up by name accepts any fields. Only the classes in
        # `flexwire.messages` declare the types of their fields.
        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    @classmethod
    def decode(
        cls,
        data: bytes | bytearray | memoryview,
        version: int,
        *,
        lenient: bool = False,
        encoding: Encoding = Encoding.KAFKA,
    ) -> Self:
        """Decode a message that fills ``data`` exactly.

        ``encoding`` selects an encoding other than Kafka's. Raises `DecodeError` for bytes that are
        not exactly one message. Only the lenient reader ignores bytes after the message. Raises
        `UnknownMessageError` for a version that is in no release.
        """
        # As keys of a dict, True and 2.0 equal 1 and 2. This check takes 9 ns. It is the only check
        # if the version is valid.
        if version.__class__ is not int:
            version = to_version(version)
        definition = cls.definition
        if encoding is _KAFKA and lenient is False:
            functions = definition.functions.get(version)
            if functions is None:
                data = to_bytes(data)
                functions = functions_of(definition, version)
            decoded: Self = functions[0](data)
            return decoded
        exactly: Self = definition.decode_exactly(
            data,
            version,
            lenient=to_flag(lenient, "lenient"),
            encoding=to_kind(encoding, "encoding", Encoding),
        )
        return exactly

    @classmethod
    def decode_prefix(
        cls,
        data: bytes | bytearray | memoryview,
        version: int,
        offset: int = 0,
        *,
        lenient: bool = False,
        encoding: Encoding = Encoding.KAFKA,
    ) -> tuple[Self, int]:
        """Decode the message at ``offset``. Return the message and the offset after its end."""
        raw, version = to_bytes(data), to_version(version)
        offset = to_int(offset, "offset")
        if not 0 <= offset <= len(raw):
            raise DecodeError(
                f"expected an offset from 0 to {len(raw)}, got {offset}",
                message=cls.entry.name,
                version=version,
            )
        decoded: tuple[Self, int] = cls.definition.decode(
            raw,
            version,
            offset,
            lenient=to_flag(lenient, "lenient"),
            encoding=to_kind(encoding, "encoding", Encoding),
        )
        return decoded

    def encode(self, version: int, *, encoding: Encoding = Encoding.KAFKA) -> bytes:
        """Encode as ``version``. Raises `EncodeError` for a value that this version cannot contain.

        With a different ``encoding``, the bytes of the same object differ and may contain fewer
        fields.
        """
        if version.__class__ is not int:
            version = to_version(version)
        definition = self.definition
        if encoding is not _KAFKA:
            return definition.encode(self, version, to_kind(encoding, "encoding", Encoding))
        functions = definition.functions.get(version) or functions_of(definition, version)
        return functions[1](self)

    @classmethod
    def decoder(cls, version: int) -> Callable[[bytes], Self]:
        """Return the fastest function that decodes many messages of one version.

        The function returns the same results and raises the same errors as ``decode``.
        """
        return functions_of(cls.definition, to_version(version))[0]

    @classmethod
    def encoder(cls, version: int) -> Callable[[Self], bytes]:
        """Return the fastest function that encodes many messages of one version.

        The function returns the same results and raises the same errors as ``encode``.
        """
        return functions_of(cls.definition, to_version(version))[1]

    def to_json(self, version: int) -> dict[str, Any]:
        """Return Kafka's JSON form, with records and unknown tagged fields added.

        Raises `EncodeError` for values that the version cannot contain. A message that only the
        lenient reader accepts also has a JSON form, although it cannot be encoded.
        """
        version = to_version(version)
        schema = self.definition.schema(version)
        try:
            plain = to_plain(self, schema)
            # A value that even a lenient writer refuses has no JSON form. The wire types decide
            # this.
            schema.write(Writer(lenient=True), plain)
            return write_json(plain, schema)
        except CodecError as error:
            raise error.within(self.entry.name, version) from None

    @classmethod
    def from_json(cls, obj: Any, version: int, *, defaults: bool = False) -> Self:
        """Return the message in a JSON form. Its fields can have names from any release.

        Every untagged field of the version must be present. With ``defaults``, missing fields get
        the defaults in their spec. Raises `JsonFormError` with the path of an invalid value, and
        `MissingFieldsError` for missing fields.
        """
        version = to_version(version)
        defaults = to_flag(defaults, "defaults")
        schema = cls.definition.schema(version)
        try:
            try:
                plain = read_json(obj, schema, defaults=defaults)
            except JsonFormError:
                # Most forms use the names of this release, so other names are looked up only here.
                names = cls.definition.served.former_names(version)
                if not names:
                    raise
                plain = read_json(obj, schema, names, defaults=defaults)
        except CodecError as error:
            if isinstance(error, MissingFieldsError):
                error.add_note("pass defaults=True to fill in the spec's defaults")
            raise error.within(cls.entry.name, version) from None
        decoded = from_plain(plain, schema, cls.definition.classes)
        assert isinstance(decoded, cls)  # noqa: S101 - the definition belongs to this class
        return decoded


def message(name: str, release: str | None = None) -> type[Message]:
    """Return the class of a bundled message, or of the message in one release of Kafka.

    Every call returns the same class. ``release`` is a name that `Catalog.release` accepts, such as
    "4.0" for the newest 4.0. Raises `UnknownMessageError`, which suggests the most similar names.
    """
    name = to_text(name, "name")
    if release is not None:
        release = catalog().release(to_text(release, "release"))
    key = (name, release)
    with _DEFINING:
        if key not in _DEFINED:
            module = "flexwire.messages" if release is None else f"flexwire.messages@{release}"
            served = schemas_of(name, release)
            _DEFINED[key] = _define(served, module, (_restore, (name, release)))
        return _DEFINED[key]


def message_of(spec: MessageSpec) -> type[Message]:
    """Return the class for your own message spec. Equal specs share a class.

    Raises `SpecError` for a spec from which no class can be created.
    """
    spec = to_kind(spec, "spec", MessageSpec)
    with _DEFINING:
        if spec not in _OWN:
            _OWN[spec] = _define(schemas_of(spec), "flexwire.messages@own", (_restore_own, (spec,)))
        return _OWN[spec]


# If a spec had two classes, objects of the two classes would not be equal and could not be pickled.
_DEFINING = lock_over_forks()
_DEFINED: dict[tuple[str, str | None], type[Message]] = {}
_OWN: dict[MessageSpec, type[Message]] = {}


on_change(_DEFINED.clear)


def _define(
    served: MessageSchemas,
    module: str,
    restore: tuple[Callable[..., MessageStruct], tuple[Any, ...]],
) -> type[Message]:
    definition = Definition(served, Message, module=module, restore=restore)
    root = definition.root
    assert issubclass(root, Message)  # noqa: S101 - Message is the base class here
    root.entry = served.entry
    return root


def _restore(name: str, release: str | None, struct: str, values: tuple[Any, ...]) -> MessageStruct:
    return message(name, release).definition.classes[struct](*values)


def _restore_own(spec: MessageSpec, struct: str, values: tuple[Any, ...]) -> MessageStruct:
    return message_of(spec).definition.classes[struct](*values)
