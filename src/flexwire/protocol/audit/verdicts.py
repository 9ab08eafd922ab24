"""The verdicts: the effects of a release on one client, based on the evidence about the client.

Each use of a version is judged separately, and the client as a whole is judged by the known facts
about its software. A refusal alone never results in a verdict. Two observations show whether the
client depends on the version: the versions that the broker offered to the client, and whether the
client asked for these versions. If both observations are missing, the verdict is "cannot say".

Requests that set configurations are judged by the names of the configurations, because the versions
of CreateTopics, AlterConfigs and IncrementalAlterConfigs are not relevant for configurations.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flexwire.parties import VERDICTS
from flexwire.protocol.apis import api_key_of, api_name
from flexwire.protocol.audit.evidence import (
    ClientFinding,
    Conduct,
    Use,
    read_versions,
    refusal,
    stable_versions,
)
from flexwire.protocol.audit.negotiation import (
    NEVER_ASKED,
    UseVerdict,
    common_versions,
    find_documented_fallback,
    judge_unstable_version,
    judge_without_common_version,
    negotiates,
)
from flexwire.protocol.audit.remedies import name_of, remedy_of
from flexwire.protocol.audit.software import (
    CHECKED,
    SoftwareFact,
    cite_sources,
    facts_about,
    heeds_offers_from,
)
from flexwire.protocol.configurations import find_removal
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.schema.catalog import catalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.parties import AuditVerdict, Party
    from flexwire.protocol.audit.evidence import ConfigurationUse


@dataclass(frozen=True, slots=True)
class ConfigurationVerdict:
    """The verdict of a release on one configuration that a client sets."""

    configured: ConfigurationUse
    verdict: AuditVerdict
    evidence: str
    reason: str
    remedy: str
    source: str


def judge_configured(
    configured: frozenset[ConfigurationUse], release: str
) -> Iterator[ConfigurationVerdict]:
    """Return the verdicts on configurations that a release lacks, in the order of their names.

    For a topic, the release rejects the complete request with INVALID_CONFIG (40). For a broker,
    the release accepts any name, so the configuration has no effect and no error is reported.
    """
    for use in sorted(configured):
        since = find_removal(use.kind, use.name, release)
        if since is None:
            continue
        what = f"the client sets {use.name} for a {use.kind} with {api_name(use.api_key)}"
        remedy = f"leave {use.name} out of the request"
        if use.kind == "topic":
            reason = f"{what}, and Kafka {release} returns INVALID_CONFIG (40)"
            yield ConfigurationVerdict(
                use, "will break", "configuration gone", reason, remedy, "KIP-724"
            )
        else:
            reason = (
                f"{what}, which Kafka {release} accepts but ignores; the last release with this "
                f"configuration is {since.last}"
            )
            yield ConfigurationVerdict(
                use, "will do nothing", "configuration without effect", reason, remedy, ""
            )


# A broker that lacks a version of ApiVersions answers with version 0, and the client asks again
# (KIP-511). Therefore no version of ApiVersions can fail. The units below, longest first, are for
# the period in which a client was seen. A time shorter than the last unit is not relevant.
_UNITS_US = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
)
_THREE_DIGITS, _ROUNDED_UP = 100, 0.9995


def judge(
    party: Party, conduct: Conduct, release: str, *, brokers: Sequence[str] = ()
) -> list[ClientFinding]:
    """Return a release's verdicts about a client: at least one, the most serious first.

    ``brokers`` contains the possible releases of the captured brokers, or is empty if they are
    unknown. Raises `UnknownMessageError` for a release that is not in the catalog, and
    `ArgumentError` for a preview.
    """
    release = catalog().final_release(release)
    if conduct.role != "client":
        reason = (
            f"the requests show that this is a {conduct.role}, which is upgraded with the brokers"
        )
        return [_whole(conduct, release, UseVerdict("not judged", conduct.role, reason))]
    findings = [
        *_about_versions(party, conduct, release, brokers),
        *_about_software(party, conduct, release),
        *_about_configurations(conduct, release),
    ]
    findings.sort(key=lambda finding: (VERDICTS.index(finding.verdict), -finding.requests))
    if not any(
        VERDICTS.index(finding.verdict) <= VERDICTS.index("cannot say") for finding in findings
    ):
        findings.append(_whole(conduct, release, _nothing(party, conduct, release)))
    return findings


def _nothing(party: Party, conduct: Conduct, release: str) -> UseVerdict:
    seen = len(conduct.api_keys)
    apis = "1 API" if seen == 1 else f"{seen} APIs"
    spread = "1 connection" if conduct.connections == 1 else f"{conduct.connections:,} connections"
    seen_us = max(use.last_us for use in conduct.uses) - min(use.first_us for use in conduct.uses)
    span = f"{spread} in {_lasting(seen_us)}"
    lacking = "".join(f"; {fallback}" for fallback in _lacking(party, conduct, release))
    reason = (
        f"the client used {apis}, and it either negotiates versions or sent only versions that "
        f"Kafka {release} reads"
    )
    return UseVerdict("nothing seen against it", "versions", f"{reason}{lacking}; {span}")


def _lacking(party: Party, conduct: Conduct, release: str) -> list[str]:
    """Return the client's documented behavior for the APIs that the release lacks."""
    instead: defaultdict[str, list[str]] = defaultdict(list)
    for use in sorted(conduct.uses, key=lambda use: use.api_key):
        name = name_of(use.api_key)
        what = find_documented_fallback(party, use, release)
        if what and name not in instead[what]:
            instead[what].append(name)
    return [f"without {' and '.join(names)}, {what}" for what, names in instead.items() if names]


