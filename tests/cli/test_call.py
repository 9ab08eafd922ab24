"""`flexwire call` reads and writes JSON, prints messages on standard error, and sets
its exit code.
"""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.cli import connection_options
from flexwire.client.security import MECHANISMS
from flexwire.codec import message
from flexwire.protocol.readable_json import to_readable_json
from tests.cli.test_messages import Run, run
from tests.net.answering import Answers, answering, served
from tests.net.test_calling_hostile import sends
from tests.net.test_calling_scram import ScramServer
from tests.net.test_client_config import listening
from tests.protocol.payloads import frame
from tests.tls import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.protocol import RequestFrame

__all__ = ["run"]

FAILING = {"topics": [{"name": "a", "errorCode": 3}, {"name": "b", "errorCode": 6}]}


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def address(answers: Answers) -> Iterator[str]:
    with answering(answers) as (found, _):
        yield found


def test_a_request_is_json_and_so_is_its_answer(run: Run, address: str, answers: Answers) -> None:
    run("call", address, "Metadata", '{"topics": null}', "--version", "12")
    assert (run.code, run.err) == (0, "")
    assert json.loads(run.out)["brokers"] == []
    # The command first asks whether the broker offers the version.
    assert answers.names() == ["ApiVersions", "Metadata"]
    name, version, form = answers.asked[-1]
    assert (name, version, form["topics"]) == ("Metadata", 12, None)


def test_a_body_is_read_from_a_file_and_from_standard_input(
    run: Run, address: str, answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "body.json"
    path.write_text('{"statesFilter": ["Empty"]}')
    run("call", address, "ListGroups", str(path), "-V", "4")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    run("call", address, "ListGroups", "-", "-V", "4")
    asked = [form for name, _, form in answers.asked if name == "ListGroups"]
    assert asked == [{"statesFilter": ["Empty"]}] * 2


def test_error_codes_are_named_and_fail(run: Run, address: str, answers: Answers) -> None:
    answers.says["Metadata"] = FAILING
    run("call", address, "Metadata", "-V", "12", '{"topics": null}')
    assert run.code == 1
    names = [topic["_errorName"] for topic in json.loads(run.out)["topics"]]
    assert names == ["UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER"]
    assert run.err.splitlines() == [
        "error: topics[0].errorCode: 3 UNKNOWN_TOPIC_OR_PARTITION",
        "error: topics[1].errorCode: 6 NOT_LEADER_OR_FOLLOWER",
        "--to leader:TOPIC-PARTITION sends the request to the leader",
    ]
    run("call", address, "Metadata", "-V", "12", '{"topics": null}', "--raw")
    assert "_errorName" not in run.out
    assert "NOT_LEADER_OR_FOLLOWER" in run.err


def test_what_writes_needs_yes(run: Run, address: str, answers: Answers) -> None:
    body = '{"topicNames": ["a"]}'
    run("call", address, "DeleteTopics", body, "-V", "5")
    assert run.code == 2
    assert "DeleteTopics may change something; --yes sends it" in run.err
    assert "DeleteTopics" not in answers.names()
    assert run("call", address, "DeleteTopics", body, "-V", "5", "--yes").code == 0
    assert answers.names()[-1] == "DeleteTopics"


def test_acks_0_waits_for_nothing(run: Run, address: str, answers: Answers) -> None:
    answers.says["Produce"] = None
    run("call", address, "Produce", '{"acks": 0}', "-V", "9", "--yes")
    assert (run.code, run.out) == (0, "null\n")
    assert run.err == "no response is expected, because acks is 0\n"


def test_header_tags_go_out_once_each(run: Run, address: str, answers: Answers) -> None:
    tags = ["--header-tag", "10042=a1", "--header-tag", "10043=hex:00ff"]
    run("call", address, "ListGroups", *tags, "-V", "4")
    header: Any = answers.headers[-1].header
    assert header.unknown_tagged_fields == {10042: b"a1", 10043: b"\0\xff"}
    run("call", address, "ListGroups", *tags[:2], *tags[:2], "-V", "4")
    assert (run.code, "tag 10042 appears twice" in run.err) == (1, True)


def test_both_frames_are_explained_beside_the_answer(
    run: Run, address: str, answers: Answers
) -> None:
    run("call", address, "ListGroups", "-V", "4", "--explain")
    assert json.loads(run.out)["groups"] == []
    titles = [line for line in run.err.splitlines() if line[:1].isalpha() and "offset" not in line]
    assert titles == [
        f"request: a frame of {len(answers.frames[-1])} bytes; RequestHeader v2",
        "ListGroupsRequest v4",
        "response: a frame of 13 bytes; ResponseHeader v1",
        "ListGroupsResponse v4",
    ]
    assert "correlationId" in run.err


def test_secrets_are_withheld_from_what_is_explained(
    run: Run, address: str, answers: Answers
) -> None:
    token = {"authBytes": "AGFsaWNlAHNlY3JldA=="}
    answers.says["SaslAuthenticate"] = {"authBytes": token["authBytes"]}
    run("call", address, "SaslAuthenticate", json.dumps(token), "-V", "2", "--explain")
    assert run.code == 0
    assert "SaslAuthenticateRequest v2; 1 credential is withheld" in run.err
    assert "73 65 63 72 65 74" not in run.err.replace("\n", " ")
    assert "secret" not in run.err


def test_what_does_not_decode_is_explained_as_far_as_it_does(run: Run) -> None:
    body = bytes.fromhex("00000000000003026700")
    raw = frame(bytes.fromhex("0000000100") + body)
    with served(sends(raw)) as address:
        run("call", str(address), "ListGroups", "-V", "4", "--explain")
    assert run.code == 1
    # The part of the response that can be decoded is printed.
    assert json.loads(run.out) == {
        "throttleTimeMs": 0,
        "errorCode": 0,
        "groups": [{"groupId": "g"}],
    }
    assert "groups[0].groupId" in run.err
    assert "ListGroupsResponse v4 at groups[0]" in run.err
    # A token is not shown, even if it cannot be decoded.
    with served(sends(frame(bytes.fromhex("0000000100") + b"s3cret"))) as address:
        run("call", str(address), "SaslAuthenticate", "-V", "2", "--explain")
    assert run.code == 1
    assert "SaslAuthenticateResponse v2; 1 credential is withheld" in run.err
    assert "73 33 63" not in run.err
    # The request is explained even without a response.
    with served(sends(b"")) as address:
        run("call", str(address), "ListGroups", "-V", "4", "--explain")
    assert "ListGroupsRequest v4" in run.err
    assert "closed the connection without an answer" in run.err


def test_names_of_requests_are_completed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_FLEXWIRE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "flexwire call localhost:9092 describeC")
    monkeypatch.setenv("COMP_CWORD", "3")
    run()
    assert run.out.split() == [
        "plain,DescribeClientQuotas", "plain,DescribeCluster", "plain,DescribeConfigs",
    ]  # fmt: skip


