"""Producer and consumer records, with headers and serialized keys and values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flexwire.arguments import refuse
from flexwire.records.headers import Headers
from flexwire.records.kip82.message import Kip82Message

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from flexwire.records.record import TimestampType


@dataclass(slots=True)
class ProducerRecord:
    """A record to send to a given partition, or to a partition that the producer chooses.

    >>> record = ProducerRecord("orders", b"paid", key=b"order-7")
    >>> record.headers.put_long("user", 7)
    >>> record.to_message(timestamp=1700000000000).headers.get("user")
    [7]
    """

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers = field(default_factory=Headers)

    def get_headers(self) -> Headers:
        """Return the headers, as the document's accessor ``getHeaders()`` does."""
        return self.headers

    def intercepted(self, *interceptors: Callable[[ProducerRecord], ProducerRecord]) -> Self:
        """Return the record after all interceptors.

        Each interceptor gets the result of the interceptor before it.
        """
        record: Self = _intercepted(self, interceptors)
        return record

    def to_message(self, *, offset: int = 0, timestamp: int) -> Kip82Message:
        """Return the message to send. ``timestamp`` is used if the record has no timestamp.

        The message shares the record's headers and does not copy them.
        """
        own = timestamp if self.timestamp is None else self.timestamp
        return Kip82Message(offset, own, self.key, self.value, self.headers)


@dataclass(slots=True)
class ConsumerRecord:
    """A consumed record: the fields of `Kip82Message`, and its topic and partition."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Headers

    def get_headers(self) -> Headers:
        """Return the headers, as the document's accessor ``getHeaders()`` does."""
        return self.headers

    def intercepted(self, *interceptors: Callable[[ConsumerRecord], ConsumerRecord]) -> Self:
        """Return the record after all interceptors.

        Each interceptor gets the result of the interceptor before it.
        """
        record: Self = _intercepted(self, interceptors)
        return record

    @classmethod
    def from_message(cls, topic: str, partition: int, message: Kip82Message) -> Self:
        """Return the record for a message of a partition. The headers are not copied."""
        return cls(
            topic,
            partition,
            message.offset,
            message.timestamp,
            message.timestamp_type,
            message.key,
            message.value,
            message.headers,
        )


def _intercepted(record: Any, interceptors: tuple[Callable[[Any], Any], ...]) -> Any:
    kind = type(record)
    for index, interceptor in enumerate(interceptors):
        if not callable(interceptor):
            raise refuse(f"interceptors[{index}]", "a callable", interceptor)
        record = interceptor(record)
        if not isinstance(record, kind):
            # An interceptor may forget to return the record. Nothing would then be sent.
            raise refuse(f"what interceptors[{index}] returns", f"a {kind.__name__}", record)
    return record
