"""The parties in captured traffic, and the terms in which an audit judges them.

`flexwire.protocol.audit` uses these classes for its verdicts, and the facts of a report contain
them. Neither package depends on the other, so this module contains their shared definitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Role = Literal["client", "broker", "controller"]
"""The role of a party in the cluster."""

AuditVerdict = Literal[
    "broke",
    "will break",
    "known to break",
    "cannot say",
    "will do nothing",
    "documented as unsupported",
    "nothing seen against it",
    "not judged",
]
"""The possible effects of a release on a party, the most serious first.

The verdict "will do nothing" means that the release accepts the setting and ignores it. "not
judged" is the verdict on every broker and controller.
"""

VERDICTS: tuple[AuditVerdict, ...] = get_args(AuditVerdict)
"""Every verdict, the most serious first."""


@dataclass(frozen=True, slots=True, order=True)
class Client:
    """The sender of requests, as described in its requests. None means unknown.

    The software is known only after an ApiVersions request of version 3 or newer (KIP-511).

    >>> Client("billing", "librdkafka", "2.6.1").software
    'librdkafka 2.6.1'
    """

    client_id: str | None
    software_name: str | None = None
    software_version: str | None = None

    @property
    def software(self) -> str | None:
        """Name and version in one string, or None if neither is known."""
        return " ".join(filter(None, (self.software_name, self.software_version))) or None


@dataclass(frozen=True, slots=True, order=True)
class Party:
    """The sender of requests and its address. Facts that the traffic does not reveal are None.

    ``address`` is the host without the port, because a client changes its port with each
    connection. Request logs contain the principal, but captures do not.
    """

    client_id: str | None
    address: str | None
    principal: str | None = None
    software_name: str | None = None
    software_version: str | None = None

    @property
    def client(self) -> Client:
        """The sender without its address."""
        return Client(self.client_id, self.software_name, self.software_version)

    @property
    def software(self) -> str | None:
        """Name and version of the sender's software in one string, or None if neither is known."""
        return self.client.software