def test_many_requests_go_over_one_connection_and_are_answered_in_order(
    run: Run, address: str, answers: Answers, tmp_path: Path
) -> None:
    answers.says["Metadata"] = FAILING
    lines = [
        {"message": "ListGroups"},
        {"message": "Metadata", "version": 12, "body": {"topics": None}},
        {"message": "DeleteTopics"},
        {"message": "ListGroups", "body": {"x": 1}},
        {"message": "ListGroups", "headerTags": {"10042": "a"}, "version": "4", "to": "any"},
        {"mesage": "ListGroups"},
        {"message": "ListGroups", "bodi": {}},
        {"message": "ListGroups", "version": "new"},
        {"message": "ListGroups", "headerTags": []},
        {"message": "ListGroups", "to": "nowhere"},
    ]
    path = tmp_path / "requests.jsonl"
    path.write_text("\n".join(["", *map(json.dumps, lines), "[", ""]))
    run("call", address, "--requests", str(path))
    told = [json.loads(line) for line in run.out.splitlines()]
    assert [one["line"] for one in told] == list(range(2, 13))
    assert [one.get("error", "").partition(":")[0] for one in told] == [
        "", "", "WriteRefusedError", "JsonFormError", "", "InputError", "InputError", "UsageError",
        "InputError", "ArgumentError", "InputError",
    ]  # fmt: skip
    assert told[0]["response"]["groups"] == []
    assert (told[1]["version"], told[1]["broker"]) == (12, address)
    assert told[1]["response"]["topics"][0]["_errorName"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert run.code == 1
    assert "9 of the requests failed" in run.err
    assert answers.names() == ["ApiVersions", "ListGroups", "Metadata", "ListGroups"]
    assert len({header.correlation_id for header in answers.headers}) == 4


def test_the_apis_of_a_broker_are_listed(run: Run, address: str, answers: Answers) -> None:
    answers.offered = {"Metadata": (0, 99), "DeleteTopics": (1, 3), "ApiVersions": (0, 3)}
    run("call", address, "--apis")
    assert run.code == 0
    head, _, *rows = run.out.splitlines()
    assert head == f"{address}: the versions match no release in the catalog"
    assert [row.split() for row in rows] == [
        ["3", "Metadata", "0-99", "0-13", "reads"],
        ["18", "ApiVersions", "0-3", "0-3", "reads"],
        ["20", "DeleteTopics", "1-3", "1-3", "may", "write"],
    ]
    form = json.loads(run("call", address, "--apis", "--format", "json").out)
    assert (form["broker"], form["releases"]) == (address, [])
    assert [one["reads"] for one in form["apis"]] == [True, True, False]
    row = {"apiKey": 3, "api": "Metadata", "broker": "0-99", "usable": "0-13", "reads": True}
    assert form["apis"][0] == row


def test_a_route_leads_to_a_broker(run: Run, address: str, answers: Answers) -> None:
    host, port = address.split(":")
    answers.says["Metadata"] = {"brokers": [{"nodeId": 7, "host": host, "port": int(port)}]}
    assert run("call", address, "ListGroups", "--to", "7").code == 0
    assert run("call", address, "ListGroups", "--to", "8").code == 1
    assert "does not know node 8; known nodes: 7" in run.err
    assert answers.names().count("ListGroups") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("Metadata", "--apis"),
        ("Metadata", "--requests", "-"),
        ("Metadata", "--version", "new"),
        ("Metadata", "--version", "9" * 5000),
        ("Metadata", "--sasl", "PLAIN"),
        ("Metadata", "--user", "alice"),
        ("Metadata", "--key", __file__),
        ("Metadata", "--timeout", "0"),
        ("Metadata", "--command-config", __file__, "--tls"),
        ("Metadata", "--command-config", "/no/such/file"),
        ("Metadata", "--sasl", "GSSAPI"),
    ],
)
def test_options_that_do_not_go_together_are_usage_errors(
    run: Run, arguments: tuple[str, ...]
) -> None:
    assert run("call", "127.0.0.1:1", *arguments).code == 2, run.err


