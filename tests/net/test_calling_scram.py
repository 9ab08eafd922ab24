"""SCRAM follows RFC 7677 and Kafka's brokers, byte by byte. SASL works before and after KIP-152."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.client import Broker, Cluster, Login, Security
from flexwire.client.security import HASHES, ScramClient
from flexwire.errors import ClientConfigError, LoginError
from flexwire.protocol import parse_request
from tests.net.answering import Answers, answering, served
from tests.protocol.payloads import frame

if TYPE_CHECKING:
    import asyncio

# The first exchange is RFC 7677's example. The other exchanges are responses from 4.4.0 brokers to
# this password.
PASSWORD = 'pen"cil, =\\ü'  # noqa: S105 - this password is public
VECTORS = {
    "RFC 7677": (
        "SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO",
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        ("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="),
        "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
    "Kafka, SHA-256": (
        "SCRAM-SHA-256", "alice", PASSWORD, "fyko+d2lbbFgONRv9qkxdawL",
        "r=fyko+d2lbbFgONRv9qkxdawLowhmwrt85f9rjx58fqoa75pr6,s=/LonYe/XglqIzWyPGDHpUg==,i=4096",
        ("c=biws,r=fyko+d2lbbFgONRv9qkxdawLowhmwrt85f9rjx58fqoa75pr6,"
        "p=pO/SG7MZlh/tRTkKvtGOXO4RgaulwwQp+GnF2VzQ2RM="),
        "v=QBdoqobmYmcuuvdOGzE0kLQiJA7dhL44dW+5h/a4umI=",
    ),
    "Kafka, SHA-512": (
        "SCRAM-SHA-512", "alice", PASSWORD, "fyko+d2lbbFgONRv9qkxdawL",
        "r=fyko+d2lbbFgONRv9qkxdawL1eiuowylhrmb0yfghc6g247j05,s=AI/b0Cps0SfhrcDt/QZXLw==,i=4096",
        ("c=biws,r=fyko+d2lbbFgONRv9qkxdawL1eiuowylhrmb0yfghc6g247j05,"
        "p=9kad3rodqAZqP9tTNg11K+WRVIxJrEu4FLD6NOPuzFe0R9xGwVw4NZoShKjUbxqY0iS4wy2QUpI5ucVa6+D/DQ=="),
        "v=LVylbG1Z22TmHtDyJDnpv54hnn8IZty9P51LsYqtQF9aIEcJb/uMyqru47lTS9SrJw9vx3ZyQ3eCjqLEWQnblQ==",
    ),
}  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS.keys())
def test_an_exchange_is_that_of_the_rfc_and_of_kafka(vector: tuple[str, ...]) -> None:
    mechanism, user, password, nonce, server_first, final, server_final = vector
    client = ScramClient(mechanism, user, password, nonce=nonce)
    assert client.first() == f"n,,n={user},r={nonce}".encode()
    assert client.final(server_first.encode()) == final.encode()
    client.verify(server_final.encode())


@pytest.mark.parametrize(
    "says",
    [
        b"", b"v=", b"v=!", b"\xff", b"e=invalid-proof", b"x=1",
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl94G4=",
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95A==",
    ],
)  # fmt: skip
def test_a_broker_that_does_not_know_the_secret_is_not_believed(says: bytes) -> None:
    mechanism, user, password, nonce, server_first, *_ = VECTORS["RFC 7677"]
    client = ScramClient(mechanism, user, password, nonce=nonce)
    client.final(server_first.encode())
    with pytest.raises(LoginError, match="SCRAM: "):
        client.verify(says)


def test_a_signature_before_the_proof_proves_nothing() -> None:
    with pytest.raises(LoginError, match="the broker does not know the secret"):
        ScramClient("SCRAM-SHA-256", "a", "b").verify(b"v=")


def test_each_exchange_has_a_nonce_of_its_own() -> None:
    assert len({ScramClient("SCRAM-SHA-256", "a", "b").first() for _ in range(50)}) == 50


def test_names_are_escaped_and_a_token_says_so() -> None:
    client = ScramClient("SCRAM-SHA-256", "a=b,c", "x", is_token=True, nonce="n")
    assert client.first() == b"n,,n=a=3Db=2Cc,r=n,tokenauth=true"


class ScramServer:
    """The broker's side of SCRAM, as in the RFC: what `Answers` returns to SaslAuthenticate."""

    def __init__(self, mechanism: str, users: dict[str, str]) -> None:
        self._hash = HASHES[mechanism]
        self._users = users
        self._first = ""
        self._server_first = ""

    def __call__(self, form: dict[str, Any]) -> dict[str, Any]:
        token = base64.b64decode(form["authBytes"]).decode()
        if token.startswith("n,,"):
            self._first = token.removeprefix("n,,")
            nonce = self._first.partition(",r=")[2].partition(",")[0]
            salt = base64.b64encode(b"salt").decode()
            self._server_first = f"r={nonce}more,s={salt},i=4096"
            return {"authBytes": base64.b64encode(self._server_first.encode()).decode()}
        without, _, proof = token.rpartition(",p=")
        user = self._first.removeprefix("n=").partition(",")[0]
        salted = hashlib.pbkdf2_hmac(self._hash, self._users[user].encode(), b"salt", 4096)
        signed = f"{self._first},{self._server_first},{without}".encode()
        key = hmac.digest(salted, b"Client Key", self._hash)
        stored = hashlib.new(self._hash, key).digest()
        mask = hmac.digest(stored, signed, self._hash)
        found = bytes(a ^ b for a, b in zip(base64.b64decode(proof), mask, strict=True))
        if hashlib.new(self._hash, found).digest() != stored:
            return {"errorCode": 58, "errorMessage": f"not {self._users[user]}"}
        signature = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), signed, self._hash)
        final = b"v=" + base64.b64encode(signature)
        return {"authBytes": base64.b64encode(final).decode()}


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_client_logs_in_before_it_calls(mechanism: str) -> None:
    says = ScramServer(mechanism, {"alice": "secret"})
    security = Security(login=Login(mechanism, "alice", "secret"))
    with answering(Answers(SaslAuthenticate=says)) as (address, answers):
        with Broker.connect(address, security) as broker:
            broker.call("ListGroups")
        assert answers.asked[1][2] == {"mechanism": mechanism}
        assert answers.names()[2:] == ["SaslAuthenticate", "SaslAuthenticate", "ListGroups"]


