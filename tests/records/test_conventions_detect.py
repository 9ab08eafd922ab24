"""`detect` shows its evidence and leaves the choice to the user, and its page is correct."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexwire.records.conventions import CONVENTIONS, Candidate, detect
from tests.house.test_readme import blocks, check

PAGE = Path(__file__).parents[2] / "docs" / "header-conventions.md"
_CLASSES = ("spring_json_header_types", b'{"n":"java.lang.Integer","id":"java.util.UUID"}')
_PARENT = ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")


def candidate(name: str, *headers: tuple[str | bytes, bytes | None]) -> Candidate:
    return next(found for found in detect(headers) if found.convention == name)


def test_every_convention_is_a_candidate_of_no_headers() -> None:
    assert detect([]) == [Candidate(name, [], []) for name in CONVENTIONS]
    assert detect([("h", None)]) == detect(None) == detect([])


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("spring-json", [("n", b"5"), _PARENT, ("a", b"x"), ("b", b"y"), _CLASSES]),
        ("kip-82", [("n", bytes.fromhex("0400000005")), ("s", b"\x08text")]),
        ("kip-82-earlier", [("n", bytes.fromhex("0600000005")), ("yes", b"\x01")]),
        ("connect", [("list", b"[1,2]"), ("late", b"true")]),
        ("utf-8", [_PARENT, ("ce_id", b"1234"), ("time", b"12:30")]),
        ("kip-1308", [("n", bytes.fromhex("00000005")), ("l", bytes.fromhex("00000000000000ff"))]),
    ],
)
def test_headers_of_one_convention_put_it_first(
    name: str, headers: list[tuple[str | bytes, bytes | None]]
) -> None:
    first, second = detect(headers)[:2]
    if name == "connect":
        # Everything that Connect writes is text too, and nothing rules out either reading.
        assert {first.convention, second.convention} == {"connect", "utf-8"}
        assert not first.against
        assert not second.against
    else:
        assert (first.convention, first.against) == (name, [])


def test_evidence_is_told_by_header() -> None:
    headers: list[tuple[str | bytes, bytes | None]] = [
        ("n", b"\x00\x00\x00\x05"),
        ("time", b"12:30"),
    ]
    assert [evidence.key for evidence in candidate("utf-8", *headers).against] == ["n"]
    against = candidate("connect", *headers).against
    assert against[0].key == "time"
    assert against[0].reason == "Connect would read 12 and drops ':30'"
    supports = candidate("kip-1308", *headers).supports
    assert [(one.key, one.weight) for one in supports] == [("n", 1)]
    assert supports[0].reason == "int 5 or float 7.006492321624085e-45"


def test_every_header_counts_for_itself() -> None:
    assert len(candidate("utf-8", ("h", b"a"), ("h", b"a")).supports) == 2


@pytest.mark.parametrize(
    ("key", "value", "weight"),
    [
        ("traceparent", _PARENT[1], 2),
        ("traceparent", b"00-0af7", 1),
        ("other", _PARENT[1], 1),
        ("tracestate", b"a=b", 2),
        ("baggage", b"a=b", 2),
        ("b3", b"0", 2),
        ("ce_id", b"a", 2),
        ("ce_", b"a", 1),
        ("h", "käse\n\t".encode(), 1),
        ("h", b"a\x00b", -1),
        ("h", b"a\x7fb", -1),
        ("h", b"\xff", -1),
    ],
)
def test_evidence_for_text(key: str, value: bytes, weight: int) -> None:
    found = candidate("utf-8", (key, value))
    assert [one.weight for one in found.supports + found.against] == [weight]


def test_what_fits_anything_is_no_evidence() -> None:
    assert candidate("utf-8", ("h", b"")) == Candidate("utf-8", [], [])
    assert candidate("connect", ("h", b"plain")) == Candidate("connect", [], [])
    assert candidate("kip-1308", ("h", b"text"), ("g", b"7")) == Candidate("kip-1308", [], [])
    assert candidate("spring-json", ("h", b"5"), _CLASSES) == Candidate(
        "spring-json", candidate("spring-json", _CLASSES).supports, []
    )


def test_little_against_counts_before_much_for() -> None:
    names = [found.convention for found in detect([*[("ce_id", b"a")] * 3, ("n", b"\0\0\0\5")])]
    assert names.index("kip-1308") < names.index("utf-8")


def test_one_strong_sign_counts_before_many_weak_ones() -> None:
    headers = [*[(name, b"1") for name in "abcdef"], _CLASSES]
    assert [found.convention for found in detect(headers)][:2] == ["spring-json", "connect"]


def test_spring_speaks_up_only_with_its_classes() -> None:
    assert candidate("spring-json", ("n", b"5")).against[0].reason == (
        "there is no spring_json_header_types"
    )
    weights = [one.weight for one in candidate("spring-json", ("n", b"5"), _CLASSES).supports]
    assert weights == [2, 2]
    broken = candidate("spring-json", ("spring_json_header_types", b"{"))
    assert [one.key for one in broken.against] == ["spring_json_header_types"]


@pytest.mark.parametrize("name", CONVENTIONS)
def test_a_key_that_is_not_utf_8_speaks_against_all(name: str) -> None:
    assert [one.key for one in candidate(name, (b"\xff", b"a")).against] == [b"\xff"]


def test_every_block_of_the_page_does_what_it_shows(tmp_path: Path) -> None:
    found = blocks(PAGE.read_text(encoding="utf-8"))
    assert found
    for block in found:
        check(block, tmp_path)


def test_the_page_names_every_convention() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    assert [row.split("`")[1] for row in rows] == list(CONVENTIONS)


def test_a_typed_value_that_may_be_anything_weighs_less() -> None:
    values = [b"\x01", b"\x04\x00a", b"\x0bab"]
    supports = candidate("kip-82-earlier", *(("h", value) for value in values)).supports
    assert [one.weight for one in supports] == [1, 2, 1]
    assert supports[1].reason == "type byte 0x04 followed by a valid char"
