"""Convert messages and records in bulk: from columns of bytes to nested Arrow columns, and back.

One column can contain messages of every version, so its type is the union of a message's fields. A
program (`program`) is compiled from the schemas. It specifies where each field is in the bytes, and
to which column the field belongs. The kernels of `flexwire.kernels` run the program over many rows.
If the kernels refuse a row, the reference executor (`reference`) reads it again, and either raises
the error or returns the row. `flexwire.capture`, `flexwire.logs` and `flexwire.spark` read files
and find the bytes of messages in them.

The laws of this package:

- Each operation of a program checks everything that it needs before it changes anything. Reason:
  after a column has grown, the operation runs again. Test: `tests/columnar/test_plain.py`.
- The ``records`` table uses the schema of records in `record_columns`. Reason: Spark joins the
  table with decoded records. Test: `tests/spark/test_record_schema.py`.
- Each batch is counted exactly once, as a whole, even if its rows are split up. Reason: the facts
  are sums over batches. Tests: `tests/columnar/test_record_sums.py`,
  `tests/columnar/test_batch_digests.py`.
- An offset in an array is checked before it is used. Reason: Arrow itself checks only the first and
  last offset. Test: `tests/columnar/test_bounds.py`.
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