@pytest.mark.parametrize("mechanism", ["PLAIN", *HASHES])
def test_a_wrong_password_is_not_shown_nor_is_the_right_one(mechanism: str) -> None:
    plain = {"errorCode": 58, "errorMessage": "mistaken not s3cret"}
    says = plain if mechanism == "PLAIN" else ScramServer(mechanism, {"alice": "s3cret"})
    security = Security(login=Login(mechanism, "alice", "mistaken"))
    with (
        answering(Answers(SaslAuthenticate=says)) as (address, _),
        pytest.raises(LoginError, match=r"SASL_AUTHENTICATION_FAILED.*'alice'") as caught,
    ):
        Broker.connect(address, security)
    told = f"{caught.value} {security!r} {caught.value.__cause__}"
    assert "mistaken" not in told
    assert "s3cret" not in told


def test_a_login_that_failed_is_not_tried_again() -> None:
    # Brokers lock out clients that fail too often.
    security = Security(login=Login("PLAIN", "alice", "mistaken"))
    answers = Answers(SaslAuthenticate={"errorCode": 58})
    with (
        answering(answers) as (address, _),
        Cluster(f"{address},{address}", security) as cluster,
        pytest.raises(LoginError),
    ):
        cluster.call("ListGroups", retries=5)
    assert answers.names().count("SaslAuthenticate") == 1


def test_a_mechanism_that_the_listener_does_not_have_is_said_with_those_it_has() -> None:
    says = {"errorCode": 33, "mechanisms": ["GSSAPI", "OAUTHBEARER"]}
    login = Security(login=Login("PLAIN", "alice", "secret"))
    with (
        answering(Answers(SaslHandshake=says)) as (address, answers),
        pytest.raises(LoginError, match="enabled mechanisms: GSSAPI, OAUTHBEARER"),
    ):
        Broker.connect(address, login)
    assert "SaslAuthenticate" not in answers.names()


def test_a_broker_from_before_kip_152_gets_bare_tokens() -> None:
    offered = {"ApiVersions": (0, 1), "SaslHandshake": (0, 0), "ListGroups": (0, 0)}
    answers = Answers(offered)
    tokens: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while prefix := await reader.read(4):
            payload = await reader.readexactly(int.from_bytes(prefix, "big"))
            if answers.names()[-1:] == ["SaslHandshake"] and not tokens:
                tokens.append(payload)
                said: bytes | None = b""
            else:
                said = answers(parse_request(payload), payload)
            assert said is not None
            writer.write(frame(said))
            await writer.drain()

    login = Security(login=Login("PLAIN", "alice", "secret"))
    with served(handle) as address, Broker.connect(address, login) as broker:
        broker.call("ListGroups")
    assert tokens == [b"\0alice\0secret"]
    assert answers.names()[-1] == "ListGroups"


@pytest.mark.parametrize("mechanism", ["PLAIN", *HASHES])
def test_a_broker_from_before_kip_152_refuses_by_closing_and_is_not_asked_again(
    mechanism: str,
) -> None:
    offered = {"ApiVersions": (0, 1), "SaslHandshake": (0, 0), "ListGroups": (0, 0)}
    answers = Answers(offered)
    tokens: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while prefix := await reader.read(4):
            payload = await reader.readexactly(int.from_bytes(prefix, "big"))
            if answers.names()[-1:] == ["SaslHandshake"]:
                tokens.append(payload)
                return
            said = answers(parse_request(payload), payload)
            assert said is not None
            writer.write(frame(said))
            await writer.drain()

    login = Security(login=Login(mechanism, "alice", "mistaken"))
    with (
        served(handle) as address,
        Cluster(f"{address},{address}", login) as cluster,
        pytest.raises(LoginError, match=r"SaslHandshake v0.*'alice'") as caught,
    ):
        cluster.call("ListGroups", retries=5)
    assert len(tokens) == 1
    assert "mistaken" not in str(caught.value)


def test_a_password_is_laid_open_by_plain_without_tls() -> None:
    plain, scram = (Login(one, "alice", "secret") for one in ("PLAIN", "SCRAM-SHA-256"))
    assert Security(login=plain).lays_password_open
    tls = ssl.create_default_context()
    for other in (Security(), Security(login=scram), Security(tls), Security(tls, plain)):
        assert not other.lays_password_open


def test_a_login_has_a_mechanism_that_is_known() -> None:
    with pytest.raises(
        ClientConfigError, match="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, got 'GSSAPI'"
    ):
        Login("GSSAPI", "a", "b")
    with pytest.raises(
        ClientConfigError, match="expected a SCRAM mechanism for a delegation token, got PLAIN"
    ):
        Login("PLAIN", "a", "b", is_token=True)
