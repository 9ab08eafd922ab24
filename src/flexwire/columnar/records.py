"""Convert record batches and message sets to Arrow columns."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import is_
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
import pyarrow as pa

from flexwire.arguments import to_buffer, to_choice, to_flag, to_int, to_kind
from flexwire.columnar.batch_table import (
    BATCH,
    COUNT_REFUSED,
    BatchHeaders,
    headers_of,
    new_table,
)
from flexwire.columnar.decoding import column_names, range_of
from flexwire.columnar.program import address, allocate
from flexwire.columnar.record_columns import (
    RECORD_COLUMNS,
    RecordColumnBuilder,
    SizeHints,
    from_batch,
    schema_of,
)
from flexwire.errors import RecordError
from flexwire.kernels import load_kernel
from flexwire.records import MAX_INFLATED, PartialBatch, Record, decode_batches
from flexwire.records.batch import OBJECT_COST, object_budget
from flexwire.records.compression import inflate, inflate_into
from flexwire.records.inflation import records_within
from flexwire.records.record import COMPRESSIONS
from flexwire.records.search import MAX_BATCH_BYTES, BatchSearch
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    ENTRY,
    HEADER_SIZE,
    MAGIC_AT,
    RECORD_BATCH,
)
from flexwire.wire.limits import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flexwire.columnar.arrays import NumpyArray
    from flexwire.columnar.record_sums import RecordCounter
    from flexwire.records import RecordBatch


MOST_ENOUGH = 1 << 24
"""The largest group size, in bytes, that a caller may request."""
# The buffer has this much extra room, so that a last batch of this size fits.
_SPARE = 4 << 20

_FACTS = ("position", "size", "is_skipped")


@dataclass(slots=True)
class _InflatedBatches:
    """The inflated batches and the refused batches in a group.

    The fields are lists, because reading and setting single items of an array is slow.
    """

    compressions: list[int]
    positions: list[int]
    sizes: list[int]
    skipped: list[int]
    bounds: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)

    def put(self, table: NumpyArray, budget: int) -> None:
        """Write the results to the table."""
        table["start"][self.rows] = self.starts
        table["end"][self.rows] = self.ends
        table["budget"][self.rows] = budget
        table["count"][self.refused] = COUNT_REFUSED


class Inflater:
    """Inflates batches of magic 2, each to ``max_inflated`` bytes at most.

    Positions are counted from the start of ``data``. With ``ratio``, no batch is inflated to more
    than this many times its own size. The inflated bytes remain valid until the next group.
    """

    def __init__(self, data: NumpyArray, max_inflated: int, ratio: int | None = None) -> None:
        self._data = data.data
        self._limit = max_inflated
        self._ratio = ratio
        self._budget = object_budget(max_inflated)
        self._room: memoryview = memoryview(b"")
        self._begin = self._used = 0
        # The buffers for batches that did not fit into the group's buffer.
        self._beside: list[NumpyArray] = []

    def inflate_group(self, table: NumpyArray, enough: int) -> int:
        """Inflate the first batches of the table until they contain ``enough`` bytes.

        Returns the row after these batches. For each batch, sets ``start`` and ``end`` to the start
        and end of its records, and sets ``budget``. If a batch cannot be inflated, its ``count``
        marks it as refused.
        """
        last, is_compressed = load_kernel("batches").group(table, enough)
        return self._inflate(table[:last], enough) if is_compressed else last

    def _inflate(self, table: NumpyArray, enough: int) -> int:
        compressions = table["attributes"] & COMPRESSION_MASK
        self._prepare()
        todo = _InflatedBatches(compressions.tolist(), *(table[name].tolist() for name in _FACTS))
        bounds = np.zeros(len(table), np.int64)
        load_kernel("batches").bound_inflated(table, bounds)
        todo.bounds = bounds.tolist()
        row = total = 0
        while row < len(table) and total < enough:
            total += self._ask_codec(todo, row)
            row += 1
        todo.put(table, self._budget)
        if self._ratio is not None:
            _hold(table[:row], compressions[:row], self._ratio)
        return row

    def _prepare(self) -> None:
        self._beside.clear()
        self._used = 0
        if not self._room:
            room = allocate(MOST_ENOUGH + _SPARE)
            self._begin, self._room = address(room), room.data

    def _ask_codec(self, todo: _InflatedBatches, row: int) -> int:
        """Inflate one batch. Return the inflated size, or 0 if the batch is refused."""
        begin, size = todo.positions[row] + HEADER_SIZE, todo.sizes[row] - HEADER_SIZE
        if todo.skipped[row] or not size:
            return 0
        number = todo.compressions[row]
        if not number:
            return size
        compression, data = COMPRESSIONS[number], self._data[begin : begin + size]
        bound = todo.bounds[row]
        limit = self._limit
        if self._ratio is not None:
            limit = min(limit, self._ratio * todo.sizes[row])
        room = self._room[self._used : self._used + limit]
        size = inflate_into(compression, data, room, bound=bound)
        start = self._begin + self._used
        if size >= 0:
            self._used += size
        else:
            try:
                inflated = inflate(compression, bytes(data), magic=RECORD_BATCH, limit=limit)
            except RecordError:
                todo.refused.append(row)
                return 0
            self._beside.append(np.frombuffer(inflated, np.uint8))
            start, size = address(self._beside[-1]), len(inflated)
        todo.rows.append(row)
        todo.starts.append(start)
        todo.ends.append(start + size)
        return size


def _hold(table: NumpyArray, compressions: NumpyArray, ratio: int) -> None:
    """Refuse compressed batches that exceed ``ratio``, and limit the number of their records."""
    rows = np.flatnonzero(compressions)
    most = table["size"][rows] * ratio
    is_beyond = table["end"][rows] - table["start"][rows] > most
    table["count"][rows[is_beyond]] = COUNT_REFUSED
    table["budget"][rows] = np.minimum(table["budget"][rows], most // OBJECT_COST)


Mode = Literal["FAILFAST", "PERMISSIVE"]
_MODES = get_args(Mode)
Range = tuple["int | None", "int | None"]
DEFAULT_COLUMNS = tuple(RECORD_COLUMNS)
_ALL: Range = (None, None)
_CHECKS: tuple[tuple[str, Callable[[Any], Any], Any], ...] = (
    ("columns", column_names, DEFAULT_COLUMNS),
    ("offsets", partial(range_of, name="offsets"), _ALL),
    ("timestamps", partial(range_of, name="timestamps"), _ALL),
    ("max_inflated", partial(to_int, name="max_inflated", least=0), MAX_INFLATED),
)
# The number of bytes of records that are read at once. If these bytes did not fit into a CPU cache,
# reading would have to wait for memory. The first group is smaller, because its columns show how
# much room the other groups need.
_GROUP, _FIRST_GROUP = MOST_ENOUGH, 1 << 18
# The largest number of batches that one search finds.
_TABLE = 1 << 14
_NONE = np.empty(0, BATCH)


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """Which records to read, and which columns to return for them.

    The ranges of offsets and timestamps include both ends. None means that there is no limit. If a
    batch's header shows that the batch is outside a range, neither its records nor its CRC are
    read. A compressed batch may inflate to at most ``max_inflated`` bytes and, with ``max_ratio``,
    to at most that many times its own size.
    """

    columns: tuple[str, ...] = DEFAULT_COLUMNS
    offsets: Range = _ALL
    timestamps: Range = _ALL
    check_crc: bool = True
    max_inflated: int = MAX_INFLATED
    max_ratio: int | None = None

    def __post_init__(self) -> None:
        to_flag(self.check_crc, "check_crc")
        if self.max_ratio is not None:
            to_int(self.max_ratio, "max_ratio", least=1, bits=32)
        for name, check, usual in _CHECKS:
            value = getattr(self, name)
            # The defaults are valid, and checking them would take long compared to reading a small
            # batch.
            if value is not usual:
                # The class is frozen, but its fields must have the declared types.
                object.__setattr__(self, name, check(value))

    @property
    def limits(self) -> tuple[int, int, int, int]:
        """The lowest and the highest offset, and then the lowest and the highest timestamp."""
        if not self.has_ranges:
            return INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX
        low = [INT64_MIN if end is None else end for end in (self.offsets[0], self.timestamps[0])]
        high = [INT64_MAX if end is None else end for end in (self.offsets[1], self.timestamps[1])]
        return low[0], high[0], low[1], high[1]

    @property
    def has_ranges(self) -> bool:
        """Return whether any range has a limit."""
        return not (self.offsets == self.timestamps == _ALL)

    def keeps(self, record: Record) -> bool:
        """Return whether a record is in both ranges."""
        low, high, first, last = self.limits
        return low <= record.offset <= high and first <= record.timestamp <= last


class RecordReader:
    """Yield the records in data, in order, as Arrow record batches, like `decode_records`.

    If the caller releases each batch before requesting the next, all batches together need no more
    memory than the first one.

    Data that ends within a batch is an error, because a damaged length would look the same. With
    ``partial``, such an end is treated as the partial batch of a fetch response that reached its
    size limit, unless a complete batch follows. In ``PERMISSIVE`` mode, reading continues after a
    damaged length at the next complete batch of magic 2 with a correct CRC.

    ``cut`` means that the data is a piece of a longer stream. A batch that does not end in the
    piece is then the piece's partial batch, even if other data follows. Damage is treated the same
    way if no batch was found after it. ``skips`` is called with headers, and returns which batches
    to skip. Some headers may be passed twice. ``hints`` come from an earlier reader with the same
    selection.

    Attributes:
        position: the number of bytes that have been processed.
        errors: the errors of damaged batches, in ``PERMISSIVE`` mode.
        unread: the number of bytes that these errors cover, up to the next batch.
        partial: the partial batch at the end, if ``partial`` was set, or None if there is none.
        hints: the room that the records have taken so far, for another reader of similar data.
    """

    def __init__(
        self,
        data: Any,
        wanted: RecordSelection,
        *,
        mode: Mode = "FAILFAST",
        partial: bool = False,
        cut: bool = False,
        skips: Callable[[BatchHeaders], NumpyArray] | None = None,
        hints: SizeHints | None = None,
    ) -> None:
        self.wanted = to_kind(wanted, "wanted", RecordSelection)
        self.schema = schema_of(wanted.columns)
        self.position = 0
        self.errors: list[RecordError] = []
        self.unread = 0
        self.partial: PartialBatch | None = None
        self._may_be_partial = to_flag(partial, "partial")
        self._is_cut = to_flag(cut, "cut")
        self._skips = skips
        self._mode: Mode = to_choice(mode, "mode", _MODES)
        self._data: NumpyArray = np.frombuffer(to_buffer(data), np.uint8)
        self._batches = load_kernel("batches")
        self._sums: RecordCounter | None = None
        self._ready: deque[pa.RecordBatch] = deque()
        # Batches that have been found but not yet read.
        self._found: NumpyArray = _NONE
        self._inflater = Inflater(self._data, wanted.max_inflated, wanted.max_ratio)
        # The end of the scan, and the place of bytes that the kernels do not read.
        self._scanned = 0
        self._other = -1
        self.hints = SizeHints() if hints is None else hints
        self._group = _FIRST_GROUP if hints is None else _GROUP

    @cached_property
    def _search(self) -> BatchSearch:
        return BatchSearch(_ReaderData(self._data))

    def count_into(self, sums: RecordCounter) -> None:
        """Count records without yielding them, except the records of batches that kernels refuse.

        If there is no room for more sums, the reader yields the sums.
        """
        self._sums = sums
        sums.want(self.wanted.limits, check_crc=self.wanted.check_crc)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while self._ready or self.position < len(self._data):
            if self._ready:
                yield self._ready.popleft()
            else:
                self._advance()

    def _advance(self) -> None:
        """Read the next group of batches, or the next batch that the kernels cannot read."""
        is_scanned = len(self._found) > 0 or self.position == self._other
        if self._batches is not None and not is_scanned:
            self._found = self._scan()
            self._skip(self._found)
        if len(self._found):
            last = self._inflater.inflate_group(self._found, self._group)
            group = self._found
            self._found = group[last:] if last < len(group) else _NONE
            self._read_group(group[:last])
            self._group = _GROUP
        else:
            self._read_one()

    # The code below reads batches of magic 2.

    def _scan(self) -> NumpyArray:
        """Find the next batches. Return no batches if the kernels cannot read the next batch."""
        # No batch is smaller than its own header.
        table = new_table(min(_TABLE, len(self._data) // HEADER_SIZE + 1))
        count, position, is_other = self._batches.scan(self._data, self.position, table)
        self._scanned = position
        if is_other:
            self._other = position
        return table[:count]

    def _skip(self, table: NumpyArray) -> None:
        """Mark the batches that are not wanted."""
        if self.wanted.has_ranges:
            self._batches.skip(table, *self.wanted.limits[:3])
        if self._skips is not None:
            table["is_skipped"] |= self._skips(headers_of(table))

    def _read_group(self, batches: NumpyArray) -> None:
        done = 0
        while done < len(batches):
            rest = batches[done:] if done else batches
            columns = self._sums or room_for(rest, self.wanted, self.hints)
            stopped, is_refused = columns.read(batches, done, self._data)
            if self._sums is not None:
                self._sums.counted(batches[done:stopped], done)
                is_full = stopped < len(batches) and not is_refused
                if is_full or not self._sums.has_room:
                    self._ready.append(self._sums.take())
            elif isinstance(columns, RecordColumnBuilder) and columns.rows:
                self._ready += columns.to_arrow(batches[done:stopped])
            if stopped < len(batches):
                self.position = int(batches[stopped]["position"])
                if is_refused:
                    self._read_one()
                    stopped += 1
            done = stopped
        # The batches are adjacent.
        self.position = int(self._found["position"][0]) if len(self._found) else self._scanned

    # The code below reads batches that the kernels cannot read or have refused.

    def _read_one(self) -> None:
        """Read the batch or message at the position into objects, and convert these to columns."""
        start, end = self.position, len(self._data)
        if end - start < ENTRY.size:
            self._end_within(None)
            return
        size = ENTRY.size + ENTRY.unpack(self._data[start : start + ENTRY.size].tobytes())[1]
        taken = self._data[start : start + max(size, HEADER_SIZE)].tobytes()
        if size <= end - start:
            # One more byte than the batch shows that the length is correct, because reading stops
            # before that byte.
            taken += b"\0"
        batches = decode_batches(
            taken, check_crc=self.wanted.check_crc, max_inflated=self.wanted.max_inflated
        )
        try:
            batch = next(batches, None)
            is_read = batch is not None and not self._is_skipped(batch, start)
            records: Sequence[Record] = ()
            if batch is not None and is_read:
                records = records_within(batch, self.wanted.max_ratio)
            kept_records = [record for record in records if self.wanted.keeps(record)]
        except RecordError as error:
            is_sound = batches.position < len(taken)
            after = start + batches.position if is_sound else None
            self._refuse(RecordError(error.reason, offset=start + error.offset), after)
            return
        if batch is None:
            self._end_within(size)
            return
        batch.position = start
        counted = is_read and self._sums is not None and self._sums.add(batch, kept_records)
        if kept_records and not counted:
            self._ready.append(from_batch(batch, kept_records, self.wanted.columns))
        self.position = start + batches.position

    def _is_skipped(self, batch: RecordBatch, position: int) -> bool:
        if self._skips is None:
            return False
        attributes = batch.attributes if batch.magic == RECORD_BATCH else 0
        offsets = (batch.base_offset, batch.last_offset)
        counted = (batch.producer_id, batch.record_count)
        header = (position, batch.size, *offsets, attributes, *counted)
        headers = BatchHeaders(*(np.array([number], np.int64) for number in header))
        return bool(self._skips(headers)[0])

    def _end_within(self, declared: int | None) -> None:
        """Finish, because the data ends before the batch at the position does."""
        start, end = self.position, len(self._data)
        remaining = end - start
        is_rest = self._is_cut and (declared is None or declared <= MAX_BATCH_BYTES)
        if is_rest or (self._may_be_partial and self._search.next_batch(start + 1) == end):
            self.partial = PartialBatch(start, remaining, declared)
            self.position = end
            return
        reason = f"the batch declares {declared} bytes, but the data ends after {remaining}"
        if declared is None or remaining <= MAGIC_AT:
            reason = f"the data ends after {remaining} bytes of a batch header"
        self._refuse(RecordError(reason, offset=start), None)

    def _refuse(self, error: RecordError, after: int | None) -> None:
        """Raise an error, or record it and continue at ``after`` (None: at the next batch)."""
        if self._mode == "FAILFAST":
            raise error from None
        if after is None:
            after = self._search.next_batch(self.position + 1)
            if self._is_cut and after == len(self._data):
                # The next batch may begin here and end in later bytes.
                self.partial = PartialBatch(self.position, after - self.position, None)
                self.position = after
                return
        self.errors.append(error)
        self.unread += after - self.position
        self.position = after


def room_for(batches: NumpyArray, wanted: RecordSelection, hints: SizeHints) -> RecordColumnBuilder:
    """Return room for the wanted columns of the records in batches. A kernel fills the columns."""
    bounds = load_kernel("batches").bounds(batches)
    return RecordColumnBuilder(
        wanted.columns, wanted.limits, bounds, hints, check_crc=wanted.check_crc
    )


class _ReaderData:
    """The data of a reader, in the form that a search for batches requires."""

    def __init__(self, data: NumpyArray) -> None:
        self._data = data
        self.size = len(data)

    def read(self, position: int, size: int) -> bytes:
        """Return ``size`` bytes, or fewer if the data ends."""
        return self._data[position : position + size].tobytes()


# The most common selection, which is created only once.
_USUAL = (DEFAULT_COLUMNS, _ALL, _ALL, True, MAX_INFLATED)
_EVERYTHING = RecordSelection(*_USUAL)


def decode_records(
    data: Any,
    *,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    offsets: Range = _ALL,
    timestamps: Range = _ALL,
    check_crc: bool = True,
    max_inflated: int = MAX_INFLATED,
    partial: bool = False,
) -> pa.Table:
    """Decode record batches and message sets with any magic value and any compression codec.

    ``data`` is any buffer of bytes. ``columns`` are names in `RECORD_COLUMNS` and `BATCH_COLUMNS`.
    No other columns are copied. The ranges of offsets and timestamps include both ends. None means
    that a range has no limit. If a batch's header shows that the batch is outside a range, the
    whole batch is skipped. The result is a table that has as many chunks as Arrow's int32 offsets
    require.

    Raises `RecordError` for the first damaged batch. Also raises it for data that ends within a
    batch, because a damaged length would look the same. A fetch response that reached its size
    limit can also end this way. With ``partial``, such an end is left out, unless a complete batch
    follows it. Raises `ArgumentError` for an unknown column. Use a `RecordReader` if the data does
    not fit into memory, if reading should continue after damage, or to find out what was left out.
    """
    # The selection checks the names and converts them to a tuple.
    asked = cast("tuple[str, ...]", columns), offsets, timestamps, check_crc, max_inflated
    wanted = _EVERYTHING if all(map(is_, asked, _USUAL)) else RecordSelection(*asked)
    reader = RecordReader(data, wanted, partial=partial)
    return pa.Table.from_batches(reader, reader.schema)
