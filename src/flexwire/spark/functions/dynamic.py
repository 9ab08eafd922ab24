"""Functions whose message or convention is a column too, in Arrow alone: what SQL calls.

A function of SQL has one type, whatever its arguments say. So a message that is named by a column
is a Variant, with the fields of its columns; rows of the same name are done together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.arguments import refuse
from flexwire.columnar.types import validate
from flexwire.errors import FlexwireError, UnknownMessageError
from flexwire.schema.served import check_message
from flexwire.spark.functions import headers, messages
from flexwire.spark.functions.variant import VARIANT, variants
from flexwire.spark.functions.variant_columns import struct_variants

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.spark.functions.options import Options

    Words = np.ndarray[Any, Any]


def message_variants(
    options: Options, data: pa.Array, names: pa.Array, versions: pa.Array
) -> pa.StructArray:
    """Decode messages that ``names`` names row by row into Variants; a null is null.

    Each is the object of what `messages.decoded` gives, with the same names of fields.
    """

    def decode(name: str | None, rows: pa.Array) -> pa.StructArray:
        given, at = data.take(rows), versions.take(rows)
        try:
            found = messages.decoded(_named(name), options, given, at)
        except UnknownMessageError as error:
            if not options.is_permissive:
                raise
            return _unknown(error, options, given)
        return struct_variants(found)

    return by_name(names, VARIANT, decode)


def encoded_messages(
    options: Options, structs: pa.Array, names: pa.Array, versions: pa.Array
) -> pa.BinaryArray:
    """Encode structures as the messages that ``names`` names row by row."""

    def encode(name: str | None, rows: pa.Array) -> pa.BinaryArray:
        return messages.encoded(_named(name), options, structs.take(rows), versions.take(rows))

    return by_name(names, pa.binary(), encode)


def header_lists(options: Options, given: pa.Array, conventions: pa.Array) -> pa.ListArray:
    """Read record headers by the conventions that a column names."""

    def read(name: str | None, rows: pa.Array) -> pa.ListArray:
        return headers.header_lists(headers.find_convention(name), options, given.take(rows))

    return by_name(conventions, headers.list_type(options), read)


def by_name(
    names: pa.Array, kind: pa.DataType, work: Callable[[str | None, pa.Array], pa.Array]
) -> pa.Array:
    """Have the rows of each name done together, and give what is made of them in their order."""
    if names.type not in {pa.string(), pa.large_string()}:
        raise refuse("message", "a column of text", str(names.type))
    coded = names.dictionary_encode("encode")
    which = np.asarray(coded.indices)
    made, of_row = [pa.array([], kind)], [np.zeros(0, np.int64)]
    for number, name in enumerate(coded.dictionary.to_pylist()):
        (rows,) = np.nonzero(which == number)
        made.append(work(name, pa.array(rows)))
        of_row.append(rows)
    order = np.argsort(np.concatenate(of_row), kind="stable")
    return pa.concat_arrays(made).take(pa.array(order))


def _named(name: str | None) -> str:
    if name is None:
        raise UnknownMessageError("no message is named")
    check_message(name)
    return name


def _unknown(error: FlexwireError, options: Options, data: pa.Array) -> pa.StructArray:
    """Give what PERMISSIVE mode says of messages that the catalog does not have."""
    validate(data, full=True)
    told = {options.corrupt: {"reason": str(error), "path": "", "offset": None}}
    made = variants([told] * len(data))
    return pc.if_else(data.is_valid(), made, pa.scalar(None, VARIANT))
