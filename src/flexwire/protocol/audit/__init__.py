"""The audit of clients against a Kafka release: verdicts from evidence, without Spark.

A release's broker either refuses a request version or reads it. Whether a client stops working is
another question. A client that negotiates sends the lower of the two maximum versions, so an old
version may be due to the broker and not to the client. A verdict therefore needs more evidence than
the version (`Use`): which versions the broker offered, whether the client asked for them, and how
the connection ended.
"""

from __future__ import annotations

from flexwire.facts.audit import ClusterGate as ClusterFinding
from flexwire.parties import VERDICTS, AuditVerdict, Party, Role
from flexwire.protocol.audit.cluster import ClusterSeen, NameSample, judge_cluster
from flexwire.protocol.audit.evidence import (
    OPENING_APIS,
    ClientFinding,
    Conduct,
    ConfigurationUse,
    NegotiationEvidence,
    Use,
    audited_releases,
    fitting_releases,
    newest_version,
    refusal,
    role_of,
    to_audited_releases,
)
from flexwire.protocol.audit.software import (
    LIBRARIES,
    PINS,
    Library,
    libraries_are_about,
    pinning_settings,
)
from flexwire.protocol.audit.verdicts import judge

__all__ = [
    "LIBRARIES",
    "OPENING_APIS",
    "PINS",
    "VERDICTS",
    "AuditVerdict",
    "ClientFinding",
    "ClusterFinding",
    "ClusterSeen",
    "Conduct",
    "ConfigurationUse",
    "Library",
    "NameSample",
    "NegotiationEvidence",
    "Party",
    "Role",
    "Use",
    "audited_releases",
    "fitting_releases",
    "judge",
    "judge_cluster",
    "libraries_are_about",
    "newest_version",
    "pinning_settings",
    "refusal",
    "role_of",
    "to_audited_releases",
]
