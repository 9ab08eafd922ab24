"""docs/scale.md: the cost of one host's day and of a fleet's hour, from measurements."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from flexwire.capture.reassembly.idling import MOST_PAUSED
from flexwire.spark.capture_job import range_bytes_for
from flexwire.spark.tls_job import MOST_SHARES
from flexwire.storage.input_file import PIECE_BYTES
from flexwire.storage.uploads import PART_BYTES
from tools.pages.files import DOCS, replace_between, write_files

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "scale.md"
_DAY, _HOUR = 86_400, 3_600
_BEGIN, _END = "<!-- computed -->\n", "<!-- end -->\n"
_ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<figure>[\d.,]+) \|", re.MULTILINE)


def files() -> dict[Path, str]:
    """Return the page with its computed tables rewritten."""
    text = PAGE.read_text(encoding="utf-8")
    return {PAGE: replace_between(text, _BEGIN, _END, _table(measured(text)))}


def measured(page: str) -> dict[str, float]:
    """Return the figures in the first table, by name."""
    return {row["name"]: float(row["figure"].replace(",", "")) for row in _ROW.finditer(page)}


def derived(of: dict[str, float]) -> list[tuple[str, str]]:
    """Return the cost of a day: each quantity and its figure."""
    size = of["traffic"] * 1e9 * _DAY
    files = size / (of["file"] * 1e6)
    range_size = range_bytes_for(int(size), 10_000)
    tasks = size / range_size
    small = tasks * (of["tables"] - of["large_tables"])
    decoding = size / 1e6 / of["analysis"]
    seconds = {
        "files": files * of["per_file"] / 1e3,
        "tasks": tasks * of["per_task"] / 1e3,
        "joining": small * of["per_part"] / 1e3,
    }
    total = decoding + sum(seconds.values())
    state = of["connections"] * of["state"] * 1e3
    tables = size * of["share"]
    reads = 2 * size / PIECE_BYTES * 2 + files * 8
    writes = small + tables / PART_BYTES + 2 * of["large_tables"] * tasks + 2 * tasks
    driver = {
        name: of[f"{name}_s"] for name in ("list", "ask", "commit", "plan", "sums", "publish")
    }
    memory = max(of[f"{name}_mb"] for name in driver)
    stored = _store_seconds(of, size)
    frames = of["traffic"] * 1e9 / of["small_frame"]
    return [
        ("bytes of captures", f"{size / 1e12:,.1f} TB in {files:,.0f} files"),
        ("tasks", f"{tasks:,.0f} with {range_size / 1e9:,.2f} GB each"),
        ("CPU seconds for reading, decoding and writing", f"{decoding:,.0f}"),
        *((f"CPU seconds for {name}", f"{took:,.0f}") for name, took in seconds.items()),
        ("cores that are busy all day", f"{total / _DAY:,.1f}"),
        ("additional CPU seconds if captures are in a store", f"{stored:,.0f}"),
        ("cores busy all day if captures are in a store", f"{(total + stored) / _DAY:,.1f}"),
        ("memory of the workers on these cores", f"{total / _DAY * of['worker']:,.0f} GB"),
        ("CPU seconds for the survey in pieces", f"{size / 1e6 / of['survey']:,.0f}"),
        ("time of the fold, one task", f"{size / 1e6 / of['fold'] / 3600:,.1f} hours"),
        ("driver", f"{sum(driver.values()):,.0f} CPU s, {memory / 1e3:,.1f} GB at most"),
        ("tables", f"{tables / 1e12:,.1f} TB"),
        (
            "files of tables",
            f"{of['large_tables'] * tasks:,.0f} large files, hundreds joined from {small:,.0f}",
        ),
        (
            "requests that read captures",
            f"{reads / 1e6:,.0f} million, {reads / _DAY:,.0f} a second",
        ),
        ("requests that write tables", f"{writes / 1e6:,.1f} million"),
        ("requests that read and remove parts", f"{small * 1.001 / 1e6:,.1f} million"),
        (
            f"state at all cuts, with {of['connections']:,.0f} connections",
            f"{state * tasks / 1e12:,.2f} TB, {state / range_size:.1%} of the captures",
        ),
        (
            "number of connections at which the state is a tenth of the captures",
            f"{0.1 * range_size / (of['state'] * 1e3):,.0f}",
        ),
        (
            f"frames, if all of them have {of['small_frame']:,.0f} bytes",
            f"{frames / 1e3:,.0f} thousand a second, {frames * of['per_frame'] / 1e6:,.0f} cores",
        ),
    ]


def _store_seconds(of: dict[str, float], size: float) -> float:
    """Return the additional CPU seconds for reading bytes from a store instead of a disk."""
    return size / 1e9 * of["passes"] * of["per_stored"]


def derived_of_fleet(of: dict[str, float]) -> list[tuple[str, str]]:
    """Return the cost of a fleet's hour if each connection is captured once."""
    of_broker = of["broker_traffic"] * 1e6 * _HOUR
    size, connections = of_broker * of["brokers"], of["brokers"] * of["broker_connections"]
    files = size / (of["file"] * 1e6)
    seconds = size / 1e6 / of["analysis"] + _store_seconds(of, size) + files * of["per_file"] / 1e3
    fold = size / 1e6 / of["fold"]
    analyses = max(math.ceil(fold / _HOUR), math.ceil(connections / MOST_PAUSED))
    large, small, divided, divided_small = (
        of[name] / of["broker_traffic"]
        for name in ("merge", "merge_small", "divided", "divided_small")
    )
    each = of_broker / of["broker_connections"] / 1e6
    return [
        ("bytes of captures", f"{size / 1e12:,.1f} TB in {files:,.0f} files"),
        ("cores that are busy, if captures are in a store", f"{seconds / _HOUR:,.0f}"),
        ("memory of the workers on these cores", f"{seconds / _HOUR * of['worker']:,.0f} GB"),
        ("connections", f"{connections / 1e6:,.1f} million, each with {each:,.0f} MB"),
        (
            "analyses, each with its own tables",
            f"{analyses:,} with {of['brokers'] / analyses:,.0f} brokers each",
        ),
        ("time of the fold in each analysis", f"{fold / analyses / 60:,.0f} minutes"),
        (
            (
                "brokers whose captures one task can survey within the hour, "
                "if several captures show the same connections"
            ),
            f"{large:,.0f} with large frames, {small:,.0f} with small frames",
        ),
        (
            (
                f"brokers whose captures {MOST_SHARES} tasks can survey within the hour, "
                "if several captures show the same connections"
            ),
            f"{divided:,.0f} with large frames, {divided_small:,.0f} with small frames",
        ),
    ]


def _table(of: dict[str, float]) -> str:
    return "\n".join(
        f"| {title} | |\n|---|---|\n"
        + "".join(f"| {quantity} | {figure} |\n" for quantity, figure in rows)
        for title, rows in (
            ("a day", derived(of)),
            (f"an hour of {of['brokers']:,.0f} brokers", derived_of_fleet(of)),
        )
    )


if __name__ == "__main__":
    write_files(files())
