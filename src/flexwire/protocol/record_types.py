"""Which messages the records of an internal topic are, by record type or api key and by release.

Where no release is asked for, the newest that has a type, a version or a layout answers.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.spec import MessageType
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.schema.catalog import Entry

_KEY, _VALUE = "Key", "Value"


@per_catalog
@cache
def record_keys(module: str, release: str | None = None) -> dict[int, tuple[str, int]]:
    """By record type: the message of the key, and its version.

    >>> record_keys("share-coordinator")
    {0: ('ShareSnapshotKey', 0), 1: ('ShareUpdateKey', 0)}
    """
    found: dict[int, tuple[str, int]] = {}
    for one in _newest_first(release):
        for record_type, name, version in _keys_in(module, one):
            found.setdefault(record_type, (name, version))
    return found


@per_catalog
@cache
def record_values(module: str, release: str | None = None) -> dict[int, tuple[str, ...]]:
    """By record type: the messages of the value, the newest release's first."""
    found: dict[int, tuple[str, ...]] = {}
    for one in _newest_first(release):
        for record_type, key, _ in _keys_in(module, one):
            _add(found, record_type, f"{record_name(key)}{_VALUE}")
    return found


@per_catalog
@cache
def framed_messages(module: str, release: str | None = None) -> dict[int, tuple[str, ...]]:
    """By api key: the messages of values with a frame, the newest release's first."""
    found: dict[int, tuple[str, ...]] = {}
    for one in _newest_first(release):
        for entry in _entries(module, MessageType.METADATA):
            if entry.api_key is not None and one in entry.releases:
                _add(found, entry.api_key, entry.name)
    return found


def record_name(key: str) -> str:
    """Give the name of a record by the message of its key: what key and value share.

    >>> record_name("OffsetCommitKey")
    'OffsetCommit'
    """
    return key.removesuffix(_KEY)


# Bounded, because a version comes from the bytes.
@per_catalog
@lru_cache(maxsize=4096)
def with_version(names: tuple[str, ...], version: int, release: str | None = None) -> str:
    """Give the first of these messages that has the version, or the first."""
    for name in names:
        entry = catalog().entry(name)
        if release is None and version in entry.versions:
            return name
        if release is not None and version in entry.releases.get(release, Versions.NONE):
            return name
    return names[0]


def other_layouts(name: str, version: int) -> Iterator[str]:
    """Give the newest release of every layout that a version had, but for the one of today."""
    entry = catalog().entry(name)
    known = [entry.spec(version)]
    for release, valid in reversed(entry.releases.items()):
        if version in valid and entry.spec(version, release) not in known:
            known.append(entry.spec(version, release))
            yield release


def _keys_in(module: str, release: str) -> list[tuple[int, str, int]]:
    """Give every record type that a release has, and the message and version of its key.

    Up to Kafka 4.0 the version of a key is its type, so that no two keys have the same. From 4.1 on
    the type is the key's api key, and all are of version 0.
    """
    found = [
        (entry, version)
        for kind in (MessageType.DATA, MessageType.COORDINATOR_KEY)
        for entry in _entries(module, kind)
        if entry.name.endswith(_KEY)
        for version in entry.releases.get(release, ())
    ]
    versions = [version for _, version in found]
    are_types = len(set(versions)) == len(versions)
    return [
        (version if are_types or entry.api_key is None else entry.api_key, entry.name, version)
        for entry, version in found
    ]


def _add(found: dict[int, tuple[str, ...]], number: int, name: str) -> None:
    names = found.get(number, ())
    if name not in names:
        found[number] = (*names, name)


def _newest_first(release: str | None) -> Iterable[str]:
    return reversed(catalog().releases) if release is None else (release,)


def _entries(module: str, kind: MessageType) -> Iterator[Entry]:
    for entry in map(catalog().entry, catalog().names()):
        if entry.module == module and entry.type is kind:
            yield entry
