"""The rows of `flexwire records dump` as human-readable lines.

The fields of batches are shown in columns. Rare fields follow the columns, or appear on a second
line on a narrow terminal.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from flexwire.printable import printable
from flexwire.protocol.credentials import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.cli.records_dump_rows import Row

# Position, size, offsets, count, leader epoch and max timestamp need 75 characters, and fit into 80
# columns.
_BATCH = "{:>9}  {:>8}  {:<13}  {:>6}  {:>5}  {:<24}"
_BATCH_HEAD = _BATCH.format("position", "size", "offsets", "count", "epoch", "max timestamp")
_RECORD_INDENT = " " * 4
_DETAIL_INDENT = " " * 13
_ENTRY_INDENT = " " * 2
# Text that could be confused with something else is quoted.
_LOOKS_OTHERWISE = ("0x", '"', " ")
_COUNTED = {"file": "file", "batch": "batch", "record": "record", "finding": "finding"}


class DumpText:
    """Write rows as lines, and count them by kind.

    The object keeps the state on which the form of the next row depends. ``width`` is the width of
    the terminal. Without a terminal, ``width`` is None, and no line is wrapped or cut.
    """

    def __init__(self, *, width: int | None, colour: bool) -> None:
        self._width = width
        self._colour = colour
        self._file = ""
        self._has_head = False
        self._counts: Counter[str] = Counter()
        self._withheld = 0
        self._forms = {
            "file": self._file_lines,
            "batch": self._batch_lines,
            "record": self._record_lines,
            "gap": self._gap_lines,
            "finding": self._finding_lines,
            "offset-index-entry": self._offset_entry_lines,
            "time-index-entry": self._time_entry_lines,
        }

    def lines(self, row: Row) -> Iterator[str]:
        """Yield the lines of one row."""
        kind = row["type"]
        self._counts[kind] += 1
        yield from self._forms.get(kind, self._field_lines)(row)

    def summary(self) -> str:
        """Return the last line, which lists the number of rows of each kind."""
        counts = [
            f"{self._counts[kind]} {_plural(name, self._counts[kind])}"
            for kind, name in _COUNTED.items()
            if self._counts[kind] or kind == "finding"
        ]
        if self._withheld:
            withheld = f"{self._withheld} {_plural('credential', self._withheld)} withheld"
            counts.append(f"{withheld} (--show-credentials)")
        color = "red" if self._counts["finding"] else "green"
        return "\n" + self._style(", ".join(counts), fg=color)

    # The methods below write the lines for each kind of row.

    def _file_lines(self, row: Row) -> Iterator[str]:
        if self._file:
            yield ""
        self._file, self._has_head = row["file"], False
        names = {"baseOffset": "base offset", "endOffset": "end offset", "epoch": "epoch"}
        parts = [
            f"{row['size']} bytes",
            *(f"{names[key]} {row[key]}" for key in names if key in row),
        ]
        yield f"{self._style(printable(row['file']), bold=True)}  {self._dim('  '.join(parts))}"

    def _batch_lines(self, row: Row) -> Iterator[str]:
        if not self._has_head:
            self._has_head = True
            yield self._dim(_BATCH_HEAD.rstrip())
        is_wrapper = row["count"] < 0
        last = row["lastOffset"]
        columns = _BATCH.format(
            row["position"],
            row["size"],
            f"…{last}" if is_wrapper else _range(row["baseOffset"], last),
            "?" if is_wrapper else row["count"],
            "-" if row["partitionLeaderEpoch"] < 0 else row["partitionLeaderEpoch"],
            time_text(row["maxTimestamp"]),
        )
        more = ", ".join(_rest_of_batch(row))
        batch = self._style(columns.rstrip(), fg="cyan")
        if not more:
            yield batch
        elif self._width is None or len(columns) + 2 + len(more) <= self._width:
            gap = " " * (len(columns) - len(columns.rstrip()) + 2)
            yield batch + gap + self._dim(more)
        else:
            yield batch
            yield _DETAIL_INDENT + self._dim(more)

    def _record_lines(self, row: Row) -> Iterator[str]:
        start = _RECORD_INDENT
        if "offset" in row:
            start += f"{row['offset']:>7}  {time_text(row['timestamp']):<24}  "
        line, length = start, len(start)
        for name in ("control", "key", "value"):
            if name not in row:
                continue
            text = _content(row[name])
            if self._width is None or length + len(name) + 1 + len(text) <= self._width:
                line += f"{self._dim(name)} {text}  "
                length += len(name) + len(text) + 3
                continue
            if line.strip():
                yield line.rstrip()
            is_message = isinstance(row[name], dict) and "message" in row[name]
            line = self._detail(name, text, None if is_message else row.get(f"{name}Size"))
            # The text after this point also begins a line.
            length = self._width
        self._withheld += row.get("withheldCredentials", 0)
        yield line.rstrip()
        for header in row.get("headers", ()):
            is_typed = "type" in header
            kind = f" ({header['type']})" if is_typed else ""
            value = _json(header["value"]) if is_typed else _content(header["value"])
            yield self._detail(f"header {_content(header['key'])}{kind}", value, None)

    def _detail(self, name: str, text: str, size: int | None) -> str:
        """Return a line.

        On a terminal, a long line is cut if ``size``, the text's full size, is known.
        """
        if self._width is not None and size is not None:
            room = self._width - len(_DETAIL_INDENT) - len(name) - 1
            tail = f"… {size} bytes"
            if len(text) > room:
                text = text[: max(0, room - len(tail))] + self._dim(tail)
        return f"{_DETAIL_INDENT}{self._dim(name)} {text}"

    def _gap_lines(self, row: Row) -> Iterator[str]:
        absent = _range(row["after"] + 1, row["before"] - 1)
        yield _RECORD_INDENT + self._dim(f"{absent:>7}  absent")

    def _finding_lines(self, row: Row) -> Iterator[str]:
        where = "" if row["file"] == self._file else f"{printable(row['file'])}, "
        if row["file"].endswith("-checkpoint"):
            at = f"line {row['position']}"
        else:
            at = f"{row['size']} bytes at {row['position']}"
        line = f"! {where}{at}: {printable(row['reason'])}"
        yield self._style(line, fg="red")

    def _offset_entry_lines(self, row: Row) -> Iterator[str]:
        yield from self._columns("{:>19}  {:>10}", offset=row["offset"], position=row["position"])

    def _time_entry_lines(self, row: Row) -> Iterator[str]:
        when = time_text(row["timestamp"])
        yield from self._columns("{:<24}  {:>19}", timestamp=when, offset=row["offset"])

    def _field_lines(self, row: Row) -> Iterator[str]:
        fields = (
            f"{self._dim(name)} {_number(name, value)}"
            for name, value in row.items()
            if name not in {"type", "file"}
        )
        yield _ENTRY_INDENT + "  ".join(fields)

    def _columns(self, form: str, **columns: Any) -> Iterator[str]:
        if not self._has_head:
            self._has_head = True
            yield self._dim(_ENTRY_INDENT + form.format(*columns))
        yield _ENTRY_INDENT + form.format(*columns.values())

    def _style(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if self._colour else text

    def _dim(self, text: str) -> str:
        return self._style(text, dim=True)


def _rest_of_batch(row: Row) -> Iterator[str]:
    if row["magic"] < 2:  # noqa: PLR2004 - 2 is the magic of record batches
        yield f"magic {row['magic']}"
    if row["compression"] != "none":
        yield row["compression"]
    if row["producerId"] >= 0:
        yield f"producer {row['producerId']} epoch {row['producerEpoch']}"
    if row["baseSequence"] >= 0:
        yield f"sequence {_range(row['baseSequence'], row['lastSequence'])}"
    if row["isTransactional"]:
        yield "transactional"
    if row["isControl"]:
        yield "control"
    if row["timestampType"] == "LogAppendTime":
        yield "LogAppendTime"
    if row["deleteHorizonMs"] is not None:
        yield f"delete horizon {time_text(row['deleteHorizonMs'])}"
    if not row["isValid"]:
        yield "damaged"


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _plural(name: str, count: int) -> str:
    if count == 1:
        return name
    return f"{name}es" if name.endswith("ch") else f"{name}s"


def time_text(milliseconds: int) -> str:
    """Return a time as ISO 8601 in UTC, "-" if it is missing, or a number if it is not a date.

    >>> time_text(1700000000000), time_text(-1), time_text(2**62)
    ('2023-11-14T22:13:20.000Z', '-', '4611686018427387904')
    """
    if milliseconds == -1:
        return "-"
    try:
        moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return str(milliseconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


def _number(name: str, value: Any) -> str:
    return time_text(value) if name == "timestamp" else _content(value)


def _content(value: Any) -> str:
    """Return a key or value as text, quoted if it could be confused with something else."""
    if isinstance(value, dict):
        return printable(_structure(value))
    if not isinstance(value, str) or not value.isprintable():
        return _json(value)
    is_plain = value not in {"", "null"} and not value.endswith(" ")
    return value if is_plain and not value.startswith(_LOOKS_OTHERWISE) else _json(value)


def _structure(value: dict[str, Any]) -> str:
    """Return the text form of bytes that are not text, a message or a control record."""
    if "message" in value:
        name = value.get("name") or f"{value['message']} v{value['version']}"
        layout = f"as in {value['release']}" if "release" in value else None
        return " ".join(filter(None, (name, layout, value.get("state"), _json(value["data"]))))
    if "type" in value:
        return f"type {value['type']}"
    data = WITHHELD if WITHHELD in value else "null"
    if "base64" in value:
        data = f"0x{base64.b64decode(value['base64']).hex()}"
    elif "hex" in value:
        data = f"0x{value['hex']}"
    return f"{data} ({value['reason']})" if "reason" in value else data


def _json(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False))
