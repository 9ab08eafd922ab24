"""Decide whether a group can move to the consumer protocol (KIP-848, KIP-1274).

From Kafka 5.0 on, Java's KafkaConsumer uses the consumer protocol by default. No other client does
so. A group moves when its first member sends ConsumerGroupHeartbeat: the broker then converts
the group and its classic members, unless there is an obstacle.

`consumer_protocol.json` contains the known facts about libraries, the brokers' refusals, and the
conditions that traffic does not show. The file also contains the sources and the day on which they
were checked. `make trial` runs real groups and compares these verdicts with a broker's reaction
(`tests/kafka/trial/groups.jsonl`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from flexwire.parties import Party
from flexwire.protocol.audit.software import cite_sources, find_software, version_numbers
from flexwire.protocol.error_codes import ERROR_NAMES
from flexwire.protocol.nested_messages import CONSUMERS

if TYPE_CHECKING:
    from collections.abc import Iterator

_FACTS: Final[dict[str, Any]] = json.loads(
    (resources.files(__package__) / "consumer_protocol.json").read_text(encoding="utf-8")
)
_CODES: Final = {name: code for code, name in ERROR_NAMES.items()}

GroupVerdict = Literal[
    "blocked", "cannot say", "moves after a setting", "moves as it is", "uses it already"
]
GROUP_VERDICTS: Final[tuple[GroupVerdict, ...]] = get_args(GroupVerdict)
"""Every verdict, the most serious first."""


class GroupJudgement(NamedTuple):
    """A verdict about a group, with the reason, the remedy, and the source."""

    verdict: GroupVerdict
    reason: str
    remedy: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class RefusedSettings:
    """The settings that prevent a library from using the consumer protocol.

    ``assignors`` and ``timeout`` are the names of the settings that JoinGroup shows. A member is
    affected if it offers one of ``lists`` (without the first setting), or a list that begins with
    one of ``first``. ``timeouts_ms`` contains the default session timeouts of the library's
    releases. ``effect`` describes the consequence of such a setting.
    """

    assignors: str
    lists: tuple[tuple[str, ...], ...]
    first: tuple[str, ...]
    timeout: str | None
    timeouts_ms: tuple[int, ...]
    effect: str
    remedy: str
    sources: tuple[str, ...]

    def names(self, member: GroupMember) -> Iterator[str]:
        """Yield the names of these settings that a member set, as far as JoinGroup shows them."""
        offered = member.assignors
        if offered and offered not in self.lists and offered[0] not in self.first:
            yield self.assignors
        timeout = member.session_timeout_ms
        if self.timeout and timeout is not None and timeout not in self.timeouts_ms:
            yield self.timeout


@dataclass(frozen=True, slots=True)
class ProtocolSupport:
    """A library's support for the consumer protocol.

    ``appears_in`` is the first release that includes the protocol, and ``works_from`` is the first
    release for which the library's authors call the protocol ready. ``setting`` is the setting that
    enables the protocol. ``is_default_from`` is the release in which the protocol becomes the
    default, or None if no such release is planned.
    """

    library: str
    software: str
    appears_in: str
    works_from: str
    setting: str
    is_default_from: str | None
    note: str
    sources: tuple[str, ...]
    refused: RefusedSettings

    @property
    def citation(self) -> str:
        """The sources and the day on which they were checked, in one line."""
        return cite_sources(self.sources, _FACTS["checked"])


def _refused(row: dict[str, Any]) -> RefusedSettings:
    tuples = {name: tuple(row[name]) for name in ("first", "timeouts_ms", "sources")}
    return RefusedSettings(**{**row, **tuples, "lists": tuple(map(tuple, row["lists"]))})


SUPPORT: Final = {
    row["software"]: ProtocolSupport(
        **{**row, "sources": tuple(row["sources"]), "refused": _refused(row["refused"])}
    )
    for row in _FACTS["libraries"]
}
"""The known facts about libraries, by their names in ApiVersions."""

REFUSALS: Final = {
    _CODES[row["error"]]: GroupJudgement(
        row["verdict"],
        f"a member used the consumer protocol, and the broker responded with {row['error']}: "
        f"{row['reason']}",
        row["remedy"],
        row["source"],
    )
    for row in _FACTS["refusals"]
}
"""The verdict about a group, by the error code in the broker's response to a member."""


class UnseenCondition(NamedTuple):
    """A condition that traffic does not show, and under which a group does not move.

    ``error`` is the code with which a broker then refuses a member, or None if the client does not
    start.
    """

    what: str
    holder: str
    condition: str
    error: int | None


