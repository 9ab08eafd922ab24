"""Addresses are found in every response ever released, by the rule alone."""

from __future__ import annotations

import pytest

from flexwire.errors import TapError
from flexwire.schema.catalog import catalog
from flexwire.schema.parse import parse_spec
from flexwire.schema.spec import MessageType
from flexwire.tap import HostPort, parse_host_port
from flexwire.tap.addresses import address_fields, advertised_address, response_address_fields

# The addresses to which a client is told to connect, checked by hand against the specs.
FOUND = {
    ("DescribeClusterResponse", "brokers.host/port", 0, 2),
    ("FetchResponse", "node_endpoints.host/port", 16, 18),
    ("FindCoordinatorResponse", "host/port", 0, 3),
    ("FindCoordinatorResponse", "coordinators.host/port", 4, 6),
    ("MetadataResponse", "brokers.host/port", 0, 13),
    ("ProduceResponse", "node_endpoints.host/port", 10, 13),
    ("ShareAcknowledgeResponse", "node_endpoints.host/port", 0, 2),
    ("ShareFetchResponse", "node_endpoints.host/port", 0, 2),
    ("UpdateRaftVoterResponse", "current_leader.host/port", 0, 0),
}


@pytest.mark.long
def test_the_places_of_every_released_response() -> None:
    versions: dict[tuple[str, str], list[int]] = {}
    for name in catalog().names():
        entry = catalog().entry(name)
        if entry.type is not MessageType.RESPONSE:
            continue
        for version in entry.versions:
            for place in response_address_fields(name, version):
                versions.setdefault((name, str(place)), []).append(version)
    assert {(*key, min(found), max(found)) for key, found in versions.items()} == FOUND


def test_requests_and_records_have_no_places() -> None:
    for name in catalog().names():
        entry = catalog().entry(name)
        if entry.type is not MessageType.RESPONSE:
            for spec, versions in entry.specs():
                assert address_fields(spec, versions.highest) == ()


FIELDS = {
    "in the message itself": (
        """{"name": "Host", "type": "string", "versions": "0+"},
           {"name": "Port", "type": "int32", "versions": "0+"}""",
        ["host/port"],
    ),
    "named after something": (
        """{"name": "LeaderHost", "type": "string", "versions": "0+"},
           {"name": "LeaderPort", "type": "int32", "versions": "0+"}""",
        ["leader_host/leader_port"],
    ),
    "adjacent once another version's field is left out": (
        """{"name": "Host", "type": "string", "versions": "0+"},
           {"name": "Rack", "type": "string", "versions": "1+"},
           {"name": "Port", "type": "int32", "versions": "0+"}""",
        ["host/port"],
    ),
    "in structures in arrays in structures": (
        """{"name": "Outer", "type": "Outer", "versions": "0+", "fields": [
             {"name": "Nodes", "type": "[]Node", "versions": "0+", "fields": [
               {"name": "Host", "type": "string", "versions": "0+"},
               {"name": "Port", "type": "int32", "versions": "0+"}]}]}""",
        ["outer.nodes.host/port"],
    ),
    "tagged": (
        """{"name": "Nodes", "type": "[]Node", "versions": "0+", "tag": 0,
            "taggedVersions": "0+", "fields": [
               {"name": "Host", "type": "string", "versions": "0+"},
               {"name": "Port", "type": "int32", "versions": "0+"}]}""",
        ["nodes.host/port"],
    ),
    "not apart": (
        """{"name": "Host", "type": "string", "versions": "0+"},
           {"name": "Rack", "type": "string", "versions": "0+"},
           {"name": "Port", "type": "int32", "versions": "0+"}""",
        [],
    ),
    "not of another type": (
        """{"name": "Host", "type": "string", "versions": "0+"},
           {"name": "Port", "type": "uint16", "versions": "0+"},
           {"name": "OtherHost", "type": "bytes", "versions": "0+"},
           {"name": "OtherPort", "type": "int32", "versions": "0+"}""",
        [],
    ),
    "not in other words": (
        """{"name": "Ghost", "type": "string", "versions": "0+"},
           {"name": "Transport", "type": "int32", "versions": "0+"}""",
        [],
    ),
    "not in another version": (
        """{"name": "Host", "type": "string", "versions": "1+"},
           {"name": "Port", "type": "int32", "versions": "1+"}""",
        [],
    ),
}


@pytest.mark.parametrize("case", FIELDS)
def test_the_rule(case: str) -> None:
    fields, places = FIELDS[case]
    text = f"""{{"apiKey": 1, "type": "response", "name": "FooResponse", "validVersions": "0-1",
        "flexibleVersions": "0+", "fields": [{fields}]}}"""
    spec = parse_spec(text)
    assert [str(place) for place in address_fields(spec, 0)] == places
    as_request = parse_spec(text.replace('"response"', '"request"').replace("FooRes", "FooReq"))
    assert address_fields(as_request, 0) == ()


@pytest.mark.parametrize(
    ("host", "port"), [("", 9092), ("", -1), ("a", -1), ("a", 0), ("a", 65536)]
)
def test_an_error_has_no_address(host: str, port: int) -> None:
    assert advertised_address(host, port) is None


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("localhost:65535", "localhost", 65535),
        (" [::1]:9092 ", "::1", 9092),
    ],
)
def test_addresses_as_people_write_them(text: str, host: str, port: int) -> None:
    assert parse_host_port(text) == HostPort(host, port)
    assert str(parse_host_port(text)) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        ":9092",
        "a:",
        "a:b",
        "a:-1",
        "a:65536",
        "::1",
        "::1:9092",
        "a:9 092",
        "[]:1",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(TapError, match="expected host:port"):
        parse_host_port(text)
