"""Which responses say for how long a broker throttles a client, as their specs say."""

from __future__ import annotations

from functools import cache
from typing import Final

from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.spec import MessageType

THROTTLE: Final = "throttle_time_ms"
"""The field of a response's body with the time in milliseconds: Kafka has no other name for it."""


@per_catalog
@cache
def throttled_messages() -> tuple[str, ...]:
    """Return the responses that have `THROTTLE` in some version, by name.

    >>> "FetchResponse" in throttled_messages(), "SaslHandshakeResponse" in throttled_messages()
    (True, False)
    """
    return tuple(name for name in catalog().names() if _has_throttle(name))


def _has_throttle(message: str) -> bool:
    entry = catalog().entry(message)
    return entry.type is MessageType.RESPONSE and any(
        one.attribute == THROTTLE for spec in entry.all_specs() for one in spec.fields
    )
