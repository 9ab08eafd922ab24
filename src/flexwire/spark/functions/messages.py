"""Convert messages and frames in a column from bytes to structures and back, using only Arrow.

A request contains its API and version. A response contains neither, so reading a response requires
the api key and the version of its request.

The behavior that `flexwire.spark.functions` promises is implemented here, where it is tested
without Spark. `flexwire.columnar` decodes. If the kernels refuse an input, the reference decoder
reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.arguments import refuse, to_choice, to_text
from flexwire.columnar import (
    ERROR,
    PermissiveResult,
    decode_messages,
    encode_messages,
    message_type,
)
from flexwire.columnar.decoding import pruned, pruned_type
from flexwire.columnar.types import RAW_TAGGED_FIELDS, raw_tagged_fields
from flexwire.errors import CodecError, DecodeError, FlexwireError, FrameError
from flexwire.protocol import parse_response, read_request
from flexwire.protocol.client_instances import header_instance_id
from flexwire.records.inflation import INFLATION, Inflation
from flexwire.schema.message_schemas import SingleSpec, schemas_of
from flexwire.wire.encoding import Encoding
from flexwire.wire.limits import INT16_MAX
from flexwire.wire.segment_layout import PREFIX_LENGTH
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from uuid import UUID

    from flexwire.schema.message_schemas import MessageLike
    from flexwire.schema.spec import MessageSpec


def portable(message: MessageLike) -> str | MessageSpec:
    """Return a message in the form that is sent to workers: a bundled message's name, or a spec.

    Raises `UnknownMessageError` for a name that is not in the catalog.
    """
    served = schemas_of(message)
    if not isinstance(served.entry, SingleSpec):
        if served.release is not None:
            raise refuse(
                "message",
                "a message that is not bound to a release",
                f"a message of {served.release}",
            )
        return served.name
    ((spec, _),) = served.entry.specs()
    return spec


def check_version(message: MessageLike, version: int, options: FunctionSettings) -> None:
    """Raise `UnknownMessageError` for a version that does not exist for a message."""
    schemas_of(message).schema(version, options.encoding)


def column_type(message: MessageLike, options: FunctionSettings) -> pa.StructType:
    """Return the type of a column of messages: all fields, or the requested ones.

    In PERMISSIVE mode, the type includes an additional field for the error.
    """
    kind = pruned_type(message_type(message), options.fields)
    return with_error(kind, options, ERROR) if options.is_permissive else kind


def with_error(kind: pa.StructType, options: FunctionSettings, error: pa.DataType) -> pa.StructType:
    """Return a type with an additional last field for the errors of rows that were not decoded."""
    if options.corrupt in {field.name for field in kind}:
        raise refuse("columnNameOfCorruptRecord", "a name that no other field has", options.corrupt)
    return pa.struct([*kind, (options.corrupt, error)])


def decoded(
    message: MessageLike, options: FunctionSettings, data: Any, versions: Any
) -> pa.StructArray:
    """Decode a column of `column_type`. Null remains null.

    In PERMISSIVE mode, a row that cannot be decoded becomes a structure with null fields and an
    error.
    """
    try:
        result = decode_messages(
            message,
            data,
            versions,
            encoding=options.encoding,
            absent=options.absent,
            mode=options.mode,
        )
    except CodecError as error:
        _advise(error)
        raise
    kind = pruned_type(message_type(message), options.fields)
    if not isinstance(result, PermissiveResult):
        return pruned(result, kind)
    values = pruned(result.values, kind)
    return _with_errors(values, result.errors, data, with_error(kind, options, ERROR))


def _with_errors(
    values: pa.StructArray, errors: pa.Array, data: pa.Array, kind: pa.StructType
) -> pa.StructArray:
    # The structure's nulls are moved into its fields, because a row with an error must not be null.
    columns = values.flatten() if values.null_count else _children(values)
    mask = data.is_null() if data.null_count else None
    return pa.StructArray.from_arrays([*columns, errors], fields=list(kind), mask=mask)


def _children(values: pa.StructArray) -> list[pa.Array]:
    return [values.field(index) for index in range(values.type.num_fields)]


def encoded(
    message: MessageLike, options: FunctionSettings, structs: Any, versions: Any
) -> pa.BinaryArray:
    """Encode a column of structures. In PERMISSIVE mode, a row that no message can hold is null.

    The error field that `decoded` fills is left out. A row with an error was not decoded, so
    encoding it is also an error.
    """
    if options.is_permissive and pa.types.is_struct(structs.type):
        structs = _without_errors(structs, options.corrupt)
    result = encode_messages(
        message,
        structs,
        versions,
        encoding=options.encoding,
        mode=options.mode,
    )
    return result.values if isinstance(result, PermissiveResult) else result


def _without_errors(structs: pa.StructArray, name: str) -> pa.StructArray:
    at = structs.type.get_field_index(name)
    if at < 0:
        return structs
    indices = [index for index in range(structs.type.num_fields) if index != at]
    wrong = structs.field(at).is_valid()
    mask = pc.or_(structs.is_null(), wrong)
    columns = [structs.field(index) for index in indices]
    fields = [structs.type.field(index) for index in indices]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _advise(error: CodecError) -> None:
    """Add a note that tells a Spark user what to do if a batch becomes too large."""
    if not isinstance(error, DecodeError):
        error.add_note("set spark.sql.execution.arrow.maxRecordsPerBatch to a lower number")


Mode = Literal["FAILFAST", "PERMISSIVE"]
FunctionOptions: TypeAlias = Mapping[str, str]

#: The allowed values, and the default.
MODE, CORRUPT, ENCODING, ABSENT = "mode", "columnNameOfCorruptRecord", "encoding", "absent"
CONVENTION, PREFIX, FIELDS = "convention", "lengthPrefix", "fields"
_DEFAULTS = {
    MODE: "FAILFAST",
    CORRUPT: "_corrupt_record",
    ENCODING: Encoding.KAFKA.value,
    ABSENT: "null",
    CONVENTION: "kip-82",
    PREFIX: "true",
    FIELDS: "",
}
_CHOICES = {
    MODE: ("FAILFAST", "PERMISSIVE"),
    ENCODING: tuple(encoding.value for encoding in Encoding),
    ABSENT: ("null", "default"),
    PREFIX: ("true", "false"),
}


_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE: Final = re.compile(r"(\d{1,15})\s*([kmg]?)b?", re.IGNORECASE)
_RATIO: Final = re.compile(r"[1-9]\d{0,8}", re.ASCII)
MAX_INFLATED: Final = "maxInflated"
"""The option that limits the decompressed bytes of a record batch."""
MAX_RATIO: Final = "maxRatio"
"""The option that limits the decompressed size as a multiple of the batch's own bytes."""
OF_INFLATION: Final = {
    MAX_INFLATED: "the largest decompressed size of a record batch; default `128m`",
    MAX_RATIO: "the largest ratio of decompressed to compressed size of a record batch; "
    "default: no limit",
}
"""The options that limit the decompressed size of record batches, with their meanings."""


