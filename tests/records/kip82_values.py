"""Typed values, headers and messages of KIP-82: some examples, and Hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from flexwire.records import Compression, TimestampType
from flexwire.records.headers import Headers
from flexwire.records.kip82 import Kip82Message
from flexwire.records.typed import Typed, TypedDialect

COMPRESSIONS = [one for one in Compression if one is not Compression.ZSTD]

typed_values = st.one_of(
    st.builds(Typed, st.just("boolean"), st.booleans()),
    st.builds(Typed, st.just("byte"), st.integers(-(2**7), 2**7 - 1)),
    st.builds(Typed, st.just("char"), st.integers(0, 0xFFFF).map(chr)),
    st.builds(Typed, st.just("short"), st.integers(-(2**15), 2**15 - 1)),
    st.builds(Typed, st.just("int"), st.integers(-(2**31), 2**31 - 1)),
    st.builds(Typed, st.just("long"), st.integers(-(2**63), 2**63 - 1)),
    st.builds(Typed, st.just("float"), st.floats(width=32)),
    st.builds(Typed, st.just("double"), st.floats()),
    st.builds(Typed, st.just("string"), st.text()),
    st.builds(Typed, st.just("byte[]"), st.binary()),
)
items = st.lists(st.tuples(st.text(max_size=5), typed_values), max_size=6)


def made(pairs: list[tuple[str, Typed]], dialect: TypedDialect = TypedDialect.DOCUMENT) -> Headers:
    headers = Headers(dialect=dialect)
    for key, value in pairs:
        headers.put(key, value)
    return headers


def user(number: int) -> Headers:
    """Draw headers, one of which has a value of type long."""
    return made([("user", Typed("long", number))])


@st.composite
def messages(draw: st.DrawFn) -> list[Kip82Message]:
    """Draw messages that fit in one wrapper."""
    type_ = draw(st.sampled_from([TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME]))
    timestamps = st.integers(-1, 2**63 - 1)
    one_for_all = type_ is TimestampType.LOG_APPEND_TIME
    when = st.just(draw(timestamps)) if one_for_all else timestamps
    data = st.none() | st.binary(max_size=20)
    offsets = draw(st.lists(st.integers(0, 2**62), min_size=1, max_size=5, unique=True))
    return [
        Kip82Message(offset, draw(when), draw(data), draw(data), made(draw(items)), type_)
        for offset in sorted(offsets)
    ]
