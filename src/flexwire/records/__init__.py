"""Record batches (magic 2) and message sets (magic 0 and 1), in every compression.

A batch is untrusted: its lengths and counts may be false, and its content may inflate to any size.
So headers and crcs are read first, records only on request, and nothing is inflated beyond a limit.
`decode` walks over batches, `batch` is one of them, `body` and `message_set` read the records
inside it, `inflate` stays below a limit, and `search` finds the next valid batch after damage. The
files named for writing do the reverse. `flexwire.wire.batch_layout` decides where each field of a
header is. `kip82` reads KIP-82's own format, `conventions` the values of record headers.
`flexwire.protocol` knows the meaning of records, and `flexwire.columnar` makes tables.

The laws of this room (tests below `tests/`):

- Magic 2 means KIP-82's own message only inside `kip82`; everywhere else it is a record batch
  (`records/test_kip82.py`).
- A convention of record headers never guesses: a value that its software would drop is an error
  (`records/test_conventions.py`).
- The fast gzip library accepts exactly what zlib accepts. Otherwise damage would pass
  (`records/test_gzip_library.py`, `records/test_gzip_rules.py`).

>>> [batch] = decode_batches(bytes.fromhex(
...     "00000000000000000000004cffffffff02563872ea0000000000000000018bcfe568000000018bcfe56800"
...     "ffffffffffffffffffffffffffff00000001340000000e6f726465722d370870616964020a7472616365046131"
... ))
>>> batch.compression, batch.records
(<Compression.NONE: 'none'>, [Record(offset=0, timestamp=1700000000000, key=b'order-7', \
value=b'paid', headers=[(b'trace', b'a1')])])
>>> encode_batch(batch.records) == batch.data
True
"""

from __future__ import annotations

from flexwire.records.batch import MAX_INFLATED, RecordBatch
from flexwire.records.batch_executors import kernel_functions, use_functions
from flexwire.records.decode import BatchIterator, PartialBatch, decode_batches, decode_records
from flexwire.records.encode import encode_batch
from flexwire.records.headers import Headers, typed_headers
from flexwire.records.record import Compression, Record, RecordHeader, TimestampType
from flexwire.records.typed import Typed, TypedDialect, ValueType

__all__ = [
    "MAX_INFLATED",
    "BatchIterator",
    "Compression",
    "Headers",
    "PartialBatch",
    "Record",
    "RecordBatch",
    "RecordHeader",
    "TimestampType",
    "Typed",
    "TypedDialect",
    "ValueType",
    "decode_batches",
    "decode_records",
    "encode_batch",
    "typed_headers",
]

# Batches import their readers and writers, which are above them.
use_functions(kernel_functions())