def size_of(name: str, value: str) -> int:
    """Return a number of bytes from Spark's notation, such as 134217728 or 128m."""
    match = _SIZE.fullmatch(value.strip())
    if match is None or not int(match[1]):
        raise refuse(name, "a number of bytes, such as 134217728 or 128m", value)
    return int(match[1]) * _UNITS[match[2].lower()]


def inflation_of(max_inflated: str | None, max_ratio: str | None) -> Inflation:
    """Return the limits of record batches. The ratio applies only if it is given."""
    inflation = INFLATION
    if max_inflated is not None:
        inflation = replace(inflation, max_inflated=size_of(MAX_INFLATED, max_inflated))
    if max_ratio is not None:
        if not _RATIO.fullmatch(max_ratio.strip()):
            raise refuse(MAX_RATIO, "a number of at least 1, such as 1024", max_ratio)
        inflation = replace(inflation, max_ratio=int(max_ratio)).held()
    return inflation


@dataclass(frozen=True, slots=True)
class FunctionSettings:
    """The checked options of a column function, which are sent to the workers."""

    mode: Mode
    corrupt: str
    encoding: Encoding
    absent: Any
    convention: str
    has_prefix: bool
    fields: tuple[str, ...] = ()
    inflation: Inflation = INFLATION

    @property
    def is_permissive(self) -> bool:
        """True if a row that cannot be decoded stays in the column instead of raising an error."""
        return self.mode == "PERMISSIVE"


def read_options(texts: FunctionOptions | None, *accepted: str) -> FunctionSettings:
    """Return the options that a function accepts. Their names are not case-sensitive.

    Raises `ArgumentError` for an option that the function does not support, and for a value that
    the option does not accept. Otherwise a misspelled option would silently have no effect.

    >>> read_options({"MODE": "permissive"}, MODE).is_permissive
    True
    """
    if texts is not None and not isinstance(texts, Mapping):
        raise refuse("options", "a dict of strings", texts)
    by_name = {name.lower(): name for name in accepted}
    chosen = dict(_DEFAULTS)
    for key, value in (texts or {}).items():
        name = by_name.get(to_text(key, "options").lower())
        if name is None:
            raise refuse("options", f"names of {', '.join(accepted)}", key)
        chosen[name] = _value(name, to_text(value, name))
    return FunctionSettings(
        mode="PERMISSIVE" if chosen[MODE] == "PERMISSIVE" else "FAILFAST",
        corrupt=chosen[CORRUPT],
        encoding=Encoding(chosen[ENCODING]),
        absent=chosen[ABSENT],
        convention=chosen[CONVENTION],
        has_prefix=chosen[PREFIX] == "true",
        fields=_names(chosen[FIELDS]),
        inflation=inflation_of(*map(chosen.get, OF_INFLATION)),
    )


def _value(name: str, value: str) -> str:
    choices = _CHOICES.get(name)
    if choices is None:
        return value
    return str(to_choice(value.upper() if name == MODE else value.lower(), name, choices))


