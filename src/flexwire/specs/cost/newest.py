"""Which requests are at their newest version: only their senders take up a version after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.protocol.audit import OPENING_APIS
from flexwire.schema.spec import MessageType

if TYPE_CHECKING:
    from flexwire.specs.cost.meter import Meter


@dataclass(frozen=True, slots=True)
class NewestRequests:
    """How many requests were compared, and how many of them are at the old specs' newest version.

    What a connection begins with (ApiVersions, SASL) and unstable versions are not counted.
    """

    requests: int = 0
    at_newest: int = 0


def newest_requests(meter: Meter) -> NewestRequests:
    """Count the requests that were compared."""
    requests = at_newest = 0
    for row in meter.rows.values():
        edition = meter.old.specs.find((row.name, None, None))
        spec = None if edition is None else edition.spec
        if spec and spec.type is MessageType.REQUEST and spec.api_key not in OPENING_APIS:
            newest = spec.valid_versions.highest - spec.latest_version_unstable
            requests += row.messages
            at_newest += row.messages if row.version >= newest else 0
    return NewestRequests(requests, at_newest)


def newest_sentence(found: NewestRequests) -> str:
    """One sentence about them; empty where there is no request.

    >>> newest_sentence(NewestRequests(200, 50))
    '50 of 200 requests (25.0 %) are at the newest version: only their senders gain by a newer one'
    """
    if not found.requests:
        return ""
    part = 100 * found.at_newest / found.requests
    return (
        f"{found.at_newest:,} of {found.requests:,} requests ({part:.1f} %) are at the newest "
        "version: only their senders gain by a newer one"
    )