UNSEEN: Final = tuple(
    UnseenCondition(**{**row, "error": None if row["error"] is None else _CODES[row["error"]]})
    for row in _FACTS["unseen"]
)
"""All known conditions that traffic does not show."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """The facts about members in the traffic: their library, and the content of JoinGroup.

    ``software`` and ``version`` are the library's name and version in ApiVersions, or None if
    unknown. If no JoinGroup was seen, ``assignors`` is empty and ``session_timeout_ms`` is None.
    """

    software: str | None
    version: str | None
    assignors: tuple[str, ...] = ()
    session_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GroupTraits:
    """The facts about a group in traffic or in a coordinator's log.

    ``members`` lists equal members only once. ``has_user_data`` is true if an assignment contained
    user data, and None if no assignment could be read. ``is_unreadable`` is true if an assignment
    of consumers could not be read. ``uses_it`` is true if a member used the consumer protocol, and
    ``refusals`` contains the error codes with which a broker refused members that requested this
    protocol.
    """

    protocol_type: str | None
    members: tuple[GroupMember, ...]
    has_user_data: bool | None = None
    is_unreadable: bool = False
    uses_it: bool = False
    refusals: tuple[int, ...] = ()


def judge_group(traits: GroupTraits) -> GroupJudgement:
    """Return the verdict about a group: the most serious verdict that follows from the facts.

    >>> java = GroupMember("apache-kafka-java", "4.1.0", ("range", "sticky"), 45_000)
    >>> judge_group(GroupTraits("consumer", (java,))).verdict
    'moves after a setting'
    """
    if traits.uses_it:
        return GroupJudgement(
            "uses it already", "a broker accepted a member's ConsumerGroupHeartbeat"
        )
    if traits.protocol_type not in {None, "", CONSUMERS}:
        return GroupJudgement(
            "blocked",
            f"the protocol type is {traits.protocol_type}, but a broker converts only groups of "
            f"type {CONSUMERS}",
            "do nothing: no release changes the protocol of a group of this type by default",
            "KIP-848",
        )
    if traits.has_user_data or traits.is_unreadable:
        return _by_assignments(traits)
    judgements = [REFUSALS[code] for code in traits.refusals if code in REFUSALS]
    if traits.members:
        judgements += map(_by_library, traits.members)
    else:
        judgements.append(GroupJudgement("cannot say", "no member reports its client software"))
    return min(judgements, key=lambda judgement: GROUP_VERDICTS.index(judgement.verdict))


def _by_assignments(traits: GroupTraits) -> GroupJudgement:
    """Return the verdict about a group whose assignments a broker cannot convert."""
    stop = "and stop all members once, because brokers always convert an empty group"
    if not traits.has_user_data:
        return GroupJudgement(
            "blocked",
            "an assignment is not in the consumer format, so the broker does not convert the group",
            f"remove the custom assignor {stop}",
            "KIP-848",
        )
    return GroupJudgement(
        "blocked",
        "an assignment carries user data, so the broker does not convert the group; Kafka Streams, "
        "custom assignors and librdkafka's cooperative-sticky assignor write user data",
        f"for Kafka Streams, change nothing; otherwise remove the assignor {stop}",
        "KAFKA-18134",
    )


def _by_library(member: GroupMember) -> GroupJudgement:
    """Return the verdict about a member's library."""
    library, numbers = find_software(Party(None, None, None, member.software, member.version))
    support = SUPPORT.get(library or "")
    if library is None:
        return GroupJudgement("cannot say", "a member does not report its client software")
    if support is None:
        return GroupJudgement(
            "cannot say", f"it is not known whether {library} supports the consumer protocol"
        )
    if not numbers:
        return GroupJudgement("cannot say", f"a member does not report its version of {library}")
    if numbers < version_numbers(support.works_from):
        has_it = numbers >= version_numbers(support.appears_in)
        return GroupJudgement(
            "cannot say" if has_it else "blocked",
            f"{support.library} {member.version} "
            + ("supports the protocol only as a preview" if has_it else "lacks the protocol")
            + f" ({support.note})",
            f"upgrade to {support.works_from} or later",
            support.citation,
        )
    return _with_settings(member, support)


def _with_settings(member: GroupMember, support: ProtocolSupport) -> GroupJudgement:
    """Return the verdict about a library that supports the protocol."""
    settings = [*support.refused.names(member)]
    if settings:
        names = " and ".join(settings)
        return GroupJudgement(
            "moves after a setting",
            f"{names} {'are' if settings[1:] else 'is'} set, and with {support.setting} "
            f"{support.refused.effect}",
            support.refused.remedy.format(names=names, setting=support.setting),
            cite_sources(support.refused.sources, _FACTS["checked"]),
        )
    if support.is_default_from is None:
        return GroupJudgement(
            "moves after a setting",
            f"{support.library} does not switch to the protocol by default",
            f"set {support.setting} to move the group",
            support.citation,
        )
    return GroupJudgement(
        "moves as it is",
        f"{support.library} uses the protocol by default from {support.is_default_from} on, and no "
        "obstacle was seen",
        f"do nothing, or set {support.setting} to move the group earlier",
        support.citation,
    )
