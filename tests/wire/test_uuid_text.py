"""A uuid is read back from the string that Kafka prints, padded or not; others are refused."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.wire.varint import parse_uuid_text, uuid_text


@given(st.uuids())
def test_what_is_written_is_read(value: uuid.UUID) -> None:
    text = uuid_text(value)
    assert len(text) == 22
    assert set(text) & set("+/=") == set()
    assert parse_uuid_text(text) == parse_uuid_text(f"{text}==") == value


def test_bits_that_a_uuid_does_not_have_are_dropped() -> None:
    assert parse_uuid_text("A" * 21 + "P") == uuid.UUID(int=0)


@pytest.mark.parametrize(
    "text", ["", "AAAA", "A" * 21, "A" * 23, "ä" * 22, "?" * 22, "A" * 22 + "????"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_uuid_text(text)
