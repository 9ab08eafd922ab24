"""What a producer sends and a consumer gets, with headers, and the hooks that see them.

Keys and values are bytes, or what a serializer makes bytes of and a deserializer of bytes. "Each
headers value will be custom serialisable by the interceptors/plugins that use the header": so
interceptors see a record with its headers, in Kafka's order: before a producer serializes it, after
a consumer has deserialized it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from flexwire.records.headers import Headers
from flexwire.records.kip82.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from flexwire.records.attributes import TimestampType

Serializer: TypeAlias = Callable[[str, Headers, Any], bytes | None]
"""Called with the topic, the headers, which it may add to, and the key or value."""
Deserializer: TypeAlias = Callable[[str, Headers, bytes | None], Any]
"""Called with the topic, the headers and the bytes of the key or value."""


@dataclass(slots=True)
class ProducerRecord:
    """A record to send, to a partition or to one that the producer chooses.

    >>> record = ProducerRecord("orders", b"paid", key=b"order-7")
    >>> record.headers.put_long("user", 7)
    >>> record.to_message(timestamp=1700000000000).headers.get("user")
    [7]
    """

    topic: str
    value: Any
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers = field(default_factory=Headers)

    def get_headers(self) -> Headers:
        """Give the headers: the document's accessor."""
        return self.headers

    def to_message(
        self,
        *,
        offset: int = 0,
        timestamp: int,
        interceptors: Iterable[Callable[[ProducerRecord], ProducerRecord]] = (),
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
    ) -> Message:
        """Give the message to send; ``timestamp`` is for a record that has none of its own.

        Interceptors see the record one after the other, and what the last of them gives is sent.
        Without a serializer a key or value is bytes or None. The headers are that record's, not a
        copy.

        >>> def stamped(record):
        ...     record.headers.put_string("trace", "a1")
        ...     return record
        >>> def as_text(topic, headers, value):
        ...     return value.encode()
        >>> message = ProducerRecord("orders", "paid").to_message(
        ...     timestamp=1700000000000, interceptors=[stamped], value_serializer=as_text
        ... )
        >>> message.value, message.headers.get("trace")
        (b'paid', ['a1'])
        """
        sent = self
        for intercept in interceptors:
            sent = intercept(sent)
        key, value = sent.key, sent.value
        if key_serializer is not None:
            key = key_serializer(sent.topic, sent.headers, key)
        if value_serializer is not None:
            value = value_serializer(sent.topic, sent.headers, value)
        own = timestamp if sent.timestamp is None else sent.timestamp
        return Message(offset, own, key, value, sent.headers)


@dataclass(slots=True)
class ConsumerRecord:
    """A record as it was consumed; its fields are those of `Message`, and where it came from."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: Headers

    def get_headers(self) -> Headers:
        """Give the headers: the document's accessor."""
        return self.headers

    @classmethod
    def from_message(
        cls,
        topic: str,
        partition: int,
        message: Message,
        *,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        interceptors: Iterable[Callable[[Self], Self]] = (),
    ) -> Self:
        """Give the record that a message of a partition is; the headers are not copied.

        Interceptors see it one after the other once it is deserialized.
        """
        key, value = message.key, message.value
        if key_deserializer is not None:
            key = key_deserializer(topic, message.headers, key)
        if value_deserializer is not None:
            value = value_deserializer(topic, message.headers, value)
        made = cls(
            topic,
            partition,
            message.offset,
            message.timestamp,
            message.timestamp_type,
            key,
            value,
            message.headers,
        )
        for intercept in interceptors:
            made = intercept(made)
        return made
