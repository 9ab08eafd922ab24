"""Every answer is bounded and valid JSON, and states what was left out."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.cli.mcp.bounds import LONGEST_TEXT, MOST_CHARACTERS, MOST_PLACES, Page, to_text
from flexwire.facts.units import shorten
from tests.cli.test_terminal import OBEYED
from tests.searching import times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=20)
_FORMS = st.recursive(
    _PLAIN,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=30,
)


def _result(form: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(to_text(form))
    return answer


@pytest.mark.long
@pytest.mark.slow
@settings(max_examples=times(50))
@given(st.dictionaries(st.text(max_size=5), _FORMS))
def test_a_small_form_is_whole(form: dict[str, Any]) -> None:
    assert _result(form) == {"result": json.loads(json.dumps(form)), "leftOut": []}


_GROWTHS: list[Callable[[Any], Any]] = [
    lambda form: {"a": form, "b": 1},
    lambda form: [form] * 40,
    lambda form: {"c": "\u202e" * 3_000, "d": [form, form], "e": Page([form] * 9)},
]


@pytest.mark.long
@pytest.mark.slow
@settings(max_examples=times(60))
@given(_FORMS, st.lists(st.sampled_from(_GROWTHS), max_size=3))
def test_every_form_is_bounded_and_counts_what_it_lacks(
    small: Any, growths: list[Callable[[Any], Any]]
) -> None:
    form = {"form": small}
    for grow in growths:
        form = {"form": grow(form)}
    text = to_text(form)
    assert len(text) < 2 * MOST_CHARACTERS
    assert not {*text} & {*OBEYED}
    answer = json.loads(text)
    lacking = Counter(_lacking(_plain(form), answer["result"], ""))
    told = Counter((one["place"], one["count"]) for one in answer["leftOut"])
    assert told <= lacking
    assert told.total() + answer.get("placesNotNamed", 0) == lacking.total()


def _plain(form: Any) -> Any:
    return json.loads(json.dumps(form, default=lambda page: page.rows))


def _lacking(whole: Any, kept: Any, place: str) -> Iterator[tuple[str, int]]:
    """Yield each place where elements were left out, with the number of these elements."""
    if isinstance(whole, dict):
        assert kept.keys() <= whole.keys()
        inner = [(whole[name], kept[name], f"{place}.{name}" if place else name) for name in kept]
    elif isinstance(whole, list):
        pairs = zip(whole, kept, strict=False)
        inner = [(*pair, f"{place}[{number}]") for number, pair in enumerate(pairs)]
    else:
        assert whole == kept or whole.startswith(kept.rpartition("… (+")[0])
        return
    if len(whole) > len(kept):
        yield shorten(place), len(whole) - len(kept)
    for of_whole, of_kept, inner_place in inner:
        yield from _lacking(of_whole, of_kept, inner_place)


@pytest.mark.parametrize("char", ["a", '"', "\n", "\u202e", "\U000e0041"])
def test_a_long_text_is_cut_and_says_by_how_much(char: str) -> None:
    answer = _result({"name": char * 10_000})
    kept, _, more = answer["result"]["name"].rpartition("… (+")
    assert {*kept} == {char}
    assert len(kept) + int(more.removesuffix(" characters)").replace(",", "")) == 10_000
    assert LONGEST_TEXT // 15 < len(kept) <= LONGEST_TEXT


def test_plain_values_are_kept_before_long_lists() -> None:
    rows = ["x" * 100] * 10_000
    answer = _result({"rows": Page(rows, more=5), "error": "why", "inner": {"rest": 1}})
    assert answer["result"]["error"] == "why"
    kept = len(answer["result"]["rows"])
    assert 300 < kept < 600
    assert answer["leftOut"] == [
        {"place": "rows", "count": 10_005 - kept},
        {"place": "", "count": 1},
    ]


def test_a_form_of_very_many_fields_is_bounded_too() -> None:
    text = to_text({"fields": {str(number): number for number in range(100_000)}})
    assert len(text) < 2 * MOST_CHARACTERS
    [lacking] = json.loads(text)["leftOut"]
    assert lacking["count"] == 100_000 - len(json.loads(text)["result"]["fields"])


def test_of_many_places_some_are_named_and_the_others_counted() -> None:
    form = {"rows": Page([{"inner": Page([], more=1)}] * 50)}
    answer = _result(form)
    assert len(answer["leftOut"]) == MOST_PLACES
    assert answer["placesNotNamed"] == 50 - MOST_PLACES


@pytest.mark.parametrize(("skip", "most"), [(0, 1), (0, 3), (2, 2), (9, 5), (10, 1), (99, 4)])
def test_a_page_counts_what_comes_after_it(skip: int, most: int) -> None:
    page = Page.of([*range(10)], skip, most)
    assert page.rows == [*range(10)][skip:][:most]
    assert page.more == max(10 - skip - len(page.rows), 0)
