"""Everything that is compiled for one message: its classes, and a codec for each version.

Generating code takes one to five milliseconds for each direction, and the reference takes about ten
times as long as the generated code. Code is therefore generated when the reference has taken about
as long as generating the code would take. The total time is then at most twice the best possible
time, and a process that decodes a single message does not wait.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from flexwire.arguments import to_bytes
from flexwire.codec.decoder_source import emit_decoder
from flexwire.codec.encoder_source import emit_encoder
from flexwire.codec.mappings import from_plain, to_plain
from flexwire.codec.runtime import Refusal
from flexwire.codec.structs import ClassBuilder, MessageStruct
from flexwire.errors import CodecError, DecodeError, FlexwireError
from flexwire.kernels import load_kernel
from flexwire.schema.message_schemas import key_of
from flexwire.wire.cursor import Reader, Writer
from flexwire.wire.encoding import Encoding

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.schema.message_schemas import Key, MessageSchemas
    from flexwire.schema.resolve import Fields
    from flexwire.wire.schema import Schema

    Functions = tuple[Callable[[Any], Any], Callable[[Any], bytes]]

PAYS = 2_000
"""Above this amount of work (in bytes), generated code saves more time than generating it takes."""

# The cost of a message in addition to its bytes, and the cost of a structure that becomes an
# object.
_EACH = 100


class FirstUseWork:
    """The work that was done without generated code, for each version of a message."""

    def __init__(self) -> None:
        self._done: dict[Key, int] = {}

    def take(self, key: Key, work: int) -> bool:
        """Add work. Return whether to continue with the reference and not use generated code."""
        done = self._done[key] = self._done.get(key, 0) + work + _EACH
        return done < PAYS


def weight_of(message: object) -> int:
    """Return the work of encoding an object, counted up to a number above `PAYS`.

    >>> from flexwire.messages import MetadataRequest
    >>> Topic = MetadataRequest.MetadataRequestTopic
    >>> weight_of(MetadataRequest()), weight_of(MetadataRequest(topics=[Topic(name="orders")]))
    (100, 207)
    >>> weight_of(MetadataRequest(topics=[Topic()] * 1_000_000)) > PAYS
    True
    """
    weight, waiting = 0, [message]
    # The limit also ends the loop for a value that contains itself.
    while waiting and weight <= PAYS:
        value: Any = waiting.pop()
        if isinstance(value, MessageStruct):
            weight += _EACH
            waiting += [getattr(value, name, None) for name in value.__struct_fields__]
        elif isinstance(value, list | tuple):
            weight += len(value)
            waiting += value[:PAYS]
        elif isinstance(value, str | bytes | bytearray | memoryview):
            weight += len(value)
    return weight


def functions_of(definition: Definition, version: int) -> Functions:
    """Return the functions that decode and encode a version, which use kernels if possible.

    These functions return the same results and raise the same errors as the methods of the class.
    The functions are created once for each version, and kept as long as the process runs. Raises
    `UnknownMessageError` for a version that is in no release.
    """
    functions = definition.functions.get(version)
    if functions is None:
        python = python_functions(definition, version)
        functions = definition.functions[version] = (
            _on_kernels(definition, version, python) or python
        )
    return functions


def python_functions(definition: Definition, version: int) -> Functions:
    """Return functions without kernels. These functions also read input that kernels refuse."""
    definition.schema(version)

    def decode(data: Any) -> Any:
        return definition.decode_exactly(data, version)

    def encode(value: Any) -> bytes:
        return definition.encode(value, version)

    return decode, encode


def _on_kernels(definition: Definition, version: int, fallback: Functions) -> Functions | None:
    """Return functions that use kernels, or None if none exist or they do not accept the class.

    The class's own ``decode`` is also replaced by such a function, because finding the version in
    Python takes longer than decoding a small message.
    """
    objects, read = load_kernel("objects"), load_kernel("objects_read")
    write = load_kernel("objects_write")
    if objects is None or read is None or write is None:
        return None
    try:
        program = objects.Program(definition.schema(version), definition.classes)
    except objects.UnsuitableError:
        return None
    root: Any = definition.root
    if definition.method is None:
        definition.method = read.VersionMethod(root.decode)
        root.decode = definition.method.function()
    definition.method.add(version, program)
    return read.decoder(program, fallback[0]), write.encoder(program, fallback[1])


# The errors that generated code may raise for unusual bytes or values.
_OUT_OF_THE_ORDINARY = (
    Refusal,
    struct.error,
    IndexError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
)
_KAFKA = Encoding.KAFKA


class ExecutorsDisagreeError(FlexwireError):
    """Generated code refused bytes that the reference executor accepts: a bug in flexwire."""


class Definition:
    """The classes of one message, and the message's codecs by version."""

    def __init__(
        self,
        served: MessageSchemas,
        base: type[MessageStruct],
        *,
        module: str,
        restore: tuple[Callable[..., MessageStruct], tuple[Any, ...]],
    ) -> None:
        self.served = served
        self.name = served.name
        self._restore = restore
        self.classes = ClassBuilder(served, module).build(base)
        self.root = self.classes[served.name]
        for cls in self.classes.values():
            cls.definition = self
        self.shown: dict[str, frozenset[str]] = {}
        # The functions that `functions_of` has created for each version.
        self.functions: dict[int, Functions] = {}
        self.method: Any = None
        self._decoders: dict[Key, Callable[[bytes, int, int], tuple[Any, int]]] = {}
        self._encoders: dict[Key, Callable[[bytearray, Any], None]] = {}
        # The work of decoding and encoding that was done without generated code.
        self._decoded, self._encoded = FirstUseWork(), FirstUseWork()

    @property
    def fields(self) -> Fields:
        """The specs' description of each field."""
        return self.served.fields

    def restore(self) -> tuple[Callable[..., MessageStruct], tuple[Any, ...]]:
        """Return the function and arguments with which another process finds these classes."""
        return self._restore

    def schema(self, version: int, encoding: Encoding = Encoding.KAFKA) -> Schema:
        """Return the resolved schema of a version, as `MessageSchemas.schema` does."""
        return self.served.schema(version, encoding)

    def _filename(self, version: int, encoding: Encoding, what: str) -> str:
        words = [self.name, f"v{version}", self.served.release]
        words += [encoding.value if encoding is not Encoding.KAFKA else None, what]
        return f"<flexwire {' '.join(word for word in words if word)}>"

    # The code below runs the generated executor.

    def decode_exactly(
        self,
        data: bytes | bytearray | memoryview,
        version: int,
        *,
        lenient: bool = False,
        encoding: Encoding = Encoding.KAFKA,
    ) -> Any:
        """Decode the only message in ``data``. Only the lenient reader accepts additional bytes."""
        if data.__class__ is bytes and encoding is _KAFKA and not lenient:
            # The usual case comes first, because the calls below take as long as decoding a small
            # message.
            decoder = self._decoders.get(version)
            if decoder is not None:
                try:
                    decoded, end = decoder(data, 0, len(data))
                except _OUT_OF_THE_ORDINARY:
                    end = -1
                if end == len(data):
                    return decoded
        raw = to_bytes(data)
        decoded, end = self.decode(raw, version, 0, lenient=lenient, encoding=encoding)
        if end != len(raw) and not lenient:
            raise DecodeError(
                f"the message ends here but {len(raw) - end} bytes follow",
                offset=end,
                message=self.name,
                version=version,
            )
        return decoded

    def decode(
        self,
        data: bytes,
        version: int,
        offset: int,
        *,
        lenient: bool,
        encoding: Encoding = Encoding.KAFKA,
    ) -> tuple[Any, int]:
        """Decode the message at ``offset``. Return the message and the position after its end."""
        if lenient:
            return self.decode_reference(data, version, offset, lenient=True, encoding=encoding)
        key = version if encoding is _KAFKA else (version, encoding)
        decoder = self._decoders.get(key)
        if decoder is None:
            if self._decoded.take(key, len(data) - offset):
                return self.decode_reference(data, version, offset, encoding=encoding)
            decoder = self._decoder(version, encoding)
        try:
            return decoder(data, offset, len(data))
        except _OUT_OF_THE_ORDINARY as error:
            self.decode_reference(data, version, offset, encoding=encoding)
            raise ExecutorsDisagreeError(
                f"{self.name} v{version}, {encoding.value}: "
                "the generated code refused bytes that the reference executor decodes"
            ) from error

    def _decoder(
        self, version: int, encoding: Encoding
    ) -> Callable[[bytes, int, int], tuple[Any, int]]:
        key, schema = key_of(version, encoding), self.schema(version, encoding)
        if key not in self._decoders:
            if encoding is not _KAFKA and schema is self.schema(version):
                self._decoders[key] = self._decoder(version, _KAFKA)
            else:
                name = self._filename(version, encoding, "decode")
                self._decoders[key] = emit_decoder(schema, self.classes, name)
        return self._decoders[key]

    def encode(self, message: Any, version: int, encoding: Encoding = Encoding.KAFKA) -> bytes:
        """Encode a message object."""
        key = version if encoding is _KAFKA else (version, encoding)
        encoder = self._encoders.get(key)
        if encoder is None and self._encoded.take(key, weight_of(message)):
            return self.encode_reference(message, version, encoding)
        try:
            if encoder is None:
                return self.encode_generated(message, version, encoding)
            out = bytearray()
            encoder(out, message)
            return bytes(out)
        except _OUT_OF_THE_ORDINARY:
            # Tuples in place of lists, or mappings in place of structures, are rare but valid. The
            # reference accepts these values.
            return self.encode_reference(message, version, encoding)

    def encode_generated(
        self, message: Any, version: int, encoding: Encoding = Encoding.KAFKA
    ) -> bytes:
        """Encode with generated code only. Generated code refuses unusual values."""
        encoder = self._encoders.get(version if encoding is _KAFKA else (version, encoding))
        if encoder is None:
            encoder = self._encoder(version, encoding)
        out = bytearray()
        encoder(out, message)
        return bytes(out)

    def _encoder(self, version: int, encoding: Encoding) -> Callable[[bytearray, Any], None]:
        key, schema = key_of(version, encoding), self.schema(version, encoding)
        if key not in self._encoders:
            if encoding is not _KAFKA and schema is self.schema(version):
                self._encoders[key] = self._encoder(version, _KAFKA)
            else:
                name = self._filename(version, encoding, "encode")
                self._encoders[key] = emit_encoder(schema, self.classes, name)
        return self._encoders[key]

    # The code below runs the reference executor.

    def read_mapping(
        self, reader: Reader, version: int, encoding: Encoding = Encoding.KAFKA
    ) -> dict[str, Any]:
        """Read a message as a mapping, with the wire types."""
        try:
            return self.schema(version, encoding).read(reader)
        except DecodeError as error:
            raise error.within(self.name, version) from None

    def decode_reference(
        self,
        data: bytes,
        version: int,
        offset: int = 0,
        *,
        lenient: bool = False,
        encoding: Encoding = Encoding.KAFKA,
    ) -> tuple[MessageStruct, int]:
        """Decode with the wire types. This is the reference for `decode`."""
        reader = Reader(data, offset, lenient=lenient)
        plain = self.read_mapping(reader, version, encoding)
        return from_plain(plain, self.schema(version, encoding), self.classes), reader.position

    def encode_reference(
        self, message: Any, version: int, encoding: Encoding = Encoding.KAFKA
    ) -> bytes:
        """Encode with the wire types. This is the reference for `encode`."""
        writer = Writer()
        try:
            schema = self.schema(version, encoding)
            schema.write(writer, to_plain(message, schema))
        except CodecError as error:
            raise error.within(self.name, version) from None
        return bytes(writer.buffer)
