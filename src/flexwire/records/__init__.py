"""Record batches (magic 2) and message sets (magic 0 and 1), with any compression type.

Batches are untrusted: lengths and counts may be invalid, and the content may inflate to any size.
Headers and CRCs are therefore read first, and records only on request. Nothing is inflated beyond a
limit. `decode` reads one batch after another, and `batch` represents a batch. `body` and
`message_set` read the records in a batch, `inflate` applies the limit, and `search` finds the next
valid batch after damage. `encode` does the reverse. `flexwire.wire.batch_layout` defines the place
of each header field. `kip82` reads the format of KIP-82 itself, and `conventions` reads the values
of record headers. `flexwire.protocol` interprets records, and `flexwire.columnar` converts records
to columns.

The laws of this package (tests below `tests/`):

- Magic 2 means KIP-82's own message only in `kip82`. Everywhere else, magic 2 means a record batch
  (`records/test_kip82.py`).
- A convention of record headers never guesses: a value that its software would drop is an error
  (`records/test_conventions.py`).
- The fast gzip library accepts exactly the input that zlib accepts. Otherwise, damage would go
  unnoticed (`records/test_gzip_library.py`, `records/test_gzip_rules.py`).

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

# Batches use these functions for reading and writing, although their modules depend on batches.
use_functions(kernel_functions())
