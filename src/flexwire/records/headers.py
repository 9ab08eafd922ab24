"""KIP-82's `Headers`: typed record headers, in the document's messages or in any batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from flexwire.arguments import refuse, to_buffer, to_kind, to_list, to_text
from flexwire.errors import DecodeError, EncodeError, short
from flexwire.records.typed import PlainValue, Typed, TypedDialect, ValueType
from flexwire.wire.cursor import Reader, Writer
from flexwire.wire.types import INT32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_PAIR = 2
_PairValue: TypeAlias = "bytes | bytearray | memoryview | str | None"
Pairs: TypeAlias = "Iterable[tuple[str | bytes, _PairValue]] | Mapping[str, _PairValue]"


class Headers:
    """Typed record headers: an ordered multimap, because "a key can occur multiple times".

    ``header_bytes`` are read at the first call that needs their content. This call raises
    `DecodeError` if the bytes are not headers. `as_bytes` does not raise this error. The put
    methods append a header. They raise `EncodeError` for a value that the type cannot represent,
    and for a key that cannot be written as UTF-8. Two objects are equal if they have the same keys
    and values in the same order.

    >>> headers = Headers()
    >>> headers.put_long("user", 7)
    >>> headers.put_string("tag", "new")
    >>> headers.put_string("tag", "paid")
    >>> headers.keys(), headers.get("tag"), headers.get_typed("user")
    (['user', 'tag'], ['new', 'paid'], [Typed('long', 7)])
    >>> Headers(headers.as_bytes()) == headers
    True
    """

    def __init__(
        self,
        header_bytes: bytes | bytearray | memoryview = b"",
        *,
        dialect: TypedDialect = TypedDialect.DOCUMENT,
    ) -> None:
        self.dialect = to_kind(dialect, "dialect", TypedDialect)
        self._bytes = bytearray(to_buffer(header_bytes, "header_bytes"))
        self._items: list[tuple[str, Typed]] | None = None

    def put(self, key: str, value: Typed) -> None:
        """Append a header with the value's own type. Only this method can add a null."""
        items = self._read()
        to_kind(value, "value", Typed)
        try:
            self._bytes += _encode_header(key, value, self.dialect)
        except EncodeError as error:
            raise _refused(key, error) from None
        items.append((key, value))

    def _put(self, key: str, type_: ValueType, value: PlainValue | bytearray | memoryview) -> None:
        try:
            typed = Typed(type_, value)
        except EncodeError as error:
            raise _refused(key, error) from None
        self.put(key, typed)

    def put_boolean(self, key: str, value: bool) -> None:  # noqa: FBT001 - this is the document's signature
        """Append a boolean."""
        self._put(key, ValueType.BOOLEAN, value)

    def put_byte(self, key: str, value: int) -> None:
        """Append a byte, from -128 to 127."""
        self._put(key, ValueType.BYTE, value)

    def put_char(self, key: str, value: str) -> None:
        """Append a char, which is one UTF-16 code unit."""
        self._put(key, ValueType.CHAR, value)

    def put_short(self, key: str, value: int) -> None:
        """Append a short, which has 16 bits."""
        self._put(key, ValueType.SHORT, value)

    def put_integer(self, key: str, value: int) -> None:
        """Append an int, which has 32 bits."""
        self._put(key, ValueType.INT, value)

    def put_long(self, key: str, value: int) -> None:
        """Append a long, which has 64 bits."""
        self._put(key, ValueType.LONG, value)

    def put_float(self, key: str, value: float) -> None:
        """Append a float, which is rounded to 32 bits."""
        self._put(key, ValueType.FLOAT, value)

    def put_double(self, key: str, value: float) -> None:
        """Append a double."""
        self._put(key, ValueType.DOUBLE, value)

    def put_string(self, key: str, value: str) -> None:
        """Append a string."""
        self._put(key, ValueType.STRING, value)

    def put_bytes(self, key: str, value: bytes | bytearray | memoryview) -> None:
        """Append a byte[]."""
        self._put(key, ValueType.BYTES, value)

    def put_object(self, key: str, value: Any, serializer: Callable[[Any], bytes]) -> None:
        r"""Append a byte[] that a serializer makes from any object.

        "Each headers value will be custom serialisable by the interceptors/plugins that use the
        header". Errors of the serializer are raised unchanged.

        >>> headers = Headers()
        >>> headers.put_object("at", (3, 4), lambda place: bytes(place))
        >>> headers.get_typed("at"), headers.get_objects("at", tuple)
        ([Typed('byte[]', b'\x03\x04')], [(3, 4)])
        """
        if not callable(serializer):
            raise refuse("serializer", "a callable", serializer)
        self.put_bytes(key, serializer(value))

    def get_objects(self, key: str, deserializer: Callable[[bytes], Any]) -> list[Any]:
        """Return the byte[] values of a key, each passed through a deserializer, in order.

        Raises `DecodeError` if a value of the key is not a byte[].
        """
        if not callable(deserializer):
            raise refuse("deserializer", "a callable", deserializer)
        values = self.get_typed(key)
        for typed in values:
            if typed.type is not ValueType.BYTES:
                raise DecodeError(f"expected a byte[], got {typed}", path=key, message="Headers")
        return [deserializer(typed.data) for typed in values]

    def get(self, key: str) -> list[PlainValue]:
        """Return the plain values of a key, in order. The result is empty if the key is missing."""
        return [typed.value for typed in self.get_typed(key)]

    def get_typed(self, key: str) -> list[Typed]:
        """Return the values of a key with their types, in order."""
        to_text(key, "key")
        return [typed for name, typed in self._read() if name == key]

    def keys(self) -> list[str]:
        """Return each key once, in the order in which the keys first occur."""
        return list(dict.fromkeys(name for name, _ in self._read()))

    def as_bytes(self) -> bytes:
        """Return the bytes of the headers in a KIP-82 message.

        Bytes that were not read are unchanged.
        """
        return bytes(self._bytes)

    def to_pairs(self) -> list[tuple[str, bytes]]:
        r"""Return the pairs that Kafka's clients accept as headers, and that `typed_headers` reads.

        >>> headers = Headers()
        >>> headers.put_short("retries", 5)
        >>> headers.to_pairs()
        [('retries', b'\x03\x00\x05')]
        """
        return [(key, typed.encode(self.dialect)) for key, typed in self]

    def _read(self) -> list[tuple[str, Typed]]:
        if self._items is None:
            self._items = _decode_headers(bytes(self._bytes), self.dialect)
        return self._items

    def __contains__(self, item: object) -> bool:
        """Return whether the headers contain a key, or a pair of a key and a `Typed`."""
        if isinstance(item, str):
            return any(name == item for name, _ in self._read())
        if not isinstance(item, tuple):
            raise refuse("in", "a key, or a pair of a key and a Typed", item)
        return item in self._read()

    def __iter__(self) -> Iterator[tuple[str, Typed]]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Headers) and self._read() == other._read()

    # Headers that are equal now may differ after another header is added.
    __hash__ = None  # type: ignore[assignment]  # Python's own way to say so

    def __repr__(self) -> str:
        return f"<Headers of {len(self._bytes)} bytes>"


