"""The names of APIs in the catalog, and the versions that each release accepts."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

from flexwire.arguments import refuse, to_text
from flexwire.errors import UnknownMessageError, short
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.coercion import nearest
from flexwire.schema.spec import MessageType
from flexwire.versions import Versions

if TYPE_CHECKING:
    from flexwire.schema.catalog import CatalogEntry

_CLIENTS = "clients"  # the module of requests and responses
Verdict = Literal["accepted", "deprecated", "removed", "unknown"]


@per_catalog
@cache
def request_entries(api_key: int) -> tuple[CatalogEntry, ...]:
    """Return all requests of clients that ever had this API key, the newest name first.

    The name of an API key can change: 56 was AlterIsr and is now AlterPartition; 2 was ListOffset.
    The tuple is empty if no release has the key.
    """
    bundled = catalog()
    if api_key not in bundled.api_keys():
        return ()
    newest = bundled.by_api_key(api_key, MessageType.REQUEST)
    # Other modules also number their records from 0, so this checks the type and the module.
    older = (
        entry
        for entry in map(bundled.entry, bundled.names())
        if entry.type is MessageType.REQUEST and entry.api_key == api_key
    )
    return (newest, *(entry for entry in older if entry.name != newest.name))


@per_catalog
@cache
def released_versions(api_key: int) -> Versions:
    """Return the versions of an API's request that any release supports. The result may be empty.

    >>> released_versions(18)
    Versions('0-5')
    """
    versions = Versions.NONE
    for entry in request_entries(api_key):
        versions |= entry.versions
    return versions


@per_catalog
@lru_cache(maxsize=4096)
def is_released(api_key: int, version: int) -> bool:
    """Return whether any release has a request with this API key and version.

    >>> is_released(18, 0), is_released(18, 99), is_released(9999, 0)
    (True, False, False)
    """
    return any(version in entry.versions for entry in request_entries(api_key))


def api_name(api_key: int) -> str:
    """Return the name of an API, which is the name of its request without the suffix.

    Raises `UnknownMessageError` for an API key that is in no release.

    >>> api_name(18)
    'ApiVersions'
    """
    entries = request_entries(api_key)
    if not entries:
        raise UnknownMessageError(f"no Kafka release in the catalog has api key {api_key}")
    return entries[0].name.removesuffix("Request")


def api_key_of(name: str) -> int:
    """Return the API key of the request with this name, with or without the suffix.

    Raises `UnknownMessageError`, whose message suggests the most similar name, if there is one.

    >>> api_key_of("Metadata"), api_key_of("MetadataRequest")
    (3, 3)
    """
    name = to_text(name, "message_name").removesuffix("Request")
    if f"{name}Request" not in catalog().names():
        nearest_name = find_api(name).name.removesuffix("Request")
        raise UnknownMessageError(f"no API {short(name)}; did you mean {nearest_name!r}?")
    entry = catalog().entry(f"{name}Request")
    if entry.type is not MessageType.REQUEST or entry.api_key is None:
        raise refuse("message_name", "the name of a request", name)
    return entry.api_key


def find_api(text: str) -> CatalogEntry:
    """Return the newest request of the API that a string specifies.

    ``text`` is an API key or a name, with or without "Request" or "Response" at the end. The case
    of a name does not matter. An old name stands for the API that uses the name's API key today.
    Raises `UnknownMessageError`, whose message suggests the most similar name, if there is one.

    >>> find_api("3").name, find_api("metadata").name, find_api("ListOffset").name
    ('MetadataRequest', 'MetadataRequest', 'ListOffsetsRequest')
    >>> find_api("Metadta")
    Traceback (most recent call last):
    flexwire.errors.UnknownMessageError: no API 'Metadta'; did you mean 'Metadata'?
    """
    keys = {str(key): key for key in catalog().api_keys()}
    names = {
        entry.name.removesuffix("Request"): key
        for key in keys.values()
        for entry in request_entries(key)
    }
    by_name = {name.lower(): key for name, key in names.items()}
    stem = re.sub(r"(?i)(request|response)$", "", text)
    key = keys.get(text, by_name.get(text.lower(), by_name.get(stem.lower())))
    if key is not None:
        return request_entries(key)[0]
    hint = nearest(stem, names)
    if hint.startswith("known"):
        hint = "'flexwire schema list Request' lists all APIs"
    raise UnknownMessageError(f"no API {short(text)}; {hint}")


def accepted(api_key: int, version: int, release: str | None = None) -> bool:
    """Return whether a broker of a release, by default the newest, reads this request version.

    >>> accepted(1, 3), accepted(1, 3, "3.8.1")
    (False, True)
    """
    return verdict(api_key, version, release) in {"accepted", "deprecated"}


@per_catalog
@lru_cache(maxsize=4096)
def verdict(api_key: int, version: int, release: str | None = None) -> Verdict:
    """Return how a release reacts to a request version. None stands for the newest release.

    "deprecated": the release accepts the version, but the newest final release in the catalog does
    not. "removed": an older release accepted the version. "unknown": the version is newer than the
    release, or belongs to no release. Raises `UnknownMessageError` for a release that is not in the
    catalog, and `ArgumentError` for a preview.

    >>> verdict(1, 3, "3.8.1"), verdict(1, 3), verdict(1, 99)
    ('deprecated', 'removed', 'unknown')
    """
    # Here a version counts as removed only if a release has really removed it. A version that a
    # spec once announced as deprecated (``deprecatedVersions``, KIP-896) may remain: Metadata 0-3
    # were to be removed in 4.0 but still exist.
    newest = _newest_final_release()
    release = newest if release is None else catalog().final_release(release)
    releases = catalog().releases
    if _has(api_key, version, release):
        return "accepted" if _has(api_key, version, newest) else "deprecated"
    older = releases[: releases.index(release)]
    return (
        "removed"
        if any(_has(api_key, version, older_release) for older_release in older)
        else "unknown"
    )


def _newest_final_release() -> str:
    modules = catalog().release_modules
    having = (name for name in reversed(catalog().final_releases) if _CLIENTS in modules[name])
    return next(having, None) or catalog().newest_release_of(_CLIENTS)


def _has(api_key: int, version: int, release: str) -> bool:
    return any(
        version in entry.releases.get(release, Versions.NONE) for entry in request_entries(api_key)
    )
