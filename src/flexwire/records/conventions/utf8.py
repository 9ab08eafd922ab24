"""Text: the convention of OpenTelemetry, CloudEvents and most record headers written by hand."""

from __future__ import annotations

import re
from typing import Any

from flexwire.errors import short
from flexwire.records.conventions.convention import BulkCondition, Convention, HeaderEvidence

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_CLOUDEVENTS = re.compile(r"ce_[a-z0-9]+")
_TRACING = ("tracestate", "baggage", "b3")
_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
"""Control characters that do not occur in text, unlike tabs and ends of lines."""
_CONTROL = re.compile(_CONTROLS)


class Utf8(Convention):
    """Values are UTF-8, and so are keys.

    The sources are W3C Trace Context and Baggage, as OpenTelemetry propagates them
    (``traceparent``, ``tracestate``, ``baggage``), and the CloudEvents Kafka binding, 3.2.3, for
    ``ce_…`` and ``content-type`` in its binary mode.

    >>> Utf8().read([(b"ce_id", b"1234"), (b"baggage", "käse=1".encode())])
    [('ce_id', '1234'), ('baggage', 'käse=1')]
    """

    name = "utf-8"
    rank = 50
    in_bulk = BulkCondition(
        "is_valid_utf8(cast(value as string)) "
        f"and not rlike(cast(value as string), r'{_CONTROLS}')",
        "if the values are text without control characters",
    )

    def read_value(self, key: str, data: bytes) -> str:
        """Read text. U+0000 is valid, but bytes that are not UTF-8 are invalid."""
        return self.text(key, data)

    def write_value(self, key: str, value: Any) -> bytes:
        """Write a str."""
        if not isinstance(value, str):
            raise self.misfit(key, f"expected a str, got {short(value)}")
        return self.encoded(key, value)

    def sign(self, key: str, data: bytes, value: Any) -> HeaderEvidence | None:
        """Return evidence: known keys count for this convention, control characters against it."""
        control = _CONTROL.search(value)
        if control:
            return HeaderEvidence(
                key, -1, f"contains the control character U+{ord(control[0]):04X}"
            )
        if key == "traceparent" and _TRACEPARENT.fullmatch(value):
            return HeaderEvidence(key, 2, "has the form of W3C Trace Context")
        if key in _TRACING:
            return HeaderEvidence(key, 2, "is a header used for distributed tracing")
        if _CLOUDEVENTS.fullmatch(key):
            return HeaderEvidence(key, 2, "has the name of a CloudEvents attribute")
        return HeaderEvidence(key, 1, f"{len(value)} characters of text") if data else None
