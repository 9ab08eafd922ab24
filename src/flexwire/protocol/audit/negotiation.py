"""Find the API version that a client and a release share, or determine what happens without one.

A client that negotiates sends the lower of the two maximum versions. This requires a common
version, but a release may lack an API completely, or may have removed all versions that the client
knows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.protocol.audit.evidence import read_versions, stable_versions
from flexwire.protocol.audit.software import find_missing_api, heeds_offers_from
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.versions import Versions

if TYPE_CHECKING:
    from flexwire.parties import AuditVerdict, Party
    from flexwire.protocol.audit.evidence import Use

# Brokers offer versions in early access only with this setting.
_UNSTABLE = "unstable.api.versions.enable"

NEVER_ASKED: Final = (
    "the client never sent ApiVersions on the connections that were captured from their start"
)


class UseVerdict(NamedTuple):
    """A verdict about a missing version: the verdict, the name of the rule, and a sentence."""

    verdict: AuditVerdict
    evidence: str
    reason: str


def negotiates(party: Party, use: Use) -> bool:
    """Return whether the client asks for the broker's versions and uses the response."""
    return use.asked in {"here", "elsewhere"} and not heeds_offers_from(party)


def common_versions(party: Party, use: Use, release: str) -> Versions:
    """Return the versions that the client may use and the release offers.

    This function assumes that the client can use every version that occurs in some release
    together with the version that was seen. If the client's software is known to use only one
    version, the result is this version.
    """
    missing_api = find_missing_api(use.api_key, party)
    if missing_api is not None and missing_api.speaks:
        spoken = Versions(use.version, use.version)
    else:
        spoken = versions_spoken_with(use.api_key, use.version)
    return spoken & stable_versions(use.api_key, release)


# The cache is limited, because clients may send any API key and version.
@per_catalog
@lru_cache(maxsize=4096)
def versions_spoken_with(api_key: int, version: int) -> Versions:
    """Return all versions in the releases that support this version.

    A version that is newer than the catalog is assumed to occur together with the versions in the
    newest release.

    >>> versions_spoken_with(76, 0), versions_spoken_with(76, 1), versions_spoken_with(68, 0)
    (Versions('0'), Versions('1'), Versions('0-1'))
    """
    releases = catalog().final_releases
    each = [read_versions(api_key, release) for release in releases]
    if each[-1] and version > each[-1].highest:
        return each[-1]
    spoken = Versions.NONE
    for versions in each:
        if version in versions:
            spoken |= versions
    return spoken


def first_common_release(party: Party, use: Use) -> str | None:
    """Return the first release that offers a version that the client may use."""
    releases = catalog().final_releases
    return next((release for release in releases if common_versions(party, use, release)), None)


def first_release_reading(use: Use) -> str | None:
    """Return the first release that offers the version that was captured."""
    releases = catalog().final_releases
    each = (release for release in releases if use.version in stable_versions(use.api_key, release))
    return next(each, None)


def find_documented_fallback(party: Party, use: Use, release: str) -> str:
    """Return the documented behavior of a client if an API is missing, or an empty string.

    The behavior applies only to a client that asks for the broker's versions and finds no common
    version.
    """
    missing_api = find_missing_api(use.api_key, party)
    if missing_api is None or missing_api.outcome != "goes on" or not negotiates(party, use):
        return ""
    return "" if common_versions(party, use, release) else missing_api.what


def judge_without_common_version(party: Party, use: Use, release: str) -> UseVerdict | None:
    """Return the verdict on a missing common version, or None if the client still works."""
    if find_documented_fallback(party, use, release):
        return None
    lacks, evidence = _what_lacks(use, release)
    missing_api = find_missing_api(use.api_key, party)
    if missing_api is not None and missing_api.outcome == "fails":
        return UseVerdict("will break", evidence, f"{lacks}, and {missing_api.what}")
    if use.asked == "never":
        reason = f"{lacks}; {NEVER_ASKED}, so the client sends the request anyway"
        return UseVerdict("will break", evidence, reason)
    first = heeds_offers_from(party)
    if first:
        reason = f"Before {first}, the client ignores the versions that the broker offers"
        reason = f"{lacks}. {reason}, so the client sends the request anyway"
        return UseVerdict("will break", evidence, reason)
    if missing_api is not None:
        reason = (
            f"{missing_api.what}, if the client asks for ApiVersions; the capture does not show "
            "whether it does"
        )
        return UseVerdict("cannot say", evidence, f"{lacks}; {reason}")
    reason = "it is not known whether the client works without this request"
    return UseVerdict("cannot say", evidence, f"{lacks}, and {reason}")


def judge_unstable_version(party: Party, use: Use, release: str) -> UseVerdict | None:
    """Return the verdict on an early-access version, or None if another version is usable."""
    if common_versions(party, use, release) and negotiates(party, use):
        return None
    reason = f"Kafka {release} offers this version only with {_UNSTABLE}=true"
    return UseVerdict("cannot say", "early access", reason)


def _what_lacks(use: Use, release: str) -> tuple[str, str]:
    offered = stable_versions(use.api_key, release)
    if offered:
        reason = (
            f"Kafka {release} offers versions {offered} of this API, but no release reads both "
            f"version {use.version} and one of these versions"
        )
        return reason, "no version in common"
    if read_versions(use.api_key, release):
        return f"Kafka {release} offers this API only with {_UNSTABLE}=true", "API missing"
    return f"Kafka {release} does not support this API", "API missing"
