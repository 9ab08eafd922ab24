"""Columns converted to numbers are equivalent to the originals, and so are counts by them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flexwire.measures.audit_rows import offered
from flexwire.measures.groups import coded, numbered

TEXTS = st.sampled_from(["", "a", "b", "ab", "ba", "größe", None])


# Creating the first array imports pandas.
@given(st.lists(TEXTS), st.integers(0, 3), st.integers(0, 3))
@example(["a", "a", "a"], 0, 0)
@example(["a", "aa", ""], 0, 0)
@example(["a", "a", "b"], 1, 0)
@example(["b", "a", "a", "b"], 1, 1)
@example(["", "", ""], 1, 0)
@example([None, None], 0, 0)
@example(["a", None, "a"], 0, 0)
@example(["a", "b"], 0, 0)
@example(["ab", "a", "ba"], 0, 0)
def test_numbers_are_those_of_the_different_texts(
    texts: list[str | None], before: int, after: int
) -> None:
    column = pa.array(texts, pa.string())[before : max(before, len(texts) - after)]
    codes, values = numbered(column)
    assert [values.to_pylist()[code] for code in codes.tolist()] == column.to_pylist()
    assert len(values) == len(set(column.to_pylist()))
    expected = pc.dictionary_encode(column, null_encoding="encode")
    assert codes.tolist() == expected.indices.to_pylist()
    assert list(coded(column).values) == expected.dictionary.to_pylist()


@given(st.lists(st.none() | st.integers(-2, 2)))
def test_numbers_of_what_is_no_text_too(given_numbers: list[int | None]) -> None:
    told = coded(pa.array(given_numbers, pa.int32()))
    assert [told.values[code] for code in told.codes.tolist()] == given_numbers


_OFFER = st.tuples(st.integers(-1, 3), st.integers(0, 5), st.integers(0, 5))
_TOLD = st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1), st.lists(_OFFER))


@pytest.mark.long
@pytest.mark.slow
@given(st.lists(_TOLD))
@example([(0, 0, 0, [(0, 1, 5), (0, 3, 4)]), (0, 1, 0, [(0, 2, 9)]), (1, 0, 0, [(0, 0, 1)])])
def test_a_broker_offers_what_all_its_responses_do(
    responses: list[tuple[int, int, int, list[tuple[int, int, int]]]],
) -> None:
    names = ("api_key", "min_version", "max_version")
    offer = pa.struct([(name, pa.int16()) for name in names])
    body = pa.struct([("error_code", pa.int16()), ("api_keys", pa.list_(offer))])
    rows = [
        {
            "connection": f"10.0.0.9:{port}>10.0.0.{broker}:9092",
            "body": {
                "error_code": error,
                "api_keys": [dict(zip(names, one, strict=True)) for one in offers],
            },
        }
        for broker, port, error, offers in responses
    ]
    schema = pa.schema([("connection", pa.string()), ("body", body)])
    found = list(offered(pa.RecordBatch.from_pylist(rows, schema)))
    expected: dict[tuple[str, int], tuple[int, int]] = {}
    for broker, _, error, offers in responses:
        for api_key, low, high in offers if not error else ():
            key = f"10.0.0.{broker}:9092", api_key
            lowest, highest = expected.get(key, (low, high))
            expected[key] = max(lowest, low), min(highest, high)
    assert sorted(found) == sorted((*key, *told) for key, told in expected.items())
