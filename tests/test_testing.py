"""The strategies of `flexwire.testing` draw valid messages, and failing examples shrink."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import find, given

from flexwire.errors import UnknownMessageError
from flexwire.testing import MessageExample, messages


@pytest.mark.long
@pytest.mark.slow
@given(messages("FetchRequest"))
def test_any_version_is_written_and_read_back(example: MessageExample) -> None:
    again = type(example.message).decode(example.data, example.version)
    assert again == example.message


@pytest.mark.slow
@given(messages("ProduceRequest", 12))
def test_records_survive_the_json_form(example: MessageExample) -> None:
    kind, version = type(example.message), example.version
    assert version == 12
    assert kind.from_json(example.message.to_json(version), version).encode(version) == example.data


@pytest.mark.slow
@given(messages("MetadataResponse", 12, unknown_tags=False))
def test_without_unknown_tags_there_are_none(example: MessageExample) -> None:
    assert not example.message.unknown_tagged_fields


@pytest.mark.long
@pytest.mark.slow
def test_what_fails_shrinks_to_what_matters() -> None:
    smallest: Any = find(
        messages("FetchRequest", 13), lambda example: cast("Any", example.message).max_bytes > 5
    ).message
    assert (smallest.max_bytes, smallest.topics, smallest.unknown_tagged_fields) == (6, [], {})


def test_a_name_or_version_that_no_release_has_is_refused() -> None:
    with pytest.raises(UnknownMessageError):
        messages("FetchReqest")
    with pytest.raises(UnknownMessageError):
        find(messages("FetchRequest", 99), lambda _: True)
