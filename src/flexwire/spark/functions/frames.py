"""Whole frames in a column: their headers, and where their bodies are; in Arrow alone.

A request says of itself what it is. A response does not: it is read by the api key and the version
of the request that it answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.arguments import refuse
from flexwire.columnar import ERROR
from flexwire.columnar.types import RAW_TAGGED_FIELDS, raw_tagged_fields
from flexwire.errors import CodecError, FlexwireError, FrameError
from flexwire.protocol import parse_response, read_request
from flexwire.spark.functions.messages import with_error
from flexwire.wire.limits import INT16_MAX
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from flexwire.spark.functions.options import Options

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
    ]
)
"""A frame: what its header says, and its body, with the message that it is and at which version."""


def frame_type(options: Options) -> pa.StructType:
    """Give the type of a column of frames; where it is asked for, with a field for the error."""
    return with_error(FRAME, options, ERROR) if options.is_permissive else FRAME


def frames(
    options: Options, data: pa.Array, api_keys: pa.Array = None, versions: pa.Array = None
) -> pa.StructArray:
    """Read a binary column of frames, requests or with two columns more the responses to these.

    In PERMISSIVE mode a frame that is not one is a structure of nulls, but for its error.
    """
    _check_columns(data, api_keys, versions)
    rows = len(data)
    requests = (
        [None] * rows
        if api_keys is None
        else zip(api_keys.to_pylist(), versions.to_pylist(), strict=True)
    )
    made: list[dict[str, Any] | None] = []
    for row, (frame, request) in enumerate(zip(data.to_pylist(), requests, strict=True)):
        try:
            made.append(None if frame is None else _read(frame, request, options))
        except FlexwireError as error:
            if not options.is_permissive:
                error.add_note(f"in row {row}")
                raise
            made.append({options.corrupt: _error(error)})
    return pa.array(made, frame_type(options))


def _check_columns(data: pa.Array, api_keys: pa.Array, versions: pa.Array) -> None:
    """Refuse columns of other types than those of frames and of what their requests say."""
    if data.type not in {pa.binary(), pa.large_binary()}:
        raise refuse("data", "a column of binary", str(data.type))
    for name, column in (("api_key", api_keys), ("api_version", versions)):
        if column is not None and not pa.types.is_integer(column.type):
            raise refuse(name, "a column of integers", str(column.type))


def _read(frame: bytes, request: tuple[int, int] | None, options: Options) -> dict[str, Any]:
    payload = _payload(frame) if options.has_prefix else frame
    if request is None:
        asked = read_request(payload)
        header: Any = asked.header
        told = {
            "api_key": asked.api_key,
            "api_version": asked.api_version,
            "correlation_id": asked.correlation_id,
            "client_id": asked.client_id,
            "header_version": asked.header_version,
            "message": asked.message_name,
            "body_version": asked.api_version,
            "body": payload[asked.body_offset :],
        }
    else:
        _check_request(request)
        answer = parse_response(payload, *request)
        header = answer.header
        told = {
            "api_key": request[0],
            "api_version": request[1],
            "correlation_id": answer.correlation_id,
            "header_version": answer.header_version,
            "message": answer.message_name,
            "body_version": answer.body_version,
            "body": payload[answer.body_offset :],
        }
    tagged = raw_tagged_fields(header.unknown_tagged_fields)
    return told | {"header_unknown_tagged_fields": tagged}


def _check_request(request: tuple[int, int]) -> None:
    """Refuse what no request has as its api key and version."""
    for name, number in zip(("api key", "version"), request, strict=True):
        if number is None or not 0 <= number <= INT16_MAX:
            raise FrameError(f"a response is read by its request's {name}, got {number}")


def _payload(frame: bytes) -> bytes:
    """Give a frame without its length, which must be its own."""
    if len(frame) < PREFIX_LENGTH:
        raise FrameError(f"a frame begins with a length of {PREFIX_LENGTH} bytes, got {len(frame)}")
    length, rest = int.from_bytes(frame[:PREFIX_LENGTH], signed=True), frame[PREFIX_LENGTH:]
    if length != len(rest):
        raise FrameError(f"the frame declares {length} bytes and has {len(rest)}")
    return rest


def _error(error: FlexwireError) -> dict[str, Any]:
    if isinstance(error, CodecError):
        return {"reason": error.reason, "path": error.path, "offset": error.offset}
    return {"reason": str(error), "path": "", "offset": None}
