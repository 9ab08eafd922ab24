"""A version has no differences from itself; applying differences turns the old one into the new."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.specs.guide.rows import ASPECTS, FieldRow, RowStep, steps
from flexwire.specs.guide.site import describe_steps, make_pages
from tests.each import each
from tests.guide.built import Tables, messages, page_of, site, tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.specs.guide.messages import MessageVersion

BITS = {"type": 1, "wire": 2, "default": 4, "properties": 8}
MESSAGES = each("name", lambda: sorted(messages()))


def follow(
    old: Sequence[FieldRow], new: Sequence[FieldRow], way: Sequence[RowStep]
) -> Iterator[FieldRow]:
    """Yield the old rows after the steps are applied."""
    at = 0
    for step in way:
        if step.old is not None:
            assert step.old == at, "every old row is in one step, in order"
            at += 1
        if step.old is None and step.new is not None:
            yield new[step.new]
        elif step.old is not None and step.new is not None:
            said = {aspect: getattr(new[step.new], aspect) for aspect in step.aspects}
            yield replace(old[step.old], **said)
    assert at == len(old)


def plain(rows: Sequence[FieldRow]) -> list[FieldRow]:
    return [replace(row, versions="", about="") for row in rows]


def pairs(versions: Sequence[MessageVersion]) -> Iterator[tuple[MessageVersion, MessageVersion]]:
    for old in versions:
        for new in versions:
            yield old, new


@pytest.mark.long
@pytest.mark.slow
@MESSAGES
def test_steps_from_a_version_to_another_lead_there(name: str) -> None:
    for old, new in pairs(messages()[name].versions):
        way = steps(old.rows, new.rows)
        assert plain(list(follow(old.rows, new.rows, way))) == plain(new.rows)
        if old is new:
            assert {step.kind for step in way} <= {"same"}


def test_every_other_layout_leads_to_the_one_of_the_page() -> None:
    for name in messages():
        for version in messages()[name].versions:
            for layout in version.support.otherwise:
                found = list(follow(layout.rows, version.rows, layout.steps))
                assert plain(found) == plain(version.rows)
                # The text shown is never empty.
                shown = list(describe_steps(layout.rows, version.rows, layout.steps))
                assert shown or layout.flexible != version.flexible


def row(path: str, wire: str = "INT8") -> FieldRow:
    return FieldRow(path, path, 0, "int8", wire, "0", ())


ROWS = st.lists(
    st.builds(row, st.sampled_from("ABCDEFGH"), st.sampled_from(["INT8", "INT16"])),
    unique_by=lambda one: one.path,
)


@given(old=ROWS, new=ROWS)
def test_steps_lead_anywhere_with_as_few_moves_as_can_be(
    old: list[FieldRow], new: list[FieldRow]
) -> None:
    way = steps(old, new)
    assert list(follow(old, new, way)) == new
    assert [step.new for step in way if step.new is not None] == list(range(len(new)))
    kept = sum(step.kind in {"same", "changed"} for step in way)
    assert kept == longest_common([one.path for one in old], [one.path for one in new])


def longest_common(one: list[str], other: list[str]) -> int:
    lengths = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for at, first in enumerate(one):
        for place, second in enumerate(other):
            longer = max(lengths[at][place + 1], lengths[at + 1][place])
            lengths[at + 1][place + 1] = lengths[at][place] + 1 if first == second else longer
    return lengths[-1][-1]


def test_what_a_step_is_called() -> None:
    old = [row("A"), row("B"), row("C"), row("D")]
    new = [row("A"), row("X"), row("C", "INT16"), row("B"), row("D")]
    way = steps(old, new)
    assert [(step.kind, step.old, step.new, step.aspects) for step in way] == [
        ("same", 0, 0, ()),
        ("removed", 1, None, ()),
        ("added", None, 1, ()),
        ("changed", 2, 2, ("wire",)),
        ("added", None, 3, ()),
        ("same", 3, 4, ()),
    ]
    told = list(describe_steps(old, new, way))
    assert [(one.kind, one.row.path, one.values) for one in told] == [
        ("removed", "B", ()),
        ("added", "X", ()),
        ("changed", "C", (("wire", "INT8", "INT16"),)),
        ("added", "B", ()),
    ]


def test_every_aspect_of_a_row_can_change() -> None:
    old = row("A")
    new = replace(old, type="int16", wire="INT16", default="1", properties=("tag 0",))
    assert steps([old], [new])[0].aspects == ASPECTS
    assert set(BITS) == set(ASPECTS)
    told = next(describe_steps([old], [new], steps([old], [new])))
    assert told.values[-1] == ("properties", "none", "tag 0")
    # The versions and the description of a field belong to the spec, not to a version.
    assert steps([old], [replace(old, versions="1+", about="x")])[0].kind == "same"


def data_of(path: str) -> list[dict[str, Any]]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', site()[path])
    found: list[dict[str, Any]] = json.loads(text)
    return found


@pytest.mark.long
@pytest.mark.slow
@each("page", lambda: {page.path: page for page in make_pages(messages().values())})
def test_what_the_script_shows_are_these_steps(page: Any) -> None:
    """For any two versions, the page's data contains the same changes as `steps`."""
    told = data_of(page.path)
    assert [one["name"] for one in told] == [one.name for one in page.messages]
    for side, message in zip(told, page.messages, strict=True):
        assert side["versions"] == list(message.numbers)
        for at_new, new in enumerate(message.versions):
            shown = [place for place in tables(page.path) if place.startswith(mark(message, new))]
            assert shown == [f"{mark(message, new)}{one.path}" for one in new.rows]
            for at_old, old in enumerate(message.versions[:at_new]):
                pair = f"{side['layouts'][at_old]}-{side['layouts'][at_new]}"
                expected = [
                    [
                        -1 if step.old is None else step.old,
                        -1 if step.new is None else step.new,
                        sum(BITS[one] for one in step.aspects),
                    ]
                    for step in steps(old.rows, new.rows)
                    if step.kind != "same"
                ]
                assert side["steps"].get(pair, []) == expected
                facts = side["facts"].get(f"{side['states'][at_old]}-{side['states'][at_new]}", [])
                changed = {name: (before, after) for name, before, after in facts}
                assert ("Flexible" in changed) == (old.flexible != new.flexible)
                headers = [value for name, value in changed.items() if name != "Flexible"]
                assert headers == (
                    [] if old.header == new.header else [(str(old.header), str(new.header))]
                )