def _lasting(microseconds: int) -> str:
    """Return a duration with three significant digits, in a unit that is easy to read.

    >>> _lasting(1_905), _lasting(1_000_000), _lasting(90 * 60_000_000)
    ('less than a second', '1 second', '1.5 hours')
    """
    for unit, length in _UNITS_US:
        many = microseconds / length
        # If rounding to three digits would reach the next unit, the next unit is used.
        if many >= _ROUNDED_UP:
            number = f"{many:.0f}" if many >= _THREE_DIGITS else f"{max(many, 1):.3g}"
            return f"{number} {unit}{'' if number == '1' else 's'}"
    return "less than a second"


def _about_versions(
    party: Party, conduct: Conduct, release: str, brokers: Sequence[str]
) -> list[ClientFinding]:
    uses: defaultdict[tuple[int, int], list[Use]] = defaultdict(list)
    for use in conduct.uses:
        uses[use.api_key, use.version].append(use)
    findings = []
    for (api_key, version), alike in uses.items():
        judged = [(same, use) for use in alike if (same := classify(party, use, release, brokers))]
        if judged:
            gravest, use = min(judged, key=lambda pair: VERDICTS.index(pair[0].verdict))
            last, first = refusal(api_key, version, release)
            is_certain = gravest.verdict != "cannot say"
            remedy, source = remedy_of(party, use, release, is_certain=is_certain)
            findings.append(
                ClientFinding(
                    release,
                    gravest.verdict,
                    gravest.evidence,
                    gravest.reason,
                    requests=sum(same.requests for same in alike),
                    first_us=min(same.first_us for same in alike),
                    last_us=max(same.last_us for same in alike),
                    api_key=api_key,
                    version=version,
                    offered=use.offered,
                    last_accepting=last,
                    first_refusing=first,
                    remedy=remedy,
                    source=source,
                )
            )
    return findings


def classify(
    party: Party, use: Use, release: str, brokers: Sequence[str] = ()
) -> UseVerdict | None:
    """Return a release's verdict on a client's use of a version, or None if nothing is wrong."""
    is_asking = use.api_key == api_key_of(NEGOTIATES)
    if is_asking or use.version in stable_versions(use.api_key, release):
        return None
    reads = read_versions(use.api_key, release)
    if use.version in reads:
        return judge_unstable_version(party, use, release)
    if use.closed and _refused_here(use, brokers):
        return UseVerdict(
            "broke",
            "closed without an answer",
            "the broker in the capture closed the connection without answering a request in this "
            "version",
        )
    last, _ = refusal(use.api_key, use.version, release)
    if last and not reads:
        return _gone(release)
    if not common_versions(party, use, release):
        return judge_without_common_version(party, use, release)
    return _too_new(party, use, release) if use.version > reads.highest else _too_old(use)


