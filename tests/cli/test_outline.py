"""With ``--format text``, `decode` and `call` print a message as text."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.cli.decode import outline
from flexwire.codec import message
from tests.net.answering import Answers, answering
from tests.protocol.payloads import frame, make, request_payload


def told(*arguments: str) -> list[str]:
    ran = CliRunner().invoke(app, [*arguments, "--format", "text"])
    assert ran.exit_code == 0, ran.output
    return ran.stdout.splitlines()


def test_every_value_of_the_json_form_is_a_line_below_those_that_hold_it() -> None:
    form = {
        "null": None,
        "empty": [],
        "plain": [1, 2],
        "texts": ["a", "b"],
        "within": [{"one": [{"two": 2}, {"two": 3}], "last": True}, [], {}],
        "held": {"by": "value"},
        "nothing": {},
    }
    assert list(outline(form)) == [
        "null: null",
        "empty: []",
        "plain: [1, 2]",
        'texts: ["a", "b"]',
        "within:",
        "  - one:",
        "      - two: 2",
        "      - two: 3",
        "    last: true",
        "  - []",
        "  - {}",
        "held:",
        '  by: "value"',
        "nothing: {}",
    ]


def test_what_a_terminal_would_obey_is_escaped() -> None:
    assert list(outline({"a\x1b": "\x9b2J\u202e"})) == [r'a\u001b: "\u009b2J\u202e"']


def test_a_message_has_its_name_and_an_error_code_what_it_is_called() -> None:
    answer = message("ProduceResponse").of(
        responses=[{"name": "a", "partition_responses": [{"error_code": 3}, {}]}]
    )
    lines = told("decode", "ProduceResponse", "-V", "0", answer.encode(0).hex())
    assert lines[0] == "ProduceResponse version 0"
    codes = [line.strip() for line in lines if "rrorCode" in line]
    assert codes == ["errorCode: 3 UNKNOWN_TOPIC_OR_PARTITION", "errorCode: 0"]


def test_a_frame_has_its_header_before_its_message() -> None:
    lines = told("decode", "--frame", frame(request_payload(3, 12, make("MetadataRequest"))).hex())
    assert [line for line in lines if not line.startswith(" ")] == [
        f"request of {int(lines[0].split()[2])} bytes",
        "header version 2",
        "MetadataRequest version 12",
    ]
    # Both parts are indented one level more than their titles.
    assert "  requestApiKey: 3" in lines
    assert "  topics: []" in lines


@pytest.mark.parametrize("option", ["--lines", "--compact"])
def test_lines_of_json_are_not_text(option: str) -> None:
    asked = ["decode", "MetadataRequest", "-V", "4", "00", option, "--format", "text"]
    ran = CliRunner().invoke(app, asked)
    assert ran.exit_code == 2
    assert "print JSON" in ran.output


def test_a_call_prints_its_answer_as_text() -> None:
    failing = {"topics": [{"name": "a", "errorCode": 3}]}
    with answering(Answers(Metadata=failing)) as (address, _):
        asked = ["call", address, "Metadata", '{"topics": null}', "-V", "4", "--format", "text"]
        ran = CliRunner().invoke(app, asked)
    assert ran.exit_code == 1
    lines = ran.stdout.splitlines()
    assert lines[0] == "MetadataResponse version 4"
    assert "    - errorCode: 3 UNKNOWN_TOPIC_OR_PARTITION" in lines
