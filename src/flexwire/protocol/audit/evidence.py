"""What an audit knows of a client, and what it finds.

The evidence is gathered elsewhere and judged elsewhere (`flexwire.protocol.audit.verdicts`): here
stands what the two say to each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from flexwire.parties import AuditVerdict, Role
    from flexwire.protocol.configurations import ConfiguredKind
    from flexwire.versions import Versions

Asked = Literal["here", "elsewhere", "never", "unseen"]
"""Where a client asked for ApiVersions: on this connection ("here"), on another one ("elsewhere"),
nowhere although the capture saw this connection from its start ("never"), or perhaps before the
capture began ("unseen")."""


@dataclass(frozen=True, slots=True)
class Use:
    """One client's requests of one API at one version, on connections with the same evidence.

    ``offered`` is the range of the API in the ApiVersions responses of the captured broker: None
    where no response was seen, `Versions.NONE` where it does not name the API. ``closed`` means
    that the broker closed these connections without an answer to this version.
    """

    api_key: int
    version: int
    requests: int
    first_us: int
    last_us: int
    asked: Asked
    offered: Versions | None = None
    closed: bool = False


class Configured(NamedTuple):
    """A configuration that a request sets: of what, by which API, and its name."""

    kind: ConfiguredKind
    api_key: int
    name: str


@dataclass(frozen=True, slots=True)
class Conduct:
    """All that was seen of one client, and with which evidence.

    ``connections`` are those that count for it: each connection counts for one client.
    ``configured`` are configurations that it set and some release lacks. ``mechanisms`` are those
    of its SASL handshakes. ``whole`` means that the capture saw all of its connections from their
    start, and so each handshake there was.
    """

    role: Role
    uses: tuple[Use, ...]
    connections: int = 1
    mechanisms: frozenset[str] = frozenset()
    whole: bool = False
    configured: frozenset[Configured] = frozenset()

    @property
    def requests(self) -> int:
        """The number of its requests."""
        return sum(use.requests for use in self.uses)

    @property
    def api_keys(self) -> frozenset[int]:
        """The APIs that it used."""
        return frozenset(use.api_key for use in self.uses)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one release means to one client: a verdict, and the evidence for it.

    ``evidence`` names the rule that gave the verdict, ``reason`` is a sentence with its figures.
    A finding about a version has ``api_key`` and ``version``, with all of the client's requests
    at that version counted; one about the software, or about the client as a whole, has neither.
    ``last_accepting`` is the last release that reads the version, ``first_refusing`` the first
    after it; either is None where the catalog has no such release.
    """

    release: str
    verdict: AuditVerdict
    evidence: str
    reason: str
    requests: int
    first_us: int
    last_us: int
    api_key: int | None = None
    version: int | None = None
    offered: Versions | None = field(default=None)
    last_accepting: str | None = None
    first_refusing: str | None = None
    remedy: str = ""
    source: str = ""
