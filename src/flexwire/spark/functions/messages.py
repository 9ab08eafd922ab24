"""Messages in a column, bytes to structures and back, in Arrow alone: what tasks of Spark run.

What the functions of `flexwire.spark.functions` promise is decided here and tested without Spark.
The decoding is that of `flexwire.columnar`, whose kernels leave what they refuse to the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.arguments import refuse
from flexwire.columnar import ERROR, Permissive, decode_messages, encode_messages, message_type
from flexwire.columnar.decoding import pruned, pruned_type
from flexwire.errors import CodecError, DecodeError
from flexwire.schema.served import OneSpec, served_of

if TYPE_CHECKING:
    from flexwire.schema.served import MessageLike
    from flexwire.schema.spec import MessageSpec
    from flexwire.spark.functions.options import Options


def portable(message: MessageLike) -> str | MessageSpec:
    """Give a message as what travels to workers: the name of a bundled one, or a spec.

    Raises `UnknownMessageError` for a name that the catalog does not have.
    """
    served = served_of(message)
    if not isinstance(served.entry, OneSpec):
        if served.release is not None:
            raise refuse("message", "a message of no one release", f"that of {served.release}")
        return served.name
    ((spec, _),) = served.entry.specs()
    return spec


def check_version(message: MessageLike, version: int, options: Options) -> None:
    """Raise `UnknownMessageError` for a version that a message does not have."""
    served_of(message).schema(version, options.encoding)


def column_type(message: MessageLike, options: Options) -> pa.StructType:
    """Give the type of a column of messages: of all fields, or of those that are asked for.

    In PERMISSIVE mode it has a field more, for the error.
    """
    kind = pruned_type(message_type(message), options.fields)
    return with_error(kind, options, ERROR) if options.is_permissive else kind


def with_error(kind: pa.StructType, options: Options, error: pa.DataType) -> pa.StructType:
    """Give a type with the field for what did not decode, which is the last."""
    if options.corrupt in {one.name for one in kind}:
        raise refuse("columnNameOfCorruptRecord", "a name of no other field", options.corrupt)
    return pa.struct([*kind, (options.corrupt, error)])


def decoded(message: MessageLike, options: Options, data: Any, versions: Any) -> pa.StructArray:
    """Decode a column of `column_type`; a null is null.

    In PERMISSIVE mode a row that does not decode is a structure of nulls, but for its error.
    """
    try:
        made = decode_messages(
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
    if not isinstance(made, Permissive):
        return pruned(made, kind)
    values = pruned(made.values, kind)
    return _with_errors(values, made.errors, data, with_error(kind, options, ERROR))


def _with_errors(
    values: pa.StructArray, errors: pa.Array, data: pa.Array, kind: pa.StructType
) -> pa.StructArray:
    # Without nulls of their own, lest a null message hide what its fields are made of.
    columns = values.flatten() if values.null_count else _children(values)
    mask = data.is_null() if data.null_count else None
    return pa.StructArray.from_arrays([*columns, errors], fields=list(kind), mask=mask)


def _children(values: pa.StructArray) -> list[pa.Array]:
    return [values.field(index) for index in range(values.type.num_fields)]


def encoded(message: MessageLike, options: Options, structs: Any, versions: Any) -> pa.BinaryArray:
    """Encode a column of structures; in PERMISSIVE mode what no message can hold is null.

    The field that `decoded` has for errors is left out. A row that has one did not decode, and so
    is an error here too.
    """
    if options.is_permissive and pa.types.is_struct(structs.type):
        structs = _without_errors(structs, options.corrupt)
    made = encode_messages(
        message,
        structs,
        versions,
        encoding=options.encoding,
        mode=options.mode,
    )
    return made.values if isinstance(made, Permissive) else made


def _without_errors(structs: pa.StructArray, name: str) -> pa.StructArray:
    at = structs.type.get_field_index(name)
    if at < 0:
        return structs
    kept = [index for index in range(structs.type.num_fields) if index != at]
    wrong = structs.field(at).is_valid()
    mask = pc.or_(structs.is_null(), wrong)
    columns = [structs.field(index) for index in kept]
    fields = [structs.type.field(index) for index in kept]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _advise(error: CodecError) -> None:
    """Say in a note what a caller in Spark can do about a batch that becomes too large."""
    if not isinstance(error, DecodeError):
        error.add_note("set spark.sql.execution.arrow.maxRecordsPerBatch lower")
