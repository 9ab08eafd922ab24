"""Messages and records in bulk: columns of bytes into nested Arrow columns and back.

One column holds messages of every version, so its type is the union of a message's fields. A
program made from the schemas (`program`) says where each field stands on the wire and in which
column it goes; the kernels of `flexwire.kernels` run it over many rows. What they refuse, the
reference reads again row by row (`reference`), and words the error or gives the row. Reading files,
and knowing which bytes are messages, is left to `flexwire.capture` and `flexwire.spark`.
"""

from flexwire.extras import needed_by

with needed_by("flexwire.columnar", "columnar"):
    from flexwire.columnar.decoding import decode_messages
    from flexwire.columnar.encoding import encode_messages, message_sizes
    from flexwire.columnar.record_columns import BATCH_COLUMNS, RECORD_COLUMNS
    from flexwire.columnar.record_encoding import encode_record_pieces, encode_records
    from flexwire.columnar.records import RecordReader, RecordSelection, decode_records
    from flexwire.columnar.reference import ERROR, PermissiveResult
    from flexwire.columnar.types import message_type

__all__ = [
    "BATCH_COLUMNS",
    "ERROR",
    "RECORD_COLUMNS",
    "PermissiveResult",
    "RecordReader",
    "RecordSelection",
    "decode_messages",
    "decode_records",
    "encode_messages",
    "encode_record_pieces",
    "encode_records",
    "message_sizes",
    "message_type",
]
