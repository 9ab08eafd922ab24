"""What the facts say of log segments, where an analysis was given some."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The figures of all logs that were read; the answers say the rest.

    ``damaged`` counts the runs of bytes that are not a batch or do not read; ``beyond_bounds`` how
    many of these hold batches that inflate beyond a bound. ``directories`` may be
    the first of ``directory_count``. ``left_out`` are directories of partitions that another
    directory was read for, where the log ends later; they may be the first of ``left_out_count``.
    Times are those of records, None where none has one.

    Where tables grow, a log is read from the offset after the last one that is in them, up to its
    last whole batch. ``known_partitions`` have nothing from there on, ``waiting_bytes`` come after
    the last whole batches, and ``gone_partitions`` begin after that offset, as what was between has
    been deleted. ``behind`` are those that end before it, as an older copy does, or a topic that
    was deleted and made again; they may be the first of ``behind_count``.
    """

    topics: int
    partitions: int
    segments: int
    bytes: int
    batches: int
    records: int
    damaged: int = 0
    damaged_bytes: int = 0
    oldest_time_us: int | None = None
    newest_time_us: int | None = None
    directories: tuple[str, ...] = ()
    directory_count: int = 0
    left_out: tuple[str, ...] = ()
    left_out_count: int = 0
    known_partitions: int = 0
    waiting_bytes: int = 0
    gone_partitions: int = 0
    behind: tuple[str, ...] = ()
    behind_count: int = 0
    beyond_bounds: int = 0
