"""Decides whether a group can move from the classic to the consumer protocol (KIP-848, KIP-1274).

From Kafka 5.0 on, Java's KafkaConsumer uses the consumer protocol by default, and no other client
does. A group moves when its first member sends ConsumerGroupHeartbeat: the broker then converts the
group with its classic members, unless something prevents it.

`consumer_protocol.json` has the known facts about libraries, with sources and the day on which they
were checked. Sources for the refusals of brokers: `GroupMetadataManager`, and
`tests/kafka/test_consumer_protocol.py`, which asks brokers.
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
_JAVA: Final[dict[str, Any]] = _FACTS["java"]

GroupVerdict = Literal[
    "blocked", "cannot say", "moves after a setting", "moves as it is", "uses it already"
]
UNCONVERTED: Final = next(
    code for code, name in ERROR_NAMES.items() if name == "GROUP_ID_NOT_FOUND"
)
"""The error of a broker that does not convert a group for a member of the consumer protocol."""
GROUP_VERDICTS: Final[tuple[GroupVerdict, ...]] = get_args(GroupVerdict)
"""Every verdict, the gravest first."""


@dataclass(frozen=True, slots=True)
class ProtocolSupport:
    """The support of a library for the consumer protocol.

    ``works_from`` is the first release whose protocol its authors call ready. ``setting`` turns it
    on. ``is_default_from`` is the release in which it is the default, None if none is planned.
    """

    library: str
    software: str
    works_from: str
    setting: str
    is_default_from: str | None
    note: str
    sources: tuple[str, ...]

    @property
    def citation(self) -> str:
        """The sources and the day on which they were checked, in one line."""
        return cite_sources(self.sources, _FACTS["checked"])


SUPPORT: Final = {
    row["software"]: ProtocolSupport(**{**row, "sources": tuple(row["sources"])})
    for row in _FACTS["libraries"]
}
"""The known facts about libraries, by their names in ApiVersions."""


@dataclass(frozen=True, slots=True)
class GroupTraits:
    """The facts about a group that traffic or a coordinator's log shows.

    ``software`` are the names and versions of its members' libraries. ``assignors`` are the lists
    that members offered. ``has_user_data`` says whether an assignment had user data, None if no
    assignment was seen. ``uses_it`` says whether a member used the consumer protocol, and
    ``is_refused`` whether a broker refused a member that asked for it, with `UNCONVERTED`.
    """

    protocol_type: str | None
    software: tuple[tuple[str | None, str | None], ...]
    assignors: tuple[tuple[str, ...], ...] = ()
    session_timeouts_ms: tuple[int, ...] = ()
    has_user_data: bool | None = None
    uses_it: bool = False
    is_refused: bool = False


class GroupJudgement(NamedTuple):
    """A verdict about a group, with the reason, the remedy, and the source."""

    verdict: GroupVerdict
    reason: str
    remedy: str = ""
    source: str = ""


def judge_group(traits: GroupTraits) -> GroupJudgement:
    """Return the verdict about a group: the gravest one that its facts give.

    >>> java = GroupTraits("consumer", (("apache-kafka-java", "4.1.0"),), (("range", "sticky"),))
    >>> judge_group(java).verdict
    'moves after a setting'
    """
    if traits.uses_it:
        return GroupJudgement("uses it already", "a broker took a member's ConsumerGroupHeartbeat")
    if traits.protocol_type not in {None, "", CONSUMERS}:
        return GroupJudgement(
            "blocked",
            f"its protocol type is {traits.protocol_type}, and a broker converts groups of type "
            f"{CONSUMERS} only",
            "nothing has to be done: no release changes the protocol of such a group by default",
            "KIP-848",
        )
    if traits.has_user_data:
        return GroupJudgement(
            "blocked",
            "an assignment carries user data, which Kafka Streams and custom assignors write, "
            "and the broker does not convert such a group",
            "for Kafka Streams, change nothing; otherwise remove the custom assignor and stop "
            "all members once, because an empty group always converts",
            "KAFKA-18134",
        )
    if traits.is_refused:
        return GroupJudgement(
            "blocked",
            "a member came with the consumer protocol, and the broker responded with "
            f"{ERROR_NAMES[UNCONVERTED]}: it did not convert the group",
            "read the error message of that response; it names group.consumer.migration.policy, "
            "group.consumer.max.size or what else the broker refuses",
            "KIP-848",
        )
    judgements = [*_by_software(traits)]
    return min(judgements, key=lambda judgement: GROUP_VERDICTS.index(judgement.verdict))


def _by_software(traits: GroupTraits) -> Iterator[GroupJudgement]:
    """Yield a verdict for each library in the group."""
    if not traits.software:
        yield GroupJudgement("cannot say", "no member names its software")
    for name, version in traits.software:
        library, numbers = find_software(Party(None, None, None, name, version))
        support = SUPPORT.get(library or "")
        if library is None:
            yield GroupJudgement("cannot say", "a member does not name its software")
        elif support is None:
            yield GroupJudgement(
                "cannot say", f"nothing is known about {library} and the consumer protocol"
            )
        elif not numbers:
            yield GroupJudgement("cannot say", f"a member does not name its version of {library}")
        elif numbers < version_numbers(support.works_from):
            yield GroupJudgement(
                "blocked",
                f"{support.library} {version} does not have the protocol, or not as ready for use "
                f"({support.note})",
                f"upgrade to {support.works_from} or later",
                support.citation,
            )
        else:
            yield _with_settings(traits, support)


def _with_settings(traits: GroupTraits, support: ProtocolSupport) -> GroupJudgement:
    """Return the verdict about a library that has the protocol."""
    settings = [*_java_settings(traits)] if support.software == _JAVA["software"] else []
    if settings:
        names = " and ".join(settings)
        return GroupJudgement(
            "moves after a setting",
            f"{names} {'are' if settings[1:] else 'is'} set, and with {support.setting} the client "
            "then does not start",
            f"remove {names} from the client; the broker has group.consumer.assignors and "
            "group.consumer.session.timeout.ms instead",
            cite_sources(tuple(_JAVA["sources"]), _FACTS["checked"]),
        )
    if support.is_default_from is None:
        return GroupJudgement(
            "moves after a setting",
            f"{support.library} does not change its protocol by default",
            f"set {support.setting}, if you want to move",
            support.citation,
        )
    return GroupJudgement(
        "moves as it is",
        f"{support.library} takes the protocol by default from {support.is_default_from} on, and "
        "nothing was seen against it",
        f"nothing has to be done; {support.setting} moves it before that",
        support.citation,
    )


def _java_settings(traits: GroupTraits) -> Iterator[str]:
    """Yield the changed settings of a Java consumer, as far as JoinGroup shows them."""
    defaults = {tuple(names) for names in _JAVA["assignors"]}
    if any(assignors not in defaults for assignors in traits.assignors):
        yield "partition.assignment.strategy"
    if any(value not in _JAVA["session_timeouts_ms"] for value in traits.session_timeouts_ms):
        yield "session.timeout.ms"