def test_a_broker_that_is_not_there_is_an_error(run: Run) -> None:
    run("call", "127.0.0.1:1", "Metadata")
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith("CallError: 127.0.0.1:1 cannot be reached: ")


def test_the_mechanisms_of_the_option_are_those_there_are() -> None:
    assert tuple(connection_options.MECHANISMS) == MECHANISMS


# TLS and SASL are set by options and by a properties file.


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[str, Authority, Answers]]:
    authority = Authority(tmp_path)
    answers = Answers(SaslAuthenticate=ScramServer("SCRAM-SHA-256", {"alice": "s3cret"}))
    with answering(answers, listening(authority)) as (address, _):
        yield address, authority, answers


def test_a_secured_broker_is_reached_by_options(
    run: Run, secured: tuple[str, Authority, Answers], tmp_path: Path
) -> None:
    address, authority, answers = secured
    (tmp_path / "password").write_text("s3cret\n")
    login = ("--sasl", "scram-sha-256", "--user", "alice")
    given = ("--ca", str(authority.path), *login, "--password-file", str(tmp_path / "password"))
    run("call", address, "ListGroups", *given, "--client-id", "me", "--explain")
    assert run.code == 0, run.err
    assert answers.headers[-1].client_id == "me"
    assert "s3cret" not in run.err


def test_plain_without_tls_is_warned_of(run: Run, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    given = ("--user", "alice", "--password-file", str(tmp_path / "password"))
    with answering() as (address, _):
        run("call", address, "ListGroups", "--sasl", "plain", *given)
    assert run.code == 0
    assert run.err.startswith("warning: PLAIN without TLS sends the password unencrypted")
    assert "s3cret" not in run.err


def test_a_secured_broker_is_reached_by_a_properties_file(
    run: Run, secured: tuple[str, Authority, Answers], tmp_path: Path
) -> None:
    address, authority, _ = secured
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nacks=all\n"
        f'sasl.jaas.config={module} username="alice" password="s3cret";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={authority.path}\n"
    )
    run("call", address, "ListGroups", "--command-config", str(config))
    assert run.code == 0
    assert run.err == f"{config}: not used: acks\n"
    config.write_text(config.read_text().replace("s3cret", "mistaken"))
    assert run("call", address, "ListGroups", "--command-config", str(config)).code == 1
    assert "LoginError: " in run.err
    assert "SASL_AUTHENTICATION_FAILED" in run.err
    assert "mistaken" not in run.err


