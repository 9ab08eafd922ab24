"""Records as JSON: the form in which people read and write the bytes of a records field.

A batch is ``{"records": […]}``, together with the fields of its header. The header fields have the
names of `RecordBatch`, spelled as in JSON. A record contains ``key``, ``value``, ``headers`` and
``timestamp``. Bytes that are text become a string; other bytes become ``{"base64": …}`` or
``{"hex": …}``. The JSON form can be sent again as a request.
"""

from __future__ import annotations

import base64
import inspect
import time
from typing import TYPE_CHECKING, Any, Final

from flexwire.errors import EncodeError, JsonFormError, RecordError, short
from flexwire.records import Record, RecordBatch, decode_batches, encode_batch
from flexwire.records.inflation import count_bytes
from flexwire.schema.spec import camel_case, snake_case

if TYPE_CHECKING:
    from collections.abc import Iterator

_RECORDS: Final = "records"
_HEADER: Final = frozenset(inspect.signature(encode_batch).parameters) - {_RECORDS}
_RECORD: Final = frozenset({"key", "value", "headers", "timestamp", "offset"})
MOST_SHOWN: Final = 128 * 1024 * 1024
"""The maximum number of record bytes in the JSON of a message. Each record or record header counts
as 256 additional bytes.
"""
# The facts about a batch that are shown, each with the value at which it is left out.
_SHOWN: Final[dict[str, Any]] = {
    "base_offset": None,
    "last_offset": None,
    "magic": 2,
    "compression": "none",
    "timestamp_type": "CreateTime",
    "max_timestamp": None,
    "partition_leader_epoch": -1,
    "producer_id": -1,
    "producer_epoch": -1,
    "base_sequence": -1,
    "is_transactional": False,
    "is_control": False,
}


def encode_records(form: Any, path: str) -> bytes:
    """Return the bytes for records in JSON: a list of records, one batch, or a list of batches.

    Raises `JsonFormError` with the path of the invalid part.
    """
    if isinstance(form, list) and form and all(_is_batch(batch) for batch in form):
        return b"".join(_encode(batch, f"{path}[{at}]") for at, batch in enumerate(form))
    if isinstance(form, list):
        return _encode({_RECORDS: form}, path)
    if _is_batch(form):
        return _encode(form, path)
    raise JsonFormError(f"expected records, a batch or base64, got {short(form)}", path=path)


class RecordBudget:
    """The remaining size for decompressed records. Their JSON takes many times more memory."""

    def __init__(self, left: int = MOST_SHOWN) -> None:
        self._left = left

    def has_for(self, records: list[Record]) -> bool:
        """Subtract the size of records. Return whether the remaining size was sufficient."""
        self._left -= count_bytes(records)
        return self._left >= 0


def decode_records(data: bytes, room: RecordBudget | None = None) -> list[dict[str, Any]] | None:
    """Return the batches in a field's bytes as JSON, or None if not all bytes are batches.

    A batch that a fetch cut off is left out, as in consumers, unless it is the only batch.
    Otherwise the bytes would seem empty. The result is also None if the size limit is exceeded.
    """
    room = RecordBudget() if room is None else room
    batches = []
    try:
        for batch in decode_batches(data):
            if not room.has_for(batch.records):
                return None
            batches.append(
                {**_header(batch), _RECORDS: [_shown(record) for record in batch.records]}
            )
    except RecordError:
        return None
    return batches if batches or not data else None


def _is_batch(form: Any) -> bool:
    return isinstance(form, dict) and _RECORDS in form


def _encode(form: dict[str, Any], path: str) -> bytes:
    header = {snake_case(name[:1].upper() + name[1:]): value for name, value in form.items()}
    records = header.pop(_RECORDS)
    for name in header:
        if name not in _HEADER:
            raise JsonFormError(f"a batch has no field {name!r}; {_known(_HEADER)}", path=path)
    if not isinstance(records, list):
        raise JsonFormError(f"expected records, got {short(records)}", path=path)
    now = time.time_ns() // 1_000_000
    encoded = [_record(value, at, now, f"{path}[{at}]") for at, value in enumerate(records)]
    try:
        return encode_batch(encoded, **header)
    except (EncodeError, TypeError) as error:
        raise JsonFormError(str(error), path=path) from None


def _record(form: Any, index: int, now: int, path: str) -> Record:
    if not isinstance(form, dict):
        raise JsonFormError(f"expected a record, got {short(form)}", path=path)
    for name in form:
        if name not in _RECORD:
            raise JsonFormError(f"a record has no field {name!r}; {_known(_RECORD)}", path=path)
    return Record(
        form.get("offset", index),
        form.get("timestamp", now),
        _bytes(form.get("key"), f"{path}.key"),
        _bytes(form.get("value"), f"{path}.value"),
        list(_headers(form.get("headers", []), f"{path}.headers")),
    )


def _headers(form: Any, path: str) -> Iterator[tuple[bytes, bytes | None]]:
    pairs = [{"key": key, "value": form[key]} for key in form] if isinstance(form, dict) else form
    if not isinstance(pairs, list):
        raise JsonFormError(f"expected record headers, got {short(form)}", path=path)
    for at, header in enumerate(pairs):
        here = f"{path}[{at}]"
        if not isinstance(header, dict) or set(header) != {"key", "value"}:
            raise JsonFormError(
                f'expected {{"key": …, "value": …}}, got {short(header)}', path=here
            )
        key = _bytes(header["key"], f"{here}.key")
        if key is None:
            raise JsonFormError("the key of a record header must not be null", path=f"{here}.key")
        yield key, _bytes(header["value"], f"{here}.value")


def _bytes(form: Any, path: str) -> bytes | None:
    if form is None:
        return None
    try:
        if isinstance(form, str):
            return form.encode()
        if isinstance(form, dict) and len(form) == 1:
            [(notation, text)] = form.items()
            if notation == "base64":
                return base64.b64decode(text, validate=True)
            if notation == "hex":
                return bytes.fromhex(text)
    except (ValueError, TypeError):
        pass
    expected = 'text, null, {"base64": …} or {"hex": …}'
    raise JsonFormError(f"expected {expected}, got {short(form)}", path=path)


def _known(names: frozenset[str]) -> str:
    return f"the fields are {', '.join(camel_case(name) for name in sorted(names))}"


def _header(batch: RecordBatch) -> dict[str, Any]:
    shown = {name: getattr(batch, name) for name in _SHOWN}
    return {camel_case(name): value for name, value in shown.items() if value != _SHOWN[name]}


def _shown(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [{"key": _text(key), "value": _text(value)} for key, value in record.headers],
    }


def _text(raw: bytes | None) -> str | dict[str, str] | None:
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}