def _refused_here(use: Use, brokers: Sequence[str]) -> bool:
    """Return whether the captured broker refuses the version.

    A broker may also close a connection for other reasons.
    """
    if use.offered is None or use.version not in use.offered:
        return True
    # A broker does not read every version that it advertises (KAFKA-18659).
    return bool(brokers) and not any(
        use.version in read_versions(use.api_key, broker) for broker in brokers
    )


def _gone(release: str) -> UseVerdict:
    reason = f"Kafka {release} no longer has this API, so there is nothing to negotiate"
    return UseVerdict("will break", "API removed", reason)


def _too_old(use: Use) -> UseVerdict:
    offers = f"; the broker offers {use.offered}" if use.offered else ""
    if use.asked == "never":
        reason = f"{NEVER_ASKED}{offers}"
        return UseVerdict("will break", "never asked", reason)
    if use.offered is not None and use.offered.highest > use.version:
        reason = (
            f"the broker offered {use.offered}, so the client or one of its settings sets the limit"
        )
        return UseVerdict("will break", "offered more", reason)
    if use.offered is None:
        reason = (
            "the capture contains neither the broker's ApiVersions response nor the start of a "
            "connection"
        )
        if use.asked != "unseen":
            reason = "the client sent ApiVersions, but the capture lacks the broker's response"
        return UseVerdict("cannot say", "range not seen", reason)
    if not use.offered:
        reason = "the broker did not offer this API, but the client sent the request anyway"
        return UseVerdict("will break", "not offered", reason)
    reason = f"the broker offered only {use.offered}, so the limit may come from the broker"
    return UseVerdict("cannot say", "offered no more", reason)


def _too_new(party: Party, use: Use, release: str) -> UseVerdict | None:
    if negotiates(party, use):
        # The client sends the lower of the two maximum versions, and there is a common version.
        return None
    newer = f"the version is newer than any version that Kafka {release} reads"
    first = heeds_offers_from(party)
    if first and use.asked != "never":
        reason = f"{newer}; client releases before {first} ignore the versions that brokers offer"
        return UseVerdict("will break", "does not negotiate", reason)
    if use.asked == "never":
        reason = f"{newer}; {NEVER_ASKED}"
        return UseVerdict("will break", "never asked", reason)
    reason = f"{newer}, and the capture does not show whether the client asks for ApiVersions"
    return UseVerdict("cannot say", "asking not seen", reason)


def _about_configurations(conduct: Conduct, release: str) -> list[ClientFinding]:
    findings = []
    for judged in judge_configured(conduct.configured, release):
        verdict = UseVerdict(judged.verdict, judged.evidence, judged.reason)
        finding = _whole(conduct, release, verdict, remedy=judged.remedy, source=judged.source)
        # All requests of the API count, because the evidence does not show which request set the
        # configuration.
        own = [use for use in conduct.uses if use.api_key == judged.configured.api_key]
        findings.append(
            replace(
                finding,
                requests=sum(use.requests for use in own),
                first_us=min((use.first_us for use in own), default=finding.first_us),
                last_us=max((use.last_us for use in own), default=finding.last_us),
            )
        )
    return findings


def _about_software(party: Party, conduct: Conduct, release: str) -> list[ClientFinding]:
    return [_known(conduct, release, fact) for fact in facts_about(party, conduct, release)]


def _known(conduct: Conduct, release: str, fact: SoftwareFact) -> ClientFinding:
    verdict, what = fact.verdict, fact.what
    if not fact.certain:
        verdict = "cannot say"
        what += "; the capture does not show whether this applies to the client"
    use_verdict = UseVerdict(verdict, fact.id, what)
    return _whole(
        conduct,
        release,
        use_verdict,
        remedy=fact.remedy,
        source=cite_sources(fact.sources, CHECKED),
    )


def _whole(
    conduct: Conduct, release: str, judgement: UseVerdict, *, remedy: str = "", source: str = ""
) -> ClientFinding:
    """Return a finding about the client as a whole."""
    return ClientFinding(
        release,
        judgement.verdict,
        judgement.evidence,
        judgement.reason,
        requests=conduct.requests,
        first_us=min(use.first_us for use in conduct.uses),
        last_us=max(use.last_us for use in conduct.uses),
        remedy=remedy,
        source=source,
    )
