"""KIP-82 as its document defines it: messages of magic 2 with headers, and their requests.

Here, magic 2 means the document's message, although Kafka later released the record batch under the
same number. Version 4 of Produce and Fetch also means the document's version. The bytes do not show
whether they are in the document's format or in Kafka's. A caller of these functions declares that
the bytes have the document's format. ``SPECS`` is the directory with the specs of the requests and
responses, for `flexwire.load_specs`.

>>> from flexwire.records.headers import Headers
>>> headers = Headers()
>>> headers.put_long("user", 7)
>>> data = encode_message_set([Kip82Message(0, 1700000000000, b"order-7", b"paid", headers)])
>>> [message] = decode_message_set(data)
>>> message.value, message.headers.get("user")
(b'paid', [7])
>>> [older] = decode_message_set(down_convert(data))
>>> older.value, older.headers.keys()
(b'paid', [])
"""

from __future__ import annotations

from pathlib import Path

from flexwire.records.kip82.client import ConsumerRecord, ProducerRecord
from flexwire.records.kip82.message import Kip82Message
from flexwire.records.kip82.sets import (
    MessageIterator,
    decode_message_set,
    down_convert,
    encode_message_set,
    up_convert,
)

__all__ = [
    "SPECS",
    "ConsumerRecord",
    "Kip82Message",
    "MessageIterator",
    "ProducerRecord",
    "decode_message_set",
    "down_convert",
    "encode_message_set",
    "up_convert",
]

SPECS = Path(__file__).with_name("specs")