def mark(message: Any, version: MessageVersion) -> str:
    return f"v{version.number}-{message.type.value}-"


@pytest.mark.slow
def test_the_history_tells_every_change_without_a_script() -> None:
    """Each version shows its differences from the version before it."""
    text = site()[page_of("FetchRequest")]
    history = text.split('<section id="history"')[1]
    for number in range(1, 19):
        (told,) = re.findall(rf'id="diff-v{number - 1}-v{number}">(.*?)</div>', history, re.DOTALL)
        for name in ("FetchRequest", "FetchResponse"):
            versions = messages()[name].by_number
            part = told[told.index(name) :]
            way = steps(versions[number - 1].rows, versions[number].rows)
            for one in describe_steps(versions[number - 1].rows, versions[number].rows, way):
                assert f"{one.kind} <code>{one.row.path}</code>" in part, (number, one)
            if all(step.kind == "same" for step in way):
                assert f"{name}: the same fields as v{number - 1}." in told
    assert "The lowest version." in history
    assert "Request header: <del>1</del> → <ins>2</ins>" in history


def test_tables_of_other_pages_have_no_places_in_common() -> None:
    """The table reader finds rows; otherwise the tests above would pass without checking any."""
    assert len(tables(page_of("FetchRequest"))) > 500
    assert Tables("<table><tr><td>x</td></tr></table>").rows == {}
