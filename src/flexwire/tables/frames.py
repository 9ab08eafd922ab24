"""The rows of the table of frames: each frame's facts, with what became of it when it was decoded.

``outcome`` is "decoded", "lenient" (the body breaks its spec, as ``error`` says, and decodes as
Kafka's Java reads it), "failed", or what the frame was without a body to decode.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.columns.turns_outcomes import FAILED
from flexwire.tables.schema import FRAMES_TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    Words = np.ndarray[Any, Any]
    # A name and a version.
    Software = tuple[str | None, str | None]

DECODED, LENIENT = "decoded", "lenient"

OF_BODY = (
    "header_version",
    "header_unknown_tagged_fields",
    "body_version",
    "withheld_credentials",
    "error",
    "bytes",
)
"""The columns that a message table gives the table of frames."""
BODY_OUTCOMES = pa.schema(
    [("row", pa.int32()), *((name, FRAMES_TABLE.field(name).type) for name in OF_BODY)]
)
"""What the message tables say of bodies: of which row of the paired frames, and what."""

_CONNECTION = re.compile(r"(.*)>(.*?)(#[0-9]+)?")
_API_WORDS = "(Request|Response)$"


def frame_rows(
    paired: pa.RecordBatch, outcomes: pa.RecordBatch, software: Mapping[str, Software]
) -> pa.RecordBatch:
    """Give the rows of the table of frames, one for each of the paired frames, in their order.

    ``outcomes`` is a batch of `BODY_OUTCOMES` in any order, with a row for each frame that has a
    ``body``. ``software`` is that of connections' clients, where it is known.
    """
    place = np.full(len(paired), -1)
    place[outcomes["row"].to_numpy()] = np.arange(len(outcomes))
    made = _of_bodies(paired, outcomes, place)
    made |= _of_connections(paired["connection"], software)
    made["api_name"] = _api_names(paired["message"])
    columns = [made[name] if name in made else paired[name] for name in FRAMES_TABLE.names]
    return pa.RecordBatch.from_arrays(columns, schema=FRAMES_TABLE)


def _of_bodies(
    paired: pa.RecordBatch, outcomes: pa.RecordBatch, place: Words
) -> dict[str, pa.Array]:
    """Give what a frame's body says of it, and its header and framing where it has none."""
    has_body = place >= 0
    if has_body.all() and outcomes["error"].null_count == len(outcomes):
        return _all_decoded(outcomes, place)
    # A null takes a null.
    theirs, own = _indices(place, has_body), _indices(np.arange(len(paired)), ~has_body)
    error, version = outcomes["error"].take(theirs), outcomes["body_version"].take(theirs)
    broken = pc.if_else(version.is_null(), FAILED, LENIENT)
    outcome = pc.if_else(error.is_null(), DECODED, broken)
    outcome = pc.if_else(pa.array(has_body), outcome, paired["outcome"])
    # The bytes of what is decoded are in no column, and are not copied.
    is_shown = pc.fill_null(pc.not_equal(outcome, DECODED), fill_value=False).to_numpy(
        zero_copy_only=False
    )
    shown = (
        outcomes["bytes"].take(_indices(place, has_body & is_shown)),
        paired["payload"].take(_indices(np.arange(len(paired)), ~has_body & is_shown)),
    )
    return {
        "body_version": version,
        "outcome": outcome,
        "bytes": pc.coalesce(*shown),
        **{
            name: pc.if_else(
                pa.array(has_body), outcomes[name].take(theirs), paired[name].take(own)
            )
            for name in OF_BODY
            if name not in {"body_version", "bytes"}
        },
    }


def _all_decoded(outcomes: pa.RecordBatch, place: Words) -> dict[str, pa.Array]:
    """Give the same where each frame has a body that decoded, as nearly always."""
    told = outcomes.select([name for name in OF_BODY if name != "bytes"]).take(pa.array(place))
    return {
        **dict(zip(told.schema.names, told.columns, strict=True)),
        "outcome": pa.repeat(DECODED, len(place)),
        "bytes": pa.nulls(len(place), pa.binary()),
    }


def _indices(place: Words, wanted: Words) -> pa.Array:
    return pa.array(place, mask=~wanted)


def _api_names(messages: pa.StringArray) -> pa.StringArray:
    """Give the name of each message's API."""
    # Of the few messages each is looked at once.
    different = messages.dictionary_encode()
    names = pc.replace_substring_regex(different.dictionary, _API_WORDS, "")
    return names.take(different.indices)


def _of_connections(
    connections: pa.StringArray, software: Mapping[str, Software]
) -> dict[str, pa.Array]:
    """Give what is known of each frame's connection: its ends, and the software of its client."""
    different = connections.dictionary_encode()
    names = different.dictionary.to_pylist()
    ends = [ends_of(one) for one in names]
    known = [software.get(one, (None, None)) for one in names]
    return {
        name: pa.array([pair[at] for pair in told], pa.string()).take(different.indices)
        for told, columns in (
            (ends, ("client", "broker")),
            (known, ("client_software_name", "client_software_version")),
        )
        for at, name in enumerate(columns)
    }


def ends_of(connection: str) -> tuple[str, str]:
    """Give the client's end and the broker's of a connection, by its name."""
    found = _CONNECTION.fullmatch(connection)
    return (found[1], found[2]) if found else ("", "")
