"""A typed filter selects the same frames as the options, and its text can be typed again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.capture.files.comments import CaptureFilter
from flexwire.cli.tap import to_filter
from flexwire.cli.view.typed_filter import EXAMPLE, parse_filter, typed
from flexwire.errors import ArgumentError
from tests.searching import times

_TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=4).map(tuple)


@pytest.mark.long
@settings(max_examples=times(200))
@given(
    apis=st.lists(st.sampled_from(["Fetch", "Produce"])).map(tuple), clients=_TEXTS, topics=_TEXTS
)
def test_every_filter_can_be_typed(
    apis: tuple[str, ...], clients: tuple[str, ...], topics: tuple[str, ...]
) -> None:
    only = CaptureFilter(apis, clients, topics)
    assert parse_filter(typed(only)) == only


def test_the_example_is_what_the_options_would_be() -> None:
    assert parse_filter(EXAMPLE) == to_filter(
        {
            "only_apis": ("Fetch", "Produce"),
            "only_client_ids": ("billing-*",),
            "only_topics": ("orders",),
        }
    )


@settings(max_examples=times(200))
@given(st.text() | st.lists(st.sampled_from(["api=", "topic=", "'", "\\", " ", "x"])).map("".join))
def test_any_text_is_a_filter_or_an_error_of_ours(text: str) -> None:
    try:
        only = parse_filter(text)
    except ArgumentError:
        return
    assert parse_filter(typed(only)) == only


@pytest.mark.parametrize("text", ["api", "API=Fetch", "apis=Fetch", "api=", "api=9999"])
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        parse_filter(text)