def typed_headers(pairs: Pairs | None, *, dialect: TypedDialect = TypedDialect.DOCUMENT) -> Headers:
    """Read typed values from record headers of released Kafka versions.

    ``pairs`` is the list of headers from a client or from Spark (keys as str or bytes with values
    as bytes, in order), a `Record` of flexwire, or None if there are no headers. Raises
    `DecodeError`, with the key, for a value that is not a TypedValue, which includes null.

    >>> list(typed_headers([("user", bytes.fromhex("05 0000000000000007"))]))
    [('user', Typed('long', 7))]
    """
    headers = Headers(dialect=dialect)
    for index, (raw_key, raw) in enumerate(_pairs(pairs)):
        key = _decode_key(index, raw_key)
        if not isinstance(raw, bytes | bytearray | memoryview):
            reason = f"{short(key)}: expected the bytes of a TypedValue, got {short(raw)}"
            raise DecodeError(reason, path=f"[{index}].value", message="Headers")
        headers.put(key, _decode_value(index, key, raw, 0, dialect))
    return headers


def _pairs(given: Pairs | None) -> list[tuple[Any, Any]]:
    if given is None:
        return []
    pairs = to_list(
        given.items() if isinstance(given, Mapping) else given,
        "pairs",
        "pairs of a key and a value",
    )
    for index, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != _PAIR:
            raise refuse(f"pairs[{index}]", "a key and a value", pair)
        if not isinstance(pair[0], str | bytes | bytearray):
            raise refuse(f"pairs[{index}]", "a str or bytes for the key", pair[0])
    return pairs


def _encode_header(key: str, value: Typed, dialect: TypedDialect) -> bytes:
    if not isinstance(key, str):
        raise EncodeError(f"expected a str for the key, got {short(key)}")
    try:
        raw_key = key.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"the key cannot be encoded as UTF-8: {error.reason}") from None
    writer = Writer()
    for part in (raw_key, value.encode(dialect)):
        INT32.write(writer, len(part))
        writer.write(part)
    return bytes(writer.buffer)


def _refused(key: str, error: EncodeError) -> EncodeError:
    return EncodeError(error.reason, path=short(key), message="Headers")


def _decode_headers(data: bytes, dialect: TypedDialect) -> list[tuple[str, Typed]]:
    # No count precedes the headers. The document lists each length in a message as a separate
    # field, and none of these fields is a count.
    reader = Reader(data)
    items: list[tuple[str, Typed]] = []
    while reader.remaining:
        index = len(items)
        key_start, raw_key = _read_sized(reader, f"[{index}].key")
        value_start, raw_value = _read_sized(reader, f"[{index}].value")
        key = _decode_key(index, raw_key, key_start)
        items.append((key, _decode_value(index, key, raw_value, value_start, dialect)))
    return items


def _read_sized(reader: Reader, path: str) -> tuple[int, bytes]:
    """Read an int32 length, and then that many bytes. Also return where the bytes begin."""
    reader.path = [path]
    try:
        length = INT32.read(reader)
        if not 0 <= length <= reader.remaining:
            reason = f"length {length} declared but {reader.remaining} bytes remain"
            raise reader.error(reason, reader.position - 4)
    except DecodeError as error:
        error.message = "Headers"
        raise
    return reader.position, reader.take(length)


def _decode_key(index: int, raw: str | bytes, start: int = 0) -> str:
    try:
        return raw if isinstance(raw, str) else raw.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(
            f"{short(raw)} is not UTF-8: {error.reason}",
            path=f"[{index}].key",
            offset=start + error.start,
            message="Headers",
        ) from None


def _decode_value(
    index: int, key: str, raw: bytes | bytearray | memoryview, start: int, dialect: TypedDialect
) -> Typed:
    try:
        return Typed.decode(raw, dialect)
    except DecodeError as error:
        raise DecodeError(
            f"{short(key)}: {error.reason}",
            path=f"[{index}].value",
            offset=start + (error.offset or 0),
            message="Headers",
        ) from None
