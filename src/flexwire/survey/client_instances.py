"""Find the frames with the client instance id of a connection (KIP-714, KIP-1313).

A client may send the id in each request or only in the first one, and a broker may assign it. The
id is therefore a fact about the connection: the first id in any of its frames.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flexwire.capture.pairing import layout as L  # noqa: N812 - a short prefix for a few names
from flexwire.errors import CodecError, FrameError, UnknownMessageError
from flexwire.protocol import (
    assigned_client_instance_id,
    client_instance_id,
    parse_response,
    read_request,
)
from flexwire.protocol.client_instances import client_instance_field
from flexwire.protocol.headers import request_name, response_name
from flexwire.schema.catalog import catalog
from flexwire.wire.limits import INT64_MAX
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from uuid import UUID

    from flexwire.capture.pairing.headers import HeaderColumns
    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.columnar.arrays import NumpyArray


class GivenInstance(NamedTuple):
    """The id in a frame, and its time. The smallest of several tuples contains the first id.

    ``time_us`` is the time of the frame's last byte. If times are equal, a request comes before a
    response.
    """

    time_us: int
    is_response: bool
    frame_index: int
    text: str


def find_instances(
    frames: FrameColumns,
    headers: HeaderColumns,
    known: Mapping[str, GivenInstance],
    wanted: NumpyArray | None = None,
    *,
    by_row: bool = False,
) -> Iterator[tuple[int, GivenInstance]]:
    """Yield the first frame of each connection that contains an id, with its row and this id.

    If ``wanted`` rows are given, only these are read. The first frame is the earliest by time.
    Connections with an earlier ``known`` id are left out. With ``by_row``, the first frame is the
    frame with the lowest row number, and all known connections are left out.
    """
    gives = (headers.instance_at > 0) | _may_give_in_body(headers)
    odd = [row for row, values in headers.odd.items() if values.get("client_instance_id")]
    gives[odd] = True
    if wanted is not None:
        gives &= wanted
    rows = np.flatnonzero(gives)
    if not len(rows):
        return
    if by_row:
        rows = rows[~_is_known(frames, rows, known)]
    else:
        rows = rows[_is_earlier(frames, rows, known)]
        order = (frames.index[rows], frames.is_response[rows], frames.time_us[rows])
        rows = rows[np.lexsort(order)]
    found: set[int] = set()
    for row in rows.tolist():
        connection = int(frames.connection[row])
        if connection in found:
            continue
        given = _given(frames, headers, row)
        if given is not None:
            found.add(connection)
            time_us, is_response = int(frames.time_us[row]), bool(frames.is_response[row])
            yield row, GivenInstance(time_us, is_response, int(frames.index[row]), uuid_text(given))


def assigning_api_keys(api_keys: Iterable[int]) -> list[int]:
    """Return those of the given api keys whose responses may assign an id."""
    return [key for key in api_keys if _has_field(response_name(key, 0))]


def _may_give_in_body(headers: HeaderColumns) -> NumpyArray:
    """Return which rows are requests or responses of an API whose bodies may contain an id."""
    gives = np.zeros(len(headers.kind), np.bool_)
    for key in present_api_keys(headers):
        for kind, name in ((L.REQUEST, request_name(key, 0)), (L.ANSWER, response_name(key, 0))):
            if _has_field(name):
                gives |= (headers.api_key == key) & (headers.kind == kind)
    return gives


def present_api_keys(headers: HeaderColumns) -> list[int]:
    """Return the api keys of the catalog that occur in the rows."""
    # Rows that could not be read have api key 0. All other rows have an api key of the catalog.
    keys: list[int] = np.flatnonzero(np.bincount(np.maximum(headers.api_key, 0))).tolist()
    return [key for key in keys if key in catalog().api_keys()]


def _has_field(name: str) -> bool:
    return name in catalog().names() and client_instance_field(name) is not None


def _is_known(
    frames: FrameColumns, rows: NumpyArray, known: Mapping[str, GivenInstance]
) -> NumpyArray:
    """Return which rows belong to connections whose id is known."""
    places, numbers = np.unique(frames.connection[rows], return_inverse=True)
    is_known = np.array([frames.connections[place] in known for place in places.tolist()], np.bool_)
    of_rows: NumpyArray = is_known[numbers]
    return of_rows


def _is_earlier(
    frames: FrameColumns, rows: NumpyArray, known: Mapping[str, GivenInstance]
) -> NumpyArray:
    """Return which rows may be earlier than the known id of their connection."""
    places, numbers = np.unique(frames.connection[rows], return_inverse=True)
    givens = [known.get(frames.connections[place]) for place in places.tolist()]
    until = np.array([INT64_MAX if one is None else one.time_us for one in givens], np.int64)
    is_earlier: NumpyArray = frames.time_us[rows] <= until[numbers]
    return is_earlier


def _given(frames: FrameColumns, headers: HeaderColumns, row: int) -> UUID | None:
    values = headers.odd.get(row, {})
    if values.get("client_instance_id"):
        given: UUID = values["client_instance_id"]
        return given
    if "outcome" in values or row in frames.error:
        return None
    payload = frames.payload(row)
    with suppress(FrameError, CodecError, UnknownMessageError):
        if not frames.is_response[row]:
            return client_instance_id(read_request(payload), payload)
        key, version = int(headers.api_key[row]), int(headers.api_version[row])
        return assigned_client_instance_id(parse_response(payload, key, version), payload)
    return None