def _names(text: str) -> tuple[str, ...]:
    """Return the names in a comma-separated string. An empty string contains no names."""
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    if "" in names:
        raise refuse(FIELDS, "names separated by commas", text)
    return names


FRAME = pa.struct(
    [
        ("api_key", pa.int16()),
        ("api_version", pa.int16()),
        ("correlation_id", pa.int32()),
        ("client_id", pa.string()),
        ("header_version", pa.int16()),
        ("header_unknown_tagged_fields", RAW_TAGGED_FIELDS),
        ("message", pa.string()),
        ("body_version", pa.int16()),
        ("body", pa.binary()),
        ("client_instance_id", pa.string()),
    ]
)
"""A frame: the facts in its header, and its body with its message and version.

The client instance id comes from the header (KIP-1313), in Kafka's notation.
"""


def frame_type(options: FunctionSettings) -> pa.StructType:
    """Return the type of a column of frames, with an error field if requested."""
    return with_error(FRAME, options, ERROR) if options.is_permissive else FRAME


def frames(
    options: FunctionSettings, data: pa.Array, api_keys: pa.Array = None, versions: pa.Array = None
) -> pa.StructArray:
    """Read a binary column of frames: requests or, if two more columns are given, responses.

    In PERMISSIVE mode, a value that is not a frame becomes a structure with null fields and an
    error.
    """
    _check_columns(data, api_keys, versions)
    rows = len(data)
    requests = (
        [None] * rows
        if api_keys is None
        else zip(api_keys.to_pylist(), versions.to_pylist(), strict=True)
    )
    rows_read: list[dict[str, Any] | None] = []
    for row, (frame, request) in enumerate(zip(data.to_pylist(), requests, strict=True)):
        try:
            rows_read.append(None if frame is None else _read(frame, request, options))
        except FlexwireError as error:
            if not options.is_permissive:
                error.add_note(f"in row {row}")
                raise
            rows_read.append({options.corrupt: _error(error)})
    return pa.array(rows_read, frame_type(options))


def _check_columns(data: pa.Array, api_keys: pa.Array, versions: pa.Array) -> None:
    """Raise an error for columns whose types differ from those of frames, api keys and versions."""
    if data.type not in {pa.binary(), pa.large_binary()}:
        raise refuse("data", "a binary column", str(data.type))
    for name, column in (("api_key", api_keys), ("api_version", versions)):
        if column is not None and not pa.types.is_integer(column.type):
            raise refuse(name, "an integer column", str(column.type))


def _read(
    frame: bytes, request: tuple[int, int] | None, options: FunctionSettings
) -> dict[str, Any]:
    payload = _payload(frame) if options.has_prefix else frame
    if request is None:
        request_read = read_request(payload)
        header: Any = request_read.header
        fields = {
            "api_key": request_read.api_key,
            "api_version": request_read.api_version,
            "correlation_id": request_read.correlation_id,
            "client_id": request_read.client_id,
            "header_version": request_read.header_version,
            "message": request_read.message_name,
            "body_version": request_read.api_version,
            "body": payload[request_read.body_offset :],
            "client_instance_id": _id_text(header_instance_id(request_read)),
        }
    else:
        _check_request(request)
        answer = parse_response(payload, *request)
        header = answer.header
        fields = {
            "api_key": request[0],
            "api_version": request[1],
            "correlation_id": answer.correlation_id,
            "header_version": answer.header_version,
            "message": answer.message_name,
            "body_version": answer.body_version,
            "body": payload[answer.body_offset :],
        }
    tagged = raw_tagged_fields(header.unknown_tagged_fields)
    return fields | {"header_unknown_tagged_fields": tagged}


def _id_text(instance_id: UUID | None) -> str | None:
    return None if instance_id is None else uuid_text(instance_id)


def _check_request(request: tuple[int, int]) -> None:
    """Raise an error for an api key or version that no request can contain."""
    for name, number in zip(("api key", "version"), request, strict=True):
        if number is None or not 0 <= number <= INT16_MAX:
            raise FrameError(f"expected the {name} of the request, from 0 to 32767, got {number}")


def _payload(frame: bytes) -> bytes:
    """Return a frame without its length prefix. Raises an error if the prefix is invalid."""
    if len(frame) < PREFIX_LENGTH:
        raise FrameError(
            f"expected at least {PREFIX_LENGTH} bytes, for the length at the start of the frame, "
            f"got {len(frame)}"
        )
    length, rest = int.from_bytes(frame[:PREFIX_LENGTH], signed=True), frame[PREFIX_LENGTH:]
    if length != len(rest):
        raise FrameError(f"the frame declares {length} bytes but contains {len(rest)}")
    return rest


def _error(error: FlexwireError) -> dict[str, Any]:
    if isinstance(error, CodecError):
        return {"reason": error.reason, "path": error.path, "offset": error.offset}
    return {"reason": str(error), "path": "", "offset": None}
