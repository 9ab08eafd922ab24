"""What may become of a frame before its body is decoded, and the reasons that are given."""

from __future__ import annotations

from typing import Final

FAILED: Final = "failed"
TOKEN: Final = "token"  # noqa: S105 - the name of an outcome
UNPAIRED: Final = "unpaired"
NOT_KAFKA: Final = "not Kafka"
"""The outcome of frames of a connection that is not Kafka."""

UNBELIEVED: Final = "nothing on this connection reads as Kafka"
UNPAIRED_REASON: Final = "the capture holds no request with correlation id %d on this connection"
