"""The verdicts: what a release means to one client, from what was seen of it.

Each use of a version is judged by itself, and the client as a whole by what its software is known
for. A refusal alone is never a verdict: whether the client depends on the version is shown by what
it was offered and whether it asked, and where neither was seen the verdict is "cannot say".
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flexwire.errors import UnknownMessageError
from flexwire.parties import VERDICTS
from flexwire.protocol.apis import api_name
from flexwire.protocol.audit.configuring import judge_configured
from flexwire.protocol.audit.evidence import Conduct, Finding, Use
from flexwire.protocol.audit.known import CHECKED, Known, known_of, pinning_settings
from flexwire.protocol.audit.releases import read_versions, refusal, returned_in
from flexwire.schema.catalog import catalog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.parties import AuditVerdict, Party

# A broker that does not know its version answers with version 0, and the client asks again
# (KIP-511): no version of it can break.
_API_VERSIONS = 18
# The units of how long a client was seen, the longest first; below the last it is as good as none.
_UNITS_US = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
)
_THREE_DIGITS, _ROUNDED_UP = 100, 0.9995


@dataclass(frozen=True, slots=True)
class _Told:
    """What the evidence of one use says."""

    verdict: AuditVerdict
    evidence: str
    reason: str

    @property
    def gravity(self) -> int:
        return VERDICTS.index(self.verdict)


def judge(
    party: Party, conduct: Conduct, release: str, *, brokers: Sequence[str] = ()
) -> list[Finding]:
    """All that a release means to a client, the gravest first; never empty, and never "safe".

    ``brokers`` are the releases that the captured brokers may be, empty where that is unknown.
    Raises `UnknownMessageError` for a release that the catalog does not have.
    """
    release = catalog().release(release)
    if conduct.role != "client":
        reason = f"it sends what only a {conduct.role} sends, and is upgraded with the brokers"
        return [_whole(conduct, release, _Told("not judged", conduct.role, reason))]
    found = [
        *_about_versions(party, conduct, release, brokers),
        *_about_software(party, conduct, release),
        *_about_configurations(conduct, release),
    ]
    found.sort(key=lambda one: (VERDICTS.index(one.verdict), -one.requests))
    if not any(VERDICTS.index(one.verdict) <= VERDICTS.index("cannot say") for one in found):
        found.append(_whole(conduct, release, _nothing(conduct, release)))
    return found


def _nothing(conduct: Conduct, release: str) -> _Told:
    seen = len(conduct.api_keys)
    apis = "1 API" if seen == 1 else f"{seen} APIs"
    spread = "1 connection" if conduct.connections == 1 else f"{conduct.connections:,} connections"
    seen_us = max(use.last_us for use in conduct.uses) - min(use.first_us for use in conduct.uses)
    span = f"{spread} in {_lasting(seen_us)}"
    reason = f"Kafka {release} reads every version it used of {apis}, or it negotiates; {span}"
    return _Told("nothing seen against it", "versions", reason)


def _lasting(microseconds: int) -> str:
    """How long that is, in a unit that a reader has a feeling for, to three digits.

    >>> _lasting(1_905), _lasting(1_000_000), _lasting(90 * 60_000_000)
    ('less than a second', '1 second', '1.5 hours')
    """
    for unit, length in _UNITS_US:
        many = microseconds / length
        # What three digits would round up to the next unit is said in that.
        if many >= _ROUNDED_UP:
            told = f"{many:.0f}" if many >= _THREE_DIGITS else f"{max(many, 1):.3g}"
            return f"{told} {unit}{'' if told == '1' else 's'}"
    return "less than a second"


def _about_versions(
    party: Party, conduct: Conduct, release: str, brokers: Sequence[str]
) -> list[Finding]:
    uses: defaultdict[tuple[int, int], list[Use]] = defaultdict(list)
    for use in conduct.uses:
        uses[use.api_key, use.version].append(use)
    found = []
    for (api_key, version), alike in uses.items():
        told = [(one, use) for use in alike if (one := classify(use, release, brokers))]
        if told:
            gravest, use = min(told, key=lambda pair: pair[0].gravity)
            last, first = refusal(api_key, version, release)
            found.append(
                Finding(
                    release,
                    gravest.verdict,
                    gravest.evidence,
                    gravest.reason,
                    requests=sum(one.requests for one in alike),
                    first_us=min(one.first_us for one in alike),
                    last_us=max(one.last_us for one in alike),
                    api_key=api_key,
                    version=version,
                    offered=use.offered,
                    last_accepting=last,
                    first_refusing=first,
                    remedy=_remedy(party, use, gravest, release),
                )
            )
    return found


def classify(use: Use, release: str, brokers: Sequence[str] = ()) -> _Told | None:
    """What one use says of its client on a release; None where it says nothing against it."""
    if use.api_key == _API_VERSIONS:
        return None
    reads = read_versions(use.api_key, release)
    if use.version in reads:
        return None
    if use.closed and _refused_here(use, brokers):
        return _Told(
            "broke",
            "closed without an answer",
            "the captured broker closed the connection without answering this version",
        )
    if reads and use.version > reads.highest:
        return _too_new(use, release)
    last, _ = refusal(use.api_key, use.version, release)
    if not reads:
        # An API that came after the release is as unknown to it as a version that did.
        return _gone(release) if last else _too_new(use, release)
    return _too_old(use)


def _refused_here(use: Use, brokers: Sequence[str]) -> bool:
    """Whether the captured broker refuses the version: a close alone can have other reasons."""
    if use.offered is None or use.version not in use.offered:
        return True
    # What it advertises it does not always read (KAFKA-18659).
    return bool(brokers) and not any(
        use.version in read_versions(use.api_key, one) for one in brokers
    )


def _gone(release: str) -> _Told:
    reason = f"Kafka {release} does not have this API any more, so there is nothing to negotiate"
    return _Told("will break", "API removed", reason)


def _too_old(use: Use) -> _Told:
    offers = f"; the broker offers {use.offered}" if use.offered else ""
    if use.asked == "never":
        reason = f"it never asked for ApiVersions on connections seen from their start{offers}"
        return _Told("will break", "never asked", reason)
    if use.offered is not None and use.offered.highest > use.version:
        reason = f"the broker offered {use.offered}, so the limit is the client's or a setting's"
        return _Told("will break", "offered more", reason)
    if use.offered is None:
        reason = "no ApiVersions response of the broker was seen, nor a connection from its start"
        if use.asked != "unseen":
            reason = "it asked for ApiVersions, and what the broker offered was not seen"
        return _Told("cannot say", "range not seen", reason)
    if not use.offered:
        reason = "the broker did not offer this API, and the client sent it nevertheless"
        return _Told("will break", "not offered", reason)
    reason = f"the broker offered {use.offered} and no more, so the limit may be the broker's"
    return _Told("cannot say", "offered no more", reason)


def _too_new(use: Use, release: str) -> _Told | None:
    if use.asked in {"here", "elsewhere"}:
        # It sends the lower of both maxima.
        return None
    newer = f"the version is newer than Kafka {release}"
    if use.asked == "never":
        reason = f"{newer}, and it never asked for ApiVersions on connections seen from their start"
        return _Told("will break", "never asked", reason)
    reason = f"{newer}, and whether the client asks for ApiVersions was not seen"
    return _Told("cannot say", "asking not seen", reason)


def _remedy(party: Party, use: Use, told: _Told, release: str) -> str:
    if told.verdict == "cannot say":
        return "capture it from the start of a connection, where it asks for ApiVersions"
    needed = read_versions(use.api_key, release)
    api = _name(use.api_key)
    newer = f"one that speaks {api} {needed}" if needed else f"one that does without {api}"
    steps = [*_unpinning(party), f"upgrade the client to {newer}"]
    again = returned_in(use.api_key, use.version, release)
    if again:
        steps.append(f"upgrade the brokers to {again} instead, which reads this version again")
    return ", or ".join(steps)


def _unpinning(party: Party) -> list[str]:
    pins = pinning_settings(party)
    if party.software_name is not None:
        return [f"{pin.remedy} ({pin.client})" for pin in pins]
    # All of each client's settings are in the list that the report shows.
    settings = ", ".join(f"{pin.setting.partition(',')[0]} of {pin.software}" for pin in pins)
    return [f"remove the setting that pins the version, if one does ({settings})"]


def _name(api_key: int) -> str:
    try:
        return api_name(api_key)
    except UnknownMessageError:
        return f"api key {api_key}"


def _about_configurations(conduct: Conduct, release: str) -> list[Finding]:
    found = []
    for one in judge_configured(conduct.configured, release):
        told = _Told(one.verdict, one.evidence, one.reason)
        finding = _whole(conduct, release, told, remedy=one.remedy, source=one.source)
        # Of the API alone: which of its requests set the configuration is not kept.
        own = [use for use in conduct.uses if use.api_key == one.configured.api_key]
        found.append(
            replace(
                finding,
                requests=sum(use.requests for use in own),
                first_us=min((use.first_us for use in own), default=finding.first_us),
                last_us=max((use.last_us for use in own), default=finding.last_us),
            )
        )
    return found


def _about_software(party: Party, conduct: Conduct, release: str) -> list[Finding]:
    return [_known(conduct, release, one) for one in known_of(party, conduct, release)]


def _known(conduct: Conduct, release: str, one: Known) -> Finding:
    verdict, what = one.verdict, one.what
    if not one.certain:
        verdict = "cannot say"
        what += "; whether it uses that was not seen"
    source = f"{', '.join(one.sources)}; looked at on {CHECKED}"
    told = _Told(verdict, one.id, what)
    return _whole(conduct, release, told, remedy=one.remedy, source=source)


def _whole(
    conduct: Conduct, release: str, told: _Told, *, remedy: str = "", source: str = ""
) -> Finding:
    """A finding about the client as a whole."""
    return Finding(
        release,
        told.verdict,
        told.evidence,
        told.reason,
        requests=conduct.requests,
        first_us=min(use.first_us for use in conduct.uses),
        last_us=max(use.last_us for use in conduct.uses),
        remedy=remedy,
        source=source,
    )
