"""The reference executor for rows. It raises the errors for rows that the kernels refuse.

A row is a mapping, in Arrow's form. A row's plain value has the form that the wire types use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from flexwire.columnar import layout as L  # noqa: N812 - a short prefix for about ten names
from flexwire.columnar import program
from flexwire.columnar.program import address
from flexwire.columnar.types import in_column, raw_tagged_fields, validate
from flexwire.errors import CodecError, DecodeError, FlexwireError, UnknownMessageError
from flexwire.kernels import load_kernel
from flexwire.schema.message_schemas import schemas_of
from flexwire.wire.cursor import Reader, Writer
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Presence, Schema
from flexwire.wire.types import ArrayType, Type, Uuid
from flexwire.wire.varint import parse_uuid_text, uuid_text

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterator, Mapping

    from flexwire.columnar.arrays import NumpyArray
    from flexwire.columnar.program import ColumnProgram
    from flexwire.schema.message_schemas import MessageLike
    from flexwire.wire.encoding import Encoding

    # A function that is called with the address of a run's words.
    Kernel = Callable[[int], int]


def read_row(schema: Schema, data: bytes, *, absent_are_null: bool) -> dict[str, Any]:
    """Return the only message in ``data`` as a row. Raises `DecodeError`."""
    reader = Reader(data)
    plain = schema.read(reader)
    if reader.remaining:
        raise DecodeError(
            f"the message ends here but {reader.remaining} bytes follow", offset=reader.position
        )
    return _row(plain, schema, absent_are_null=absent_are_null)


def _row(plain: Mapping[str, Any], schema: Schema, *, absent_are_null: bool) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for field in schema.fields:
        if field.attribute in plain:
            value = plain[field.attribute]
        elif field.presence is Presence.ABSENT and absent_are_null:
            value = None
        else:
            value = field.default
        row[field.attribute] = _value(value, field.type, absent_are_null=absent_are_null)
    unknown = plain.get(UNKNOWN_TAGGED_FIELDS, {})
    row[UNKNOWN_TAGGED_FIELDS] = raw_tagged_fields(unknown)
    return row


def _value(value: Any, kind: Type, *, absent_are_null: bool) -> Any:
    match kind:
        case _ if value is None:
            return None
        case ArrayType():
            return [_value(item, kind.element, absent_are_null=absent_are_null) for item in value]
        case NullableStruct():
            return _row(value, kind.schema, absent_are_null=absent_are_null)
        case Schema():
            return _row(value, kind, absent_are_null=absent_are_null)
    return in_column(value)


def write_row(schema: Schema, row: Mapping[str, Any]) -> bytes:
    """Write a row as a message. Raises `EncodeError`.

    Null means None. If the version does not have the field, null means that there is no value to
    write.
    """
    writer = Writer()
    schema.write(writer, _plain(writer, row, schema))
    return bytes(writer.buffer)


def _plain(writer: Writer, row: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    fields = schema.by_attribute
    plain: dict[str, Any] = {}
    for name, value in row.items():
        field = fields.get(name)
        if name == UNKNOWN_TAGGED_FIELDS:
            plain[name] = _unknown(writer, value or [])
        elif field is None:
            plain |= {} if value is None else {name: value}
        elif field.presence is not Presence.ABSENT or not (value is None or field.ignorable):
            writer.path.append(field.json_name)
            plain[name] = _plain_value(writer, value, field.type)
            writer.path.pop()
    return plain


def _unknown(writer: Writer, items: list[Any]) -> dict[Any, Any]:
    unknown: dict[Any, Any] = {}
    for item in items:
        tag, data = (None, None) if item is None else (item["tag"], item["data"])
        if tag in unknown:
            raise writer.error(f"unknown tag {tag} repeats")
        unknown[tag] = data
    return unknown


def _plain_value(writer: Writer, value: Any, kind: Type) -> Any:
    match kind:
        case _ if value is None:
            return None
        case Uuid():
            return _uuid(writer, value)
        case ArrayType():
            return [_plain_item(writer, at, item, kind.element) for at, item in enumerate(value)]
        case NullableStruct():
            return _plain(writer, value, kind.schema)
        case Schema():
            return _plain(writer, value, kind)
    return value


def _plain_item(writer: Writer, at: int, item: Any, kind: Type) -> Any:
    writer.path.append(f"[{at}]")
    plain = _plain_value(writer, item, kind)
    writer.path.pop()
    return plain


def _uuid(writer: Writer, text: str) -> uuid.UUID:
    try:
        value = parse_uuid_text(text)
    except ValueError:
        value = None
    if value is None or uuid_text(value) != text:
        raise writer.error(f"{text!r} is not a uuid: write 22 characters of base64url")
    return value


Mode = Literal["FAILFAST", "PERMISSIVE"]
# The reason why a row is null, the path of the field with its JSON names, and the byte position in
# the row's message, which exists only for decoding. If the row has no error, the struct is null.
ERROR = pa.struct([("reason", pa.string()), ("path", pa.string()), ("offset", pa.int64())])
REFUSED, TOO_LARGE = 1, 2


class PermissiveResult(NamedTuple):
    """The values of all rows, and the errors of the rows that have one."""

    values: Any
    errors: Any


class RowVersions:
    """The version of each row, for decoding or encoding.

    The object holds one version for all rows, or an index into ``each`` for every row.
    """

    def __init__(self, versions: Any, rows: int) -> None:
        self.each: list[int | None]
        self.which: NumpyArray | None = None
        if isinstance(versions, int | np.integer):
            self.each = [int(versions)]
            return
        array = pa.chunked_array([versions]) if isinstance(versions, pa.Array) else versions
        if not isinstance(array, pa.ChunkedArray):
            array = pa.chunked_array([pa.array(versions)])
        if len(array) != rows:
            raise ValueError(f"{rows} rows but {len(array)} versions")
        encoded = pa.concat_arrays(array.cast(pa.int64()).chunks or [pa.array([], pa.int64())])
        encoded = encoded.dictionary_encode("encode")
        self.each = encoded.dictionary.to_pylist()
        self.which = encoded.indices.to_numpy().astype(np.int32)

    def slice(self, begin: int, rows: int) -> RowVersions:
        """Return the versions of some rows."""
        part = RowVersions(0, rows)
        part.each = self.each
        part.which = None if self.which is None else self.which[begin : begin + rows]
        return part

    def of(self, row: int) -> int | None:
        """Return the version of a row."""
        return self.each[0 if self.which is None else self.which[row]]


class MessageRows(ABC):
    """The rows of an array that is converted. ``refused`` marks the rows that a kernel refused.

    ``kind`` is the type of the result. ``room`` and ``name`` select the kernel.
    """

    kind: pa.DataType
    room: str
    name: str

    def __init__(
        self, message: MessageLike, data: pa.Array, versions: RowVersions, encoding: Encoding
    ) -> None:
        self.served = schemas_of(message)
        self.data = data
        self.versions = versions
        self.encoding = encoding
        self.refused = np.zeros(len(data), np.uint8)
        valid_versions: set[int] = set()
        for version in versions.each:
            with suppress(UnknownMessageError):
                valid_versions.add(self._checked_version(version))
        self.valid_versions = tuple(sorted(valid_versions))

    def _checked_version(self, version: int | None) -> int:
        """Return a version if the message has it. Otherwise raise `UnknownMessageError`."""
        if version is None:
            raise UnknownMessageError("no version was given")
        self.served.schema(version, self.encoding)
        return version

    @abstractmethod
    def run(self, kernel: Kernel, first: int) -> tuple[pa.Array, int]:
        """Run the kernel for the rows from ``first`` on, as many as fit into one array.

        Returns the array, and the row at which to continue.
        """

    @abstractmethod
    def reference(self, schema: Schema, row: int) -> Any:
        """Return one row from the reference executor, or raise the row's error."""

    def chunks(self, mode: Mode) -> Iterator[PermissiveResult]:
        """Yield all rows in arrays. In FAILFAST mode, raise the first error."""
        compiled, rows, first = self._kernel(), len(self.data), 0
        while first < rows:
            if compiled is None:
                self.refused[:] = np.asarray(self.data.is_valid())
                values, after = pa.nulls(rows, self.kind), rows
            else:
                values, after = self.run(compiled, first)
            yield self._judge(values, first, mode)
            first = after

    def _kernel(self) -> Kernel | None:
        room = load_kernel(self.room)
        return None if room is None else getattr(room, self.name)

    def _judge(self, values: pa.Array, first: int, mode: Mode) -> PermissiveResult:
        """Insert the reference executor's results or errors for rows that the kernel refused."""
        these = self.refused[first : first + len(values)]
        # Finding the maximum takes a tenth as long as finding all marked rows.
        refused = np.flatnonzero(these).tolist() if these.max(initial=0) else []
        if refused:
            # Kernels check each offset before using it, but the code below does not.
            validate(self.data, full=True)
        done: dict[int, Any] = {}
        wrong: dict[int, FlexwireError] = {}
        for index in refused:
            try:
                done[index] = self._one(first + index)
            except FlexwireError as error:
                if mode == "FAILFAST":
                    error.add_note(f"in row {first + index}")
                    raise
                wrong[index] = error
        rows = 0 if mode == "FAILFAST" else len(values)
        return PermissiveResult(_put(values, done), _errors(wrong, rows))

    def _one(self, row: int) -> Any:
        version = self._checked_version(self.versions.of(row))
        try:
            if self.refused[row] == TOO_LARGE:
                _refuse_too_large()
            return self.reference(self.served.schema(version, self.encoding), row)
        except CodecError as error:
            raise error.within(self.served.name, version) from None


