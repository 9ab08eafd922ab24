from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from flexwire.codec import message
from flexwire.protocol import carries_credentials, credential_fields, withhold
from flexwire.protocol.credentials import CREDENTIALS, CredentialField
from flexwire.schema.catalog import catalog
from tests.protocol.payloads import make

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import FieldSpec


def field_at(one: CredentialField) -> FieldSpec:
    spec = catalog().entry(one.message_name).specs()[0][0]
    structs = spec.structs()
    fields = spec.fields
    for name, attribute in zip(one.path, one.attributes, strict=True):
        found = next(field for field in fields if field.name == name)
        assert found.attribute == attribute
        fields = structs.get(found.type.name, ())
    return found


@pytest.mark.parametrize(
    "one", CREDENTIALS, ids=lambda one: ".".join((one.message_name, *one.path))
)
def test_every_credential_field_is_in_its_spec(one: CredentialField) -> None:
    assert field_at(one).type.name in {"bytes", "string", "records"}
    assert one.reason


def test_no_field_that_sounds_like_a_credential_is_left_out() -> None:
    words = {"hmac", "salt", "password", "auth"}
    found = set()
    for name in catalog().names():
        for spec, _ in catalog().entry(name).specs():
            found |= {
                (name, field.name)
                for field in spec.walk()
                if words & set(field.attribute.split("_"))
                and field.type.name in {"bytes", "string"}
            }
    assert found
    assert found <= {(one.message_name, one.path[-1]) for one in CREDENTIALS}


def test_a_sasl_token_is_withheld() -> None:
    token = make("SaslAuthenticateRequest", auth_bytes=b"\0alice\0secret")
    assert withhold(token) == 1
    assert token.auth_bytes == b"withheld"
    assert b"secret" not in token.encode(2)


def test_scram_salts_are_withheld_in_every_element() -> None:
    upsertion: Any = message("AlterUserScramCredentialsRequest").ScramCredentialUpsertion  # type: ignore[attr-defined]  # made at run time
    request = make(
        "AlterUserScramCredentialsRequest",
        upsertions=[
            upsertion(name=name, mechanism=1, iterations=4096, salt=b"s1", salted_password=b"s2")
            for name in ("alice", "bob")
        ],
    )
    assert withhold(request) == 4
    assert [one.name for one in request.upsertions] == ["alice", "bob"]
    assert {one.salt for one in request.upsertions} == {b"withheld"}
    assert {one.salted_password for one in request.upsertions} == {b"withheld"}


def test_configurations_are_withheld_when_they_are_secrets() -> None:
    kind: Any = message("IncrementalAlterConfigsRequest")
    configs = {
        "listener.name.sasl.plain.sasl.jaas.config": "x",
        "ssl.keystore.password": "x",
        "password.encoder.secret": "x",
        "ssl.key.password": None,
        "retention.ms": "100",
        "compression.type": "zstd",
    }
    request = kind(
        resources=[
            kind.AlterConfigsResource(
                configs=[
                    kind.AlterableConfig(name=name, value=value) for name, value in configs.items()
                ]
            )
        ]
    )
    assert withhold(request) == 3
    shown = [one.value for one in request.resources[0].configs]
    assert shown == ["withheld", "withheld", "withheld", None, "100", "zstd"]


def test_other_messages_are_left_alone() -> None:
    assert not carries_credentials("MetadataRequest")
    assert credential_fields("FetchResponse") == ()
    request = make("MetadataRequest")
    before = request.encode(9)
    assert withhold(request) == 0
    assert request.encode(9) == before


# These structures consist of a name and a value, but are not configurations.
NO_CONFIGURATIONS = {"ClientTags"}


def value_fields(
    fields: tuple[FieldSpec, ...], structs: dict[str, tuple[FieldSpec, ...]], path: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    names = {field.name for field in fields}
    for field in fields:
        if field.name == "Value" and field.type.name == "string" and names & {"Name", "Key"}:
            yield (*path, field.name)
        yield from value_fields(structs.get(field.type.name, ()), structs, (*path, field.name))


def test_no_configuration_of_a_request_or_response_is_left_out() -> None:
    found = set()
    for name in catalog().names():
        if name.endswith(("Request", "Response")):
            for spec, _ in catalog().entry(name).specs():
                paths = value_fields(spec.fields, spec.structs(), ())
                found |= {(name, path) for path in paths if path[-2] not in NO_CONFIGURATIONS}
    assert len(found) > 5
    assert found == {(one.message_name, one.path) for one in CREDENTIALS if one.if_secret} - {
        ("ConfigRecord", ("Value",))
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.key.password", "x"),
        ("listener.name.internal.ssl.keystore.key", "x"),
        ("ssl.key.passphrase", "x"),
        ("my.private.key", "x"),
        ("schema.registry.basic.auth.user.info", "x"),
        ("confluent.api.key", "x"),
        ("db.pwd", "x"),
        ("whatever", 'org.example.Login required user="a" password="b";'),
        ("proxy", "http://alice:horse@example.org:80"),
        ("pem", "-----BEGIN PRIVATE KEY-----"),
    ],
)
def test_a_secret_configuration_is_known_by_name_or_value(name: str, value: str) -> None:
    kind: Any = message("CreateTopicsRequest")
    config = kind.CreatableTopicConfig(name=name, value=value)
    request = kind(topics=[kind.CreatableTopic(name="t", configs=[config])])
    assert withhold(request) == 1
    assert config.value == "withheld"


def test_ordinary_configurations_are_shown() -> None:
    kind: Any = message("DescribeConfigsResponse")
    shown = ["retention.ms", "compression.type", "authorizer.class.name", "cleanup.policy"]
    configs = [kind.DescribeConfigsResourceResult(name=name, value="v") for name in shown]
    response = kind(results=[kind.DescribeConfigsResult(configs=configs)])
    assert withhold(response) == 0


def test_what_a_broker_calls_sensitive_is_withheld_with_its_synonyms() -> None:
    kind: Any = message("DescribeConfigsResponse")
    config = kind.DescribeConfigsResourceResult(
        name="plain",
        value="v",
        is_sensitive=True,
        synonyms=[kind.DescribeConfigsSynonym(name="other", value="w")],
    )
    response = kind(results=[kind.DescribeConfigsResult(configs=[config])])
    assert withhold(response) == 2
    assert (config.value, config.synonyms[0].value) == ("withheld", "withheld")


@pytest.mark.parametrize("where", [{"topic": "__cluster_metadata"}, {"topic_id": UUID(int=1)}])
def test_the_records_of_the_cluster_are_withheld(where: dict[str, Any]) -> None:
    kind: Any = message("FetchResponse")

    def topic(**named: Any) -> Any:
        partitions = [kind.PartitionData(records=b"records")]
        return kind.FetchableTopicResponse(partitions=partitions, **named)

    response = kind(responses=[topic(**where), topic(topic="orders", topic_id=UUID(int=2))])
    assert withhold(response) == 1
    records = [one.partitions[0].records for one in response.responses]
    assert records == [b"withheld", b"records"]


def test_unknown_tagged_fields_of_every_structure_are_withheld() -> None:
    token = make("SaslAuthenticateRequest", auth_bytes=None, unknown_tagged_fields={7: b"secret"})
    assert withhold(token) == 1
    assert token.unknown_tagged_fields == {7: b"withheld"}
    kind: Any = message("DescribeDelegationTokenResponse")
    inner = kind.DescribedDelegationToken(hmac=b"x", unknown_tagged_fields={8: b"secret"})
    assert withhold(kind(tokens=[inner])) == 2
    assert inner.unknown_tagged_fields == {8: b"withheld"}
