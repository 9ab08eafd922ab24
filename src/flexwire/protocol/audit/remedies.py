"""Remedies for findings, such as a setting to change or a release to upgrade to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.errors import UnknownMessageError
from flexwire.protocol.apis import api_name
from flexwire.protocol.audit.evidence import (
    find_release_reading_again,
    read_versions,
    stable_versions,
)
from flexwire.protocol.audit.negotiation import (
    common_versions,
    first_common_release,
    first_release_reading,
)
from flexwire.protocol.audit.software import (
    LIBRARIES,
    find_library,
    find_missing_api,
    heeds_offers_from,
    is_new_enough,
    libraries_are_about,
    pinning_settings,
)

if TYPE_CHECKING:
    from flexwire.parties import Party
    from flexwire.protocol.audit.evidence import Use

_CAPTURE = "capture the client from the start of a connection, when clients send ApiVersions"


def remedy_of(party: Party, use: Use, release: str, *, is_certain: bool) -> tuple[str, str]:
    """Return the remedy for one version of a client, and its source.

    Unless ``is_certain`` is true, the first step is to find out whether the client stops working.
    """
    if not common_versions(party, use, release):
        return _about_missing(party, use, release)
    if not is_certain and (use.asked == "unseen" or use.offered is None):
        return _CAPTURE, ""
    if use.version > read_versions(use.api_key, release).highest:
        return _about_newer(party, use, release), ""
    upgrade, source = _upgrade(party, use, release)
    first = _unpinning(party, release) if is_certain else [_try(release)]
    steps = [*first, *upgrade]
    again = find_release_reading_again(use.api_key, use.version, release)
    if again:
        steps.append(f"upgrade the brokers to {again} instead, which reads this version again")
    return ", or ".join(steps), source


def _try(release: str) -> str:
    return f"test the client against a Kafka {release} broker"


def _about_missing(party: Party, use: Use, release: str) -> tuple[str, str]:
    missing_api, first = find_missing_api(use.api_key, party), first_common_release(party, use)
    steps = [missing_api.remedy] if missing_api is not None and missing_api.remedy else []
    offered = stable_versions(use.api_key, release)
    if offered:
        steps.append(
            f"upgrade the client to a release that speaks {name_of(use.api_key)} {offered}"
        )
    elif first is not None:
        steps.append(f"use the client only with Kafka {first} or newer")
    if not steps:
        steps = [_try(release)]
    return ", or ".join(steps), "" if missing_api is None else missing_api.citation


def _about_newer(party: Party, use: Use, release: str) -> str:
    """Return the remedy for a client that sends a version that the release does not know yet."""
    reads = f"{name_of(use.api_key)} {read_versions(use.api_key, release)}"
    pins, first = pinning_settings(party), heeds_offers_from(party)
    if find_library(party) is None and party.software_name is None:
        steps = _unpinning(party, release)
    else:
        steps = [
            f"change {pin.setting} to a value that allows {reads} ({pin.client})" for pin in pins
        ]
    if first:
        steps.append(
            f"upgrade to {first} or newer, which uses only versions that the broker offers"
        )
    newer = first_release_reading(use)
    if newer is not None:
        steps.append(f"use the client only with Kafka {newer} or newer")
    return ", or ".join(steps) or _try(release)


def _unpinning(party: Party, release: str) -> list[str]:
    library = find_library(party)
    if library is not None and library.remedy and libraries_are_about(release):
        return []  # The remedy already contains the setting.
    pins = pinning_settings(party)
    if library is not None or party.software_name is not None:
        return [f"{pin.remedy} ({pin.client})" for pin in pins]
    # The list in the report contains all settings of each client.
    settings = ", ".join(f"{pin.setting.partition(',')[0]} of {_short(pin.client)}" for pin in pins)
    return [f"if a setting pins the version, remove that setting ({settings})"]


def _upgrade(party: Party, use: Use, release: str) -> tuple[list[str], str]:
    needed, api = read_versions(use.api_key, release), name_of(use.api_key)
    speaks = f"speaks {api} {needed}" if needed else f"does without {api}"
    library = find_library(party)
    if not libraries_are_about(release):
        return [f"upgrade the client to a release that {speaks}"], ""
    if library is not None and library.remedy:
        return [library.remedy], library.citation
    if library is not None:
        if is_new_enough(party, library):
            return [], library.citation
        note = f" ({library.note})" if library.note else ""
        first = f"{_short(library.library)} {library.works_from} or newer"
        return [f"upgrade to {first}{note}"], library.citation
    if party.software_name is not None:
        return [f"upgrade {party.software_name} to a release that {speaks}"], ""
    libraries = (other for other in LIBRARIES if other.works_from)
    first = ", ".join(f"{_short(other.library)} {other.works_from}" for other in libraries)
    upgrade = (
        f"upgrade the client to one of these releases or a newer release: {first}; choose a "
        f"release that {speaks}"
    )
    return [upgrade], ""


def _short(library: str) -> str:
    return library.partition(" and ")[0]


def name_of(api_key: int) -> str:
    """Return the name of an API, or its key if the API is not in the catalog."""
    try:
        return api_name(api_key)
    except UnknownMessageError:
        return f"api key {api_key}"
