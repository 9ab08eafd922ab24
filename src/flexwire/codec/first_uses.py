"""The first uses of a version run on the reference: most processes never use it so often again.

Generating code costs one to five milliseconds for each way, and the reference takes some ten times
of what that code takes. So code is generated once about as much was spent without it: nobody pays
more than twice, and a process that decodes one message does not wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.codec.structs import MessageStruct

if TYPE_CHECKING:
    from flexwire.schema.served import Key

PAYS = 2_000
"""The work, in bytes, from which generating the code of a version costs less than going without."""

# What a message costs besides its bytes, or a structure as an object.
_EACH = 100


class FirstUses:
    """The work that each version of a message was without generated code."""

    def __init__(self) -> None:
        self._done: dict[Key, int] = {}

    def take(self, key: Key, work: int) -> bool:
        """Whether this much more is left to the reference."""
        done = self._done[key] = self._done.get(key, 0) + work + _EACH
        return done < PAYS


def weight_of(message: object) -> int:
    """Say how much work an object is to encode, or more than pays, if it is that.

    >>> from flexwire.messages import MetadataRequest
    >>> Topic = MetadataRequest.MetadataRequestTopic
    >>> weight_of(MetadataRequest()), weight_of(MetadataRequest(topics=[Topic(name="orders")]))
    (100, 207)
    >>> weight_of(MetadataRequest(topics=[Topic()] * 1_000_000)) > PAYS
    True
    """
    weight, waiting = 0, [message]
    # What is in itself has an end here too.
    while waiting and weight <= PAYS:
        value: Any = waiting.pop()
        if isinstance(value, MessageStruct):
            weight += _EACH
            waiting += [getattr(value, name, None) for name in value.__struct_fields__]
        elif isinstance(value, list | tuple):
            weight += len(value)
            waiting += value[:PAYS]
        elif isinstance(value, str | bytes | bytearray | memoryview):
            weight += len(value)
    return weight
