from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.protocol import carries_credentials, credential_fields, withhold
from flexwire.protocol.credentials import CREDENTIALS, CredentialField
from flexwire.schema.catalog import catalog
from tests.protocol.payloads import make

if TYPE_CHECKING:
    from flexwire.schema.spec import FieldSpec


def field_at(one: CredentialField) -> FieldSpec:
    spec = catalog().entry(one.message_name).specs()[0][0]
    structs = spec.structs()
    fields = spec.fields
    for name, attribute, json_name in zip(one.path, one.attributes, one.json_names, strict=True):
        found = next(field for field in fields if field.name == name)
        assert (found.attribute, found.json_name) == (attribute, json_name)
        fields = structs.get(found.type.name, ())
    return found


@pytest.mark.parametrize(
    "one", CREDENTIALS, ids=lambda one: ".".join((one.message_name, *one.path))
)
def test_every_credential_field_is_in_its_spec(one: CredentialField) -> None:
    assert field_at(one).type.name in {"bytes", "string"}
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
