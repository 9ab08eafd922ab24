"""A properties file has the same meaning as in Kafka's own clients, and no error shows a secret."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)

from flexwire.client import Broker, Login, Security
from flexwire.client.config import (
    ClientConfig,
    client_config,
    parse_jaas,
    parse_properties,
    read_client_config,
)
from flexwire.client.tls import server_context
from flexwire.errors import CallError, ClientConfigError, TlsError
from tests.net.answering import answering
from tests.tls import LOOPBACK, Authority

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from pathlib import Path

    from flexwire.client.tls import ClientAuth

HUSH = "hush"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"

# The result of java.util.Properties for these strings.
PROPERTIES = {
    "a=b": {"a": "b"},
    "a: b": {"a": "b"},
    "a b": {"a": "b"},
    "a\t=\f b ": {"a": "b "},
    "a==b": {"a": "=b"},
    "a = : b": {"a": ": b"},
    "a": {"a": ""},
    "=b": {"": "b"},
    "  # a=b\n! c=d\n\n \te=f": {"e": "f"},
    "a=b\\\n   c\\\n\td": {"a": "bcd"},
    "a=b\\\\\nc=d": {"a": "b\\", "c": "d"},
    "a=b\\\\\\\nc=d": {"a": "b\\c=d"},
    "# no\\\na=b": {"a": "b"},
    "a=b\\\n# c": {"a": "b# c"},
    "\\\n# c\na=b": {"a": "b"},
    "a\\ b\\=\\:c=d": {"a b=:c": "d"},
    "a=\\t\\n\\r\\f\\q\\\\": {"a": "\t\n\r\fq\\"},
    "\\u0061=\\u00FC\\u20ac": {"a": "ü€"},
    "a=1\r\nb=2\rc=3": {"a": "1", "b": "2", "c": "3"},
    "a=1\na=2": {"a": "2"},
    "a=\\ud83d\\ude00": {"a": "\U0001f600"},
    "a=b\\": {"a": "b"},
    "\va=b\\\n\xa0c": {"\va": "b\xa0c"},
}


@pytest.mark.parametrize("text", PROPERTIES)
def test_properties_are_read_as_java_reads_them(text: str) -> None:
    assert parse_properties(text, "x") == PROPERTIES[text]


@pytest.mark.parametrize(
    "text", ["a=1\nb=\\u12", "a=1\nb=\\u", "a=1\n\\uxyzw=2", "a=1\nb=\\ud83d!"]
)
def test_a_broken_escape_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(ClientConfigError, match=r"x:2: expected \\u and four hex digits"):
        parse_properties(text, "x")


@pytest.mark.parametrize(
    ("text", "mechanism", "login"),
    [
        (f'{PLAIN} username="alice" password="s";', "PLAIN", ("alice", "s", False)),
        (f"{SCRAM} username='a' password='b c' ;", "SCRAM-SHA-256", ("a", "b c", False)),
        (f"{PLAIN} username=a password=b-c_d$e;", "PLAIN", ("a", "b-c_d$e", False)),
        (f'{PLAIN} username="a" password="\\"\\\\\\n\\101;";', "PLAIN", ("a", '"\\\nA;', False)),
        (f'{PLAIN} // c\n username="a" /* d */ password="";', "PLAIN", ("a", "", False)),
        (f'{SCRAM} username="i" password="h" tokenauth="true";', "SCRAM-SHA-512", ("i", "h", True)),
        ((f'{SCRAM.upper().replace("SCRAMLOGINMODULE", "ScramLoginModule")} username="a" '
         'password="b" serviceName="kafka";'), "SCRAM-SHA-512", ("a", "b", False)),
    ],
)  # fmt: skip
def test_a_login_module_names_user_and_password(
    text: str, mechanism: str, login: tuple[str, str, bool]
) -> None:
    user, password, is_token = login
    assert parse_jaas(text, mechanism) == Login(mechanism, user, password, is_token=is_token)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected ';' at the end"),
        (f'{PLAIN} username="a" password="hidden"', "expected ';' at the end"),
        (f'{PLAIN} username="a" password="hidden;', "unexpected text at character"),
        (f'{PLAIN} username="a" password="hidden"; {PLAIN};', "got several"),
        (f'{PLAIN} username="a" password=;', "expected options"),
        (f'{PLAIN} username="a" "hidden";', "expected options"),
        (f'{PLAIN} password="hidden";', "needs a username"),
        (f'{PLAIN} username="hidden";', "needs a password"),
        (f'{SCRAM} username="a" password="hidden";', "does not support sasl.mechanism PLAIN"),
        ("com.sun.security.auth.module.Krb5LoginModule required;", "got Krb5LoginModule"),
        ("PlainLoginModule;", "expected a login module class"),
    ],
)
def test_what_is_not_a_login_module_is_refused_and_not_shown(text: str, why: str) -> None:
    with pytest.raises(ClientConfigError, match=why) as caught:
        parse_jaas(text, "PLAIN")
    assert "hidden" not in "".join(traceback.format_exception(caught.value)[-1:])


def config(directory: Path, **given: str) -> ClientConfig:
    path = directory / "client.properties"
    lines = [f"{name.replace('_', '.')}={value}\n" for name, value in given.items()]
    path.write_text("".join(lines), encoding="utf-8")
    return read_client_config(path)


def test_a_file_says_how_a_cluster_is_reached(tmp_path: Path) -> None:
    found = config(
        tmp_path,
        bootstrap_servers="elsewhere:9092",
        security_protocol="sasl_plaintext",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_jaas_config=f'{SCRAM} username="alice" password="secret";',
        client_id="me",
        request_timeout_ms="1500",
        acks="all",
        linger_ms="5",
    )
    login = Login("SCRAM-SHA-512", "alice", "secret")
    assert found == ClientConfig(Security(None, login), "me", 1.5, ("acks", "linger.ms"))
    assert "secret" not in repr(found)


def test_an_empty_file_is_plaintext(tmp_path: Path) -> None:
    assert config(tmp_path) == ClientConfig(Security())


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"security_protocol": "TLS"}, "security.protocol: expected PLAINTEXT, SSL"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "sasl.mechanism: expected PLAIN.*got GSSAPI"),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"},
            "sasl.jaas.config: PLAIN requires this setting",
        ),
        ({"request_timeout_ms": "soon"}, "request.timeout.ms: expected milliseconds"),
        ({"request_timeout_ms": "0"}, "request.timeout.ms: expected milliseconds"),
        ({"request_timeout_ms": "9" * 5000}, "request.timeout.ms: expected milliseconds"),
        ({"config_providers": "file"}, "config.providers"),
        ({"security_protocol": "SSL", "ssl_truststore_location": "/no/such"}, "No such file"),
        ({"security_protocol": "SSL", "ssl_keystore_key": "x"}, "chain together"),
        (
            {"security_protocol": "SSL", "ssl_truststore_certificates": "x"},
            "ssl.truststore.type: expected PEM, got JKS",
        ),
    ],
)
def test_what_cannot_be_used_is_said_with_its_file(
    tmp_path: Path, given: dict[str, str], why: str
) -> None:
    with pytest.raises(ClientConfigError, match=rf"client.properties: .*{why}"):
        config(tmp_path, **given)


# Trust stores and key stores are used with a broker that uses TLS.

Stores = dict[str, str]


def pem_file(authority: Authority, _: Path) -> Stores:
    return {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(authority.path)}


def pem_inline(authority: Authority, _: Path) -> Stores:
    lines = authority.path.read_text().replace("\n", "\\\n  ")
    return {"ssl_truststore_type": "PEM", "ssl_truststore_certificates": lines}


def pem_with_line_ends(authority: Authority, _: Path) -> Stores:
    lines = authority.path.read_text().replace("\n", "\\n")
    return {"ssl_truststore_type": "PEM", "ssl_truststore_certificates": lines}


def pkcs12_file(authority: Authority, directory: Path) -> Stores:
    certificate = x509.load_pem_x509_certificate(authority.path.read_bytes())
    raw = pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(certificate, b"ca")], BestAvailableEncryption(b"changeit")
    )
    path = directory / "trust.p12"
    path.write_bytes(raw)
    # JKS is Java's default store type, and Java also opens PKCS #12 stores with this type.
    return {"ssl_truststore_location": str(path), "ssl_truststore_password": "changeit"}


@pytest.mark.parametrize("store", [pem_file, pem_inline, pem_with_line_ends, pkcs12_file])
def test_a_broker_is_trusted_by_every_kind_of_store(
    tmp_path: Path, store: Callable[[Authority, Path], Stores]
) -> None:
    authority = Authority(tmp_path)
    found = config(tmp_path, security_protocol="SSL", **store(authority, tmp_path))
    with (
        answering(tls=listening(authority)) as (address, _),
        Broker.connect(address, found.security) as broker,
    ):
        assert broker.call("ListGroups").response is not None


def test_a_broker_of_another_authority_or_name_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    found = config(tmp_path, security_protocol="SSL", **pem_file(other, tmp_path))
    with (
        answering(tls=listening(authority)) as (address, _),
        pytest.raises(CallError, match="certificate has an issuer that is not trusted"),
    ):
        Broker.connect(address, found.security)
    stores = pem_file(authority, tmp_path)
    elsewhere = listening(authority, hosts=("elsewhere.example",))
    with answering(tls=elsewhere) as (address, _):
        checks = config(tmp_path, security_protocol="SSL", **stores)
        with pytest.raises(CallError, match="certificate is not valid: "):
            Broker.connect(address, checks.security)
        stores["ssl_endpoint_identification_algorithm"] = ""
        any_name = config(tmp_path, security_protocol="SSL", **stores)
        Broker.connect(address, any_name.security).close()


def keys_pem(authority: Authority, directory: Path) -> Stores:
    chain, key = authority.certificate(name="me", password=HUSH)
    path = directory / "keys.pem"
    path.write_text(key.read_text() + chain.read_text())
    return {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(path),
        "ssl_key_password": "hush",
    }


def keys_inline(authority: Authority, _: Path) -> Stores:
    chain, key = authority.certificate(name="me", password=HUSH)
    return {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_key": key.read_text().replace("\n", "\\\n"),
        "ssl_keystore_certificate_chain": chain.read_text().replace("\n", " \\\n"),
        "ssl_key_password": "hush",
    }


def keys_pkcs12(authority: Authority, directory: Path) -> Stores:
    chain, key = authority.certificate(name="me")
    own, *others = x509.load_pem_x509_certificates(chain.read_bytes())
    private: Any = load_pem_private_key(key.read_bytes(), None)
    sealed = BestAvailableEncryption(HUSH.encode())
    raw = pkcs12.serialize_key_and_certificates(b"me", private, own, others, sealed)
    path = directory / "keys.p12"
    path.write_bytes(raw)
    return {
        "ssl_keystore_type": "PKCS12",
        "ssl_keystore_location": str(path),
        "ssl_keystore_password": "hush",
    }


@pytest.mark.parametrize("keys", [keys_pem, keys_inline, keys_pkcs12])
def test_a_client_comes_with_every_kind_of_key_store(
    tmp_path: Path, keys: Callable[[Authority, Path], Stores]
) -> None:
    authority = Authority(tmp_path)
    stores = pem_file(authority, tmp_path) | keys(authority, tmp_path)
    found = config(tmp_path, security_protocol="SSL", **stores)
    wanting = listening(authority, client_auth="required")
    with answering(tls=wanting) as (address, _):
        with Broker.connect(address, found.security) as broker:
            assert broker.call("ListGroups").response is not None
        nobody = config(tmp_path, security_protocol="SSL", **pem_file(authority, tmp_path))
        with pytest.raises(CallError), Broker.connect(address, nobody.security) as broker:
            broker.call("ListGroups")


def test_jks_is_worded_with_the_command_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "trust.jks"
    path.write_bytes(bytes.fromhex("feedfeed00000002"))
    with pytest.raises(
        ClientConfigError, match=r"keytool -importkeystore .* -deststoretype PKCS12"
    ):
        config(tmp_path, security_protocol="SSL", ssl_truststore_location=str(path))


def test_a_store_that_does_not_open_shows_no_password(tmp_path: Path) -> None:
    stores = keys_pkcs12(Authority(tmp_path), tmp_path) | {"ssl_keystore_password": "mistaken"}
    with pytest.raises(ClientConfigError, match=r"ssl.keystore.password is wrong") as caught:
        config(tmp_path, security_protocol="SSL", **stores)
    assert "mistaken" not in str(caught.value)
    stores = keys_pem(Authority(tmp_path), tmp_path) | {"ssl_key_password": "mistaken"}
    with pytest.raises(TlsError) as failed:
        config(tmp_path, security_protocol="SSL", **stores)
    assert "mistaken" not in str(failed.value)


def test_no_key_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    client_config({"security.protocol": "SSL"})
    config(tmp_path, security_protocol="SSL", **keys_pkcs12(Authority(tmp_path), tmp_path))
    assert not list((tmp_path / "temporary").iterdir())


def listening(
    authority: Authority, hosts: tuple[str, ...] = LOOPBACK, *, client_auth: ClientAuth = "none"
) -> ssl.SSLContext:
    chain, key = authority.certificate(hosts)
    return server_context(chain, key, ca=authority.path, client_auth=client_auth)


def test_a_store_that_is_not_pem_is_named_and_not_shown() -> None:
    begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
    given = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": f"{begin}secret\xe9{end}",
        "ssl.keystore.certificate.chain": begin,
    }
    with pytest.raises(TlsError, match=r"^ssl.keystore: expected a certificate") as caught:
        client_config(given)
    assert "secret" not in str(caught.value)


def test_a_password_that_has_no_utf8_is_refused_and_not_shown() -> None:
    with pytest.raises(ClientConfigError, match="UTF-8") as caught:
        Login("PLAIN", "alice", "secret\ud800")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