class TwiceTagged(Answers):
    """A broker that sends the last tag section twice, as librdkafka's mock does in Metadata."""

    def __call__(self, request: RequestFrame, payload: bytes) -> bytes | None:
        answer = super().__call__(request, payload)
        return answer + b"\0" if answer and request.api_name == "Metadata" else answer


@pytest.mark.parametrize("version", ["9", "12", "latest"])
def test_an_answer_with_a_byte_too_many_is_printed_and_said_to_deviate(
    run: Run, version: str
) -> None:
    with answering(TwiceTagged(Metadata=FAILING)) as (address, _):
        run("call", address, "Metadata", '{"topics": null}', "-V", version)
        assert run.code == 1
        assert [one["_errorName"] for one in json.loads(run.out)["topics"]] == [
            "UNKNOWN_TOPIC_OR_PARTITION",
            "NOT_LEADER_OR_FOLLOWER",
        ]
        assert "the message ends here but 1 bytes follow" in run.err
        line = json.dumps({"message": "Metadata", "version": version, "body": {"topics": None}})
        run("call", address, "--requests", "-", *_input(run, line))
    told = json.loads(run.out)
    assert told["response"]["topics"][0]["errorCode"] == 3
    assert told["error"].endswith("the message ends here but 1 bytes follow")
    assert run.code == 1


def _input(run: Run, text: str) -> list[str]:
    run.patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    return []


@pytest.mark.parametrize("number", [9, 12])
@pytest.mark.parametrize("cut", [1, 2, 3, 6, 11, 17, 29])
def test_of_an_answer_that_breaks_off_all_fields_before_are_printed(
    run: Run, number: int, cut: int
) -> None:
    class Cut(Answers):
        whole = b""

        def __call__(self, request: RequestFrame, payload: bytes) -> bytes | None:
            answer = super().__call__(request, payload)
            if answer is None or request.api_name != "Metadata":
                return answer
            Cut.whole = answer
            return answer[:-cut]

    with answering(Cut(Metadata=FAILING)) as (address, _):
        run("call", address, "Metadata", '{"topics": null}', "-V", str(number))
    assert run.code == 1
    assert run.err.rstrip().splitlines()[-2].startswith("DecodeError: MetadataResponse v")
    whole = json.dumps(
        to_readable_json(message("MetadataResponse").decode(Cut.whole[5:], number), number)
    )
    # Only the beginning of the response is in the output.
    told = json.loads(run.out)
    assert list(told) == list(json.loads(whole))[: len(told)]


def test_a_version_that_the_broker_does_not_offer_is_not_sent_unless_one_insists(run: Run) -> None:
    offered = {"ApiVersions": (0, 3), "Metadata": (0, 12)}
    with answering(Answers(offered=offered)) as (address, answers):
        run("call", address, "Metadata", "-V", "13")
        assert (run.code, run.out) == (1, "")
        assert "Metadata 13 was requested; use --any-version to send this version anyway" in run.err
        run("call", address, "ListGroups", "-V", "4")
        assert "does not offer this API; ListGroups 4 was requested" in run.err
        assert "Metadata" not in answers.names()
        run("call", address, "Metadata", "-V", "13", "--any-version")
        assert run.code == 0
        run("call", address, "ApiVersions", "-V", "4")
        assert run.code == 0


@pytest.mark.long
@pytest.mark.slow
def test_a_broker_that_does_not_say_what_it_offers_is_sent_what_was_asked_for(run: Run) -> None:
    with answering(Answers(ApiVersions=None)) as (address, answers):
        # The command waits this long for the first response, which is lost, then for the second.
        assert run("call", address, "ListGroups", "-V", "0", "--timeout", "3").code == 0
        assert answers.names() == ["ApiVersions", "ListGroups"]


def test_a_name_that_no_api_has_is_refused_before_anybody_is_connected_to(run: Run) -> None:
    run("call", "localhost:1", "Metadta")
    assert (run.code, run.err) == (
        1,
        "UnknownMessageError: no API 'Metadta'; did you mean 'Metadata'?\n",
    )


def test_what_a_reading_request_leaves_behind_is_said(run: Run, address: str) -> None:
    run("call", address, "FindCoordinator", "-V", "3")
    assert "FindCoordinator: the first request for a coordinator type causes the" in run.err
    run("call", address, "FetchSnapshot", "-V", "0")
    assert run.code == 2
    assert "FetchSnapshot may change something: without topics, the request terminates" in run.err
    assert run.err.rstrip().endswith("--yes sends it")
