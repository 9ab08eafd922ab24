from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import SpecError
from flexwire.schema.text import (
    MAX_DEPTH,
    JsonArray,
    JsonObject,
    JsonScalar,
    Node,
    ScalarKind,
    SpecText,
)


def read(text: str, *, whole: bool = True) -> Node:
    return SpecText(text, "Foo.json").read(whole=whole)


def plain(node: Node) -> object:
    """Return the value as the standard library reads it, with numbers as they are written."""
    if isinstance(node, JsonObject):
        return {key: plain(member.value) for key, member in node.members.items()}
    if isinstance(node, JsonArray):
        return [plain(item) for item in node.items]
    if node.kind is ScalarKind.NULL:
        return None
    return node.text == "true" if node.kind is ScalarKind.BOOLEAN else node.text


def scalars(node: Node) -> list[JsonScalar]:
    if isinstance(node, JsonScalar):
        return [node]
    inner = (
        node.items if isinstance(node, JsonArray) else [one.value for one in node.members.values()]
    )
    return [scalar for one in inner for scalar in scalars(one)]


VALUES = st.recursive(
    st.none() | st.booleans() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.long
@given(VALUES, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_plain_json_reads_as_the_standard_library_reads_it(
    value: object,
    indent: int | str | None,
    ascii_only: bool,  # noqa: FBT001 - drawn, not chosen
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert plain(read(text)) == value


@pytest.mark.parametrize("number", ["0", "-0", "5", "-12", "0.9", "1e3", "1.50E-2", "9" * 400])
def test_a_number_keeps_its_spelling(number: str) -> None:
    node = read(f"[{number}]")
    assert scalars(node) == [JsonScalar(ScalarKind.NUMBER, number, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "// first\n[1]",
        "/* a\n * b **/ [/**/1/***/] // last",
        "[ // one\r 1 // two\r\n ]",
        "\ufeff[1]",
        "[1]//",
    ],
)
def test_comments_and_a_byte_order_mark_are_passed_over(text: str) -> None:
    assert plain(read(text)) == ["1"]


def test_of_a_key_given_twice_the_last_counts() -> None:
    assert plain(read('{"a": "x", "b": "y", "a": "z"}')) == {"a": "z", "b": "y"}


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_end_in_any_of_three_ways(end: str) -> None:
    text = SpecText(end.join(['{"ä":', ' "x"', "}"]), "Foo.json")
    node = text.read(whole=True)
    assert isinstance(node, JsonObject)
    member = node.members["ä"]
    at = text.position(member.offset)
    assert (at.line, at.column) == (1, 2)
    at = text.position(member.value.offset)
    assert (at.line, at.column) == (2, 2)


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "1:1", "expected a value, got the end of the text"),
        ("\n  ", "2:3", "expected a value, got the end of the text"),
        ('{"a": 1,}', "1:9", "remove the comma before it"),
        ("[1,\n]", "2:1", "remove the comma before it"),
        ("{'a': 1}", "1:2", "double quotes"),
        ("{a: 1}", "1:2", "unexpected character 'a'"),
        ("# note\n{}", "1:1", "a comment must begin with '//'"),
        ("{} /* open", "1:4", "close it with '*/'"),
        ("[1 / 2]", "1:4", "a comment must begin with '//'"),
        ('{"a" 1}', "1:6", "expected ':' after 'a', got '1'"),
        ('{"a": 1 "b": 2}', "1:9", "expected ',' or '}', got 'b'"),
        ("[1, 2", "1:6", "in the array that begins at 1:1"),
        ('{"a": "b', "1:7", "is not closed on its line"),
        ('{"a": "b\n"}', "1:7", "is not closed on its line"),
        ('["a\tb"]', "1:4", "write '\\u0009'"),
        (r'["a\x"]', "1:4", "unknown escape"),
        (r'["\u12g4"]', "1:3", "unknown escape"),
        ("[01]", "1:3", "expected ',' or ']', got '1'"),
        ("[+1]", "1:2", "unexpected character '+'"),
        ("[1.]", "1:3", "unexpected character '.'"),
        ("[NaN]", "1:2", "unexpected character 'N'"),
        ("[truely]", "1:2", "unexpected character 't'"),
        ("[1]]", "1:4", "after the end of the spec"),
        ("[\x001]", "1:2", "unexpected character '\\x00'"),
        ("[" * (MAX_DEPTH + 1), f"1:{MAX_DEPTH + 1}", "deep"),
    ],
)
def test_an_error_says_where_and_what(text: str, place: str, reason: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(text)
    assert str(caught.value).startswith(f"Foo.json:{place}: ")
    assert reason in str(caught.value)


def test_what_follows_is_passed_over_only_where_it_is_allowed() -> None:
    assert plain(read("[1] ]} nonsense", whole=False)) == ["1"]


def place_of_refusal(text: str) -> tuple[int, int] | None:
    try:
        read(text)
    except SpecError as error:
        return error.line, error.column
    return None


@given(st.text(alphabet='{}[]:,"\\/*# \n0-e.truefalsn\x00ä'))
def test_any_text_is_read_or_refused(text: str) -> None:
    place = place_of_refusal(text)
    if place is not None:
        lines = text.split("\n")
        assert 1 <= place[0] <= len(lines)
        assert 1 <= place[1] <= len(lines[place[0] - 1]) + 1


@pytest.mark.parametrize(
    "text", ["/*" + "*" * 200_000, '"' + "a" * 200_000, '"' + "\\n" * 100_000, " " * 200_000]
)
def test_a_long_text_that_goes_nowhere_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        read(text)
