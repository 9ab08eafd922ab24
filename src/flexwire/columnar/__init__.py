"""Messages and records in bulk: columns of bytes into nested Arrow columns and back."""

from flexwire.columnar.decoding import decode_messages
from flexwire.columnar.encoding import encode_messages, message_sizes
from flexwire.columnar.record_encoding import encode_record_pieces, encode_records
from flexwire.columnar.record_schema import BATCH_COLUMNS, RECORD_COLUMNS
from flexwire.columnar.records import RecordReader, Wanted, decode_records
from flexwire.columnar.rows import ERROR, Permissive
from flexwire.columnar.types import message_type

__all__ = [
    "BATCH_COLUMNS",
    "ERROR",
    "RECORD_COLUMNS",
    "Permissive",
    "RecordReader",
    "Wanted",
    "decode_messages",
    "decode_records",
    "encode_messages",
    "encode_record_pieces",
    "encode_records",
    "message_sizes",
    "message_type",
]
