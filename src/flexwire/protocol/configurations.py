"""The topic and broker configurations in Kafka's releases, including removed configurations.

`configurations.json` lists the names by release, taken from each release's jars
(`tools.config_names`). A broker checks the names of a topic's configurations: an unknown name
results in INVALID_CONFIG (40). A broker does not check the names of its own configurations,
because plug-ins add settings to them, so a removed name is accepted and has no effect. This was
measured on Kafka 3.9.2 and 4.4.0.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, get_args

from flexwire.schema.catalog import is_since

ConfiguredKind = Literal["topic", "broker"]
"""The kind of resource to which a configuration belongs."""

CONFIGURED_KINDS: Final[tuple[ConfiguredKind, ...]] = get_args(ConfiguredKind)

RESOURCE_TYPES: Final = {
    2: "topic",
    4: "broker",
    8: "broker_logger",
    16: "client_metrics",
    32: "group",
}
"""The resource types of configurations by number. The numbers come from an enumeration in Kafka's
Java code.
"""


@dataclass(frozen=True, slots=True)
class RemovedConfiguration:
    """A removed configuration.

    ``last`` is the last release that supports the configuration, and ``first`` is the next release.
    """

    kind: ConfiguredKind
    name: str
    last: str
    first: str


@cache
def _facts() -> dict[str, Any]:
    text = (resources.files(__package__) / "configurations.json").read_text(encoding="utf-8")
    facts: dict[str, Any] = json.loads(text)
    return facts


@cache
def known_releases() -> tuple[str, ...]:
    """Return the releases whose configurations are known, oldest first."""
    return tuple(_facts()["releases"])


@cache
def known_names(kind: ConfiguredKind, release: str) -> frozenset[str]:
    """Return the names that a release knows.

    A release without data is treated like the next older release that has data. The result is empty
    before the first release whose names are known.

    >>> "message.format.version" in known_names("topic", "3.9.2")
    True
    >>> "message.format.version" in known_names("topic", "4.0.1")
    False
    """
    releases = known_releases()
    at = _place(release)
    if at < 0:
        return frozenset()
    return frozenset(
        name
        for name, (first, last) in _facts()[kind].items()
        if releases.index(first) <= at <= releases.index(last)
    )


@cache
def find_removal(kind: ConfiguredKind, name: str, release: str) -> RemovedConfiguration | None:
    """Return the removal of a configuration up to a release, or None if it was not removed.

    The result is None for a name that is in no known release, because a plug-in may use this name.

    >>> find_removal("topic", "message.format.version", "4.4.0").first
    '4.0.0'
    >>> find_removal("topic", "retention.ms", "4.4.0") is None
    True
    >>> find_removal("topic", "message.format.version", "3.9.2") is None
    True
    """
    ends = _facts()[kind].get(name)
    if ends is None:
        return None
    releases = known_releases()
    last = releases.index(ends[1])
    if _place(release) <= last:
        return None
    return RemovedConfiguration(kind, name, ends[1], releases[last + 1])


@cache
def removed_configurations() -> frozenset[tuple[ConfiguredKind, str]]:
    """Return the configurations that some known release supports and a later release lacks."""
    newest = known_releases()[-1]
    return frozenset(
        (kind, name)
        for kind in CONFIGURED_KINDS
        for name in _facts()[kind]
        if find_removal(kind, name, newest)
    )


def _place(release: str) -> int:
    """Return the index of the newest known release that is not newer than this release, or -1."""
    return sum(is_since(release, known_release) for known_release in known_releases()) - 1