class KernelRun:
    """A run of a kernel for rows that begin at ``first``: its words, and the memory for them."""

    def __init__(self, rows: MessageRows, program: ColumnProgram, first: int) -> None:
        versions = rows.versions
        entries = np.array([program.entry(version) for version in versions.each], np.int64)
        stack = np.zeros(program.stack, np.int64)
        self._memory = entries, stack, versions.which, rows.refused
        self._words = np.zeros(L.CALL // 8, np.int64)
        self.put(
            {
                L.C_REFUSE: program.refuse,
                L.C_ENTRIES: address(entries),
                L.C_WHICH: 0 if versions.which is None else address(versions.which),
                L.C_STACK: address(stack),
                L.C_FIRST: first,
                L.C_ROW: first,
                L.C_ROWS: len(rows.data),
                L.C_REFUSED: address(rows.refused),
            }
        )

    def put(self, words: dict[int, int]) -> None:
        """Set words in the run."""
        for word, value in words.items():
            self._words[word // 8] = value

    def get(self, word: int) -> int:
        """Return a word of the run, which the kernel may have set."""
        return int(self._words[word // 8])

    def go(self, kernel: Kernel) -> int:
        """Start or continue the kernel. Return the reason why it stopped, or 0 at the end."""
        return kernel(address(self._words))


def _refuse_too_large() -> NoReturn:
    raise CodecError(f"a column of the result exceeds {program.MOST} bytes or elements")


def gather(
    data: Any, rows: Callable[[pa.Array, int], MessageRows], kind: pa.DataType, mode: Mode
) -> Any:
    """Convert an array to an array, or a chunked array to a chunked array."""
    results: list[PermissiveResult] = []
    begin = 0
    for chunk in data.chunks if isinstance(data, pa.ChunkedArray) else [data]:
        validate(chunk)
        results += rows(chunk, begin).chunks(mode)
        begin += len(chunk)
    if isinstance(data, pa.ChunkedArray):
        values = pa.chunked_array([result.values for result in results], kind)
        errors = pa.chunked_array([result.errors for result in results], ERROR)
    elif len(results) > 1:
        raise CodecError(
            f"a column of the result exceeds {program.MOST} bytes or elements; "
            "pass the input as a ChunkedArray to get a chunked result"
        )
    else:
        values = results[0].values if results else pa.array([], kind)
        errors = results[0].errors if results else pa.array([], ERROR)
    return values if mode == "FAILFAST" else PermissiveResult(values, errors)


def _put(values: pa.Array, done: dict[int, Any]) -> pa.Array:
    """Insert the results for single rows into the results of a kernel."""
    if not done:
        return values
    indices = np.arange(len(values))
    indices[list(done)] = len(values) + np.arange(len(done))
    return pa.concat_arrays([values, pa.array(done.values(), values.type)]).take(pa.array(indices))


def _errors(wrong: dict[int, FlexwireError], rows: int) -> pa.StructArray:
    if not wrong:
        return pa.nulls(rows, ERROR)
    reasons = [
        {"reason": error.reason, "path": error.path, "offset": error.offset}
        if isinstance(error, CodecError)
        else {"reason": str(error), "path": "", "offset": None}
        for error in wrong.values()
    ]
    indices = np.zeros(rows, np.int64)
    indices[list(wrong)] = np.arange(len(wrong))
    right = np.ones(rows, bool)
    right[list(wrong)] = False
    return pa.array(reasons, ERROR).take(pa.array(indices, mask=right))
