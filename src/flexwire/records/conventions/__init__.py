"""Read the record headers of other software, by named conventions and without guessing.

To Kafka, the value of a record header is only a sequence of bytes. The writer and the readers of a
header must agree on the meaning of these bytes. Each such agreement is a named `Convention`. A
convention reads and writes every value, or reports why a value is invalid. `registry` finds
conventions by name. `detect` returns the evidence for each convention, and leaves the choice to the
caller.

>>> headers = [(b"retries", b"3"), (b"late", b"true")]
>>> read_headers(headers, "connect")
[('retries', 3), ('late', True)]
>>> read_headers(headers, "utf-8")
[('retries', '3'), ('late', 'true')]
"""

from __future__ import annotations

from flexwire.records.conventions.connect import Connect
from flexwire.records.conventions.convention import Convention, HeaderEvidence
from flexwire.records.conventions.fixed_width import FixedWidth
from flexwire.records.conventions.registry import (
    CONVENTIONS,
    Candidate,
    detect,
    read_headers,
    write_headers,
)
from flexwire.records.conventions.spring import SpringJson
from flexwire.records.conventions.typed_values import EarlierTypedValues, TypedValues
from flexwire.records.conventions.utf8 import Utf8

__all__ = [
    "CONVENTIONS",
    "Candidate",
    "Connect",
    "Convention",
    "EarlierTypedValues",
    "FixedWidth",
    "HeaderEvidence",
    "SpringJson",
    "TypedValues",
    "Utf8",
    "detect",
    "read_headers",
    "write_headers",
]
