"""Header versions agree with a table of known versions, and with every spec ever released."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import FrameError, UnknownMessageError
from flexwire.protocol import (
    parse_request,
    parse_response,
    request_header_version,
    response_header_version,
)
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType

if TYPE_CHECKING:
    from flexwire.schema.catalog import CatalogEntry

# api key, version, request header version, response header version
KNOWN = [
    (0, 8, 1, 0),  # Produce
    (0, 9, 2, 1),
    (1, 11, 1, 0),  # Fetch
    (1, 12, 2, 1),
    (2, 5, 1, 0),  # ListOffsets
    (2, 6, 2, 1),
    (3, 8, 1, 0),  # Metadata
    (3, 9, 2, 1),
    (7, 0, 0, 0),  # ControlledShutdown v0 has no client id
    (7, 1, 1, 0),
    (7, 2, 1, 0),
    (7, 3, 2, 1),
    (10, 2, 1, 0),  # FindCoordinator
    (10, 3, 2, 1),
    (17, 0, 1, 0),  # SaslHandshake is never flexible
    (17, 1, 1, 0),
    (18, 0, 1, 0),  # ApiVersions: the response header never changes
    (18, 2, 1, 0),
    (18, 3, 2, 0),
    (18, 4, 2, 0),
    (18, 99, 2, 0),
    (36, 1, 1, 0),  # SaslAuthenticate
    (36, 2, 2, 1),
    (47, 0, 1, 0),  # OffsetDelete is never flexible
    (56, 0, 2, 1),  # AlterPartition
    (60, 0, 2, 1),  # DescribeCluster was flexible from its first version
    (3, 1000, 2, 1),  # versions above the catalog are flexible
]


@pytest.mark.parametrize(("api_key", "version", "request_header", "response_header"), KNOWN)
def test_known_header_versions(
    api_key: int, version: int, request_header: int, response_header: int
) -> None:
    assert request_header_version(api_key, version) == request_header
    assert response_header_version(api_key, version) == response_header


def released(kind: MessageType) -> list[CatalogEntry]:
    entries = map(catalog().entry, catalog().names())
    return [entry for entry in entries if entry.type is kind]


def test_every_released_request_has_the_header_its_own_spec_asks_for() -> None:
    exceptions = []
    for entry in released(MessageType.REQUEST):
        assert entry.api_key is not None
        for release, versions in entry.releases.items():
            for version in versions:
                flexible = version in entry.spec(version, release).flexible_versions
                if request_header_version(entry.api_key, version) != 1 + flexible:
                    exceptions.append((entry.name, version))
    assert set(exceptions) == {("ControlledShutdownRequest", 0)}


@pytest.mark.slow
def test_every_released_response_has_the_header_its_own_spec_asks_for() -> None:
    exceptions = []
    for entry in released(MessageType.RESPONSE):
        assert entry.api_key is not None
        for release, versions in entry.releases.items():
            for version in versions:
                flexible = version in entry.spec(version, release).flexible_versions
                if response_header_version(entry.api_key, version) != int(flexible):
                    exceptions.append((entry.name, version))
    assert {name for name, _ in exceptions} == {"ApiVersionsResponse"}
    assert min(version for _, version in exceptions) == 3


@pytest.mark.parametrize("version", [-1, -32768])
def test_a_negative_version_has_the_header_that_all_read(version: int) -> None:
    """A broker answers such a request with header version 0 (since KAFKA-21160)."""
    for entry in released(MessageType.REQUEST):
        assert entry.api_key is not None
        assert request_header_version(entry.api_key, version) == 1
        assert response_header_version(entry.api_key, version) == 0
        frame = struct.pack(">hhih", entry.api_key, version, 7, -1)
        with pytest.raises(FrameError, match=f"version {version} of api key .* is negative"):
            parse_request(frame)
        response = parse_response(bytes(4), api_key=entry.api_key, api_version=version)
        assert response.header_version == 0


@pytest.mark.parametrize("api_key", [-1, 999, 32767])
def test_an_api_key_of_no_release_has_no_header_version(api_key: int) -> None:
    with pytest.raises(UnknownMessageError, match=str(api_key)):
        request_header_version(api_key, 0)
    with pytest.raises(UnknownMessageError, match=str(api_key)):
        response_header_version(api_key, 0)
