"""Draw valid batches in which each field may have any of its encoded sizes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from flexwire.records import Compression, Record, TimestampType

INT64_MAX = 2**63 - 1
nullable = st.none() | st.binary(max_size=70) | st.sampled_from([b"", b"x" * 8192])
# Keys that repeat, in one record and in consecutive records.
keys = st.binary(max_size=70) | st.sampled_from([b"", b"trace", b"\xff\xfe"])
headers = st.lists(st.tuples(keys, nullable), max_size=4)


def signed(bits: int) -> st.SearchStrategy[int]:
    """Draw any integer with this many bits, often a small one."""
    return st.integers(-70, 70) | st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


@st.composite
def record_batches(draw: st.DrawFn) -> tuple[list[Record], dict[str, Any]]:
    """Draw records, and the arguments of `encode_batch`, for a batch with magic 2."""
    base_offset = draw(st.integers(0, 10) | st.integers(0, INT64_MAX))
    last_delta = draw(st.integers(0, min(2**31 - 1, INT64_MAX - base_offset)))
    base_timestamp = draw(signed(64))
    least = max(-(2**63), base_timestamp - 2**63)
    timestamps = st.integers(max(least, -(2**63)), min(INT64_MAX, base_timestamp + INT64_MAX))
    offsets = st.integers(base_offset, base_offset + last_delta)
    record = st.builds(Record, offsets, timestamps, nullable, nullable, headers)
    fields = {
        "compression": draw(st.sampled_from(Compression)),
        "base_offset": base_offset,
        "last_offset": base_offset + last_delta,
        "base_timestamp": base_timestamp,
        "max_timestamp": draw(signed(64)),
        "partition_leader_epoch": draw(signed(32)),
        "producer_id": draw(signed(64)),
        "producer_epoch": draw(signed(16)),
        "base_sequence": draw(signed(32)),
        "is_transactional": draw(st.booleans()),
        "is_control": draw(st.booleans()),
        "has_delete_horizon": draw(st.booleans()),
    }
    return draw(st.lists(record, max_size=5)), fields


@st.composite
def message_sets(draw: st.DrawFn) -> tuple[list[Record], dict[str, Any]]:
    """Draw records, and the arguments of `encode_batch`, for a message set with magic 0 or 1."""
    magic = draw(st.integers(0, 1))
    timestamps = signed(64) if magic else st.just(-1)
    offsets = st.integers(0, 10) | st.integers(0, INT64_MAX)
    record = st.builds(Record, offsets, timestamps, nullable, nullable, st.just([]))
    compression = draw(st.sampled_from(list(Compression)[:4]))
    is_wrapper = compression is not Compression.NONE
    fields: dict[str, Any] = {"magic": magic, "compression": compression}
    if is_wrapper and magic:
        fields["max_timestamp"] = draw(signed(64))
    if magic:
        fields["timestamp_type"] = draw(st.sampled_from(list(TimestampType)[1:]))
    return draw(st.lists(record, min_size=int(is_wrapper), max_size=5)), fields
