"""docs/codecs.md: how other projects' codecs pass the vectors, from `make codecs`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tools.pages.files import DOCS, ROOT, write_files

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "codecs.md"
KEPT = ROOT / "tests" / "vectors" / "codecs.json"
_HEAD = """# What six codecs do with the vectors

This page shows the results of other projects' codecs with the test vectors of Apache Kafka {kafka}
([vectors.md](vectors.md) describes the test). `make codecs` installs each codec, runs its program
in `examples/codecs`, and writes this page. The columns:

- **right**: the codec did the same as Apache Kafka. **No tags** is the number of these cases in
  which the codec lost unknown tagged fields, which KIP-482 allows.
- **failed**: the codec read other content, crashed, or did not answer within 2 seconds.
- **refused** and **taken**: the codec refused a valid message, or accepted bytes that Apache Kafka
  refuses.
- **remarks**: the codec differs in cases where Apache Kafka reads bytes that it would not write.
  Such a difference is not a deviation.
- **unknown**: the codec has no such message or version, or has no JSON to encode from.

| language | library | right | no tags | failed | refused | taken | remarks | unknown |
|---|---|---|---|---|---|---|---|---|
"""
_COLUMNS = (
    ("passed", "droppedUnknownTags"),
    ("droppedUnknownTags",),
    ("failed",),
    ("refusedWrongly",),
    ("takenWrongly",),
    ("stricterThanKafka", "readOtherwise"),
    ("unsupported", "notAsked"),
)
_DETAILS = """
A program that encodes a message again proves less than a program that prints JSON: two mistakes
that cancel each other are not detected. Only the Java codec was also asked to encode from JSON.

"""
_NOTES = {
    "java": """\
The vectors were made with kafka-clients, so kafka-clients must agree with the vectors. Two
weaknesses of kafka-clients are not in the table, because the behavior of kafka-clients defines what
is right. kafka-clients reads a tagged field with the tag 2^31-1 and refuses to write this field.
The JSON converter of kafka-clients writes an infinite double as text and does not read that text
back. The remarks are about messages that kafka-clients reads, and refuses to write again.""",
    "go": """\
If a section of tagged fields declares 2^31-1 fields, kmsg stays busy for half a minute after the
bytes have ended ([report](upstream/franz-go-tag-count.md)). kmsg reads null as an empty array where
the spec allows no null.""",
    "rust": """\
If an array count is larger than the bytes can hold, the crate aborts the process
([report](upstream/kafka-protocol-count.md)). The crate reads a varint of six bytes. For three
requests, the crate lists a version as valid (`valid_versions`) that its messages refuse.""",
    "javascript": """\
The library reads all versions of a response into the structure of the newest version, so the
program reads only the newest version of each response. A response with an error code that the
library does not know raises a TypeError, so a new error code of a broker makes a response
unreadable. The library reads null as an empty array even if the spec allows no null, and it reads
tagged fields of any size at the end of a message.""",
    "kio": """\
kio refuses unknown tagged fields, although KIP-482 asks a reader to skip them. kio also refuses an
error code that it does not know, so a new error code of a broker makes a response unreadable. An
array count above what the bytes can hold aborts the process ([report](upstream/kio-count.md)).""",
    "kafka-python": """\
A string that is cut off at the end of a message is read as a shorter string
([report](upstream/kafka-python-cut.md)). An ApiVersions response with any error code is read as
version 0, although only error 35 (UNSUPPORTED_VERSION) has that form.""",
}


def files() -> dict[Path, str]:
    """Return the page."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    parts = [_HEAD.format(kafka=next(iter(kept.values()))["kafka"])]
    parts += [_row(row) for row in kept.values()]
    parts.append(_DETAILS)
    parts += [_section(name, row) for name, row in kept.items()]
    return {PAGE: "".join(parts).rstrip("\n") + "\n"}


def _row(row: dict[str, Any]) -> str:
    counts = (sum(row["counts"][one] for one in names) for names in _COLUMNS)
    cells = [row["language"], f"{row['library']} {row['version']}", *(f"{one:,}" for one in counts)]
    return f"| {' | '.join(cells)} |\n"


def _section(name: str, row: dict[str, Any]) -> str:
    head = f"## {row['library']} {row['version']}\n\n{_NOTES[name]}\n\n"
    head += f"The program is `examples/codecs/{row['program']}`.\n\n"
    remarks = {"stricter than Kafka", "read otherwise"}
    rows = [one for one in row["kinds"] if one["outcome"] not in remarks]
    if not rows:
        return f"{head}No deviation.\n\n"
    lines = [
        f"| `{one['kind']}` | {one['outcome']}{_told(one['fault'])} | {one['cases']:,} | "
        f"`{one['first']}` |\n"
        for one in rows
    ]
    table = "| kind of case | outcome | cases | the first |\n|---|---|---|---|\n"
    return f"{head}{table}{''.join(lines)}\n"


def _told(fault: str) -> str:
    return f": {fault}" if fault else ""


if __name__ == "__main__":
    write_files(files())
