"""``python -m tests.tables.fixed_rows DIRECTORY``: write captures' expected rows and facts.

`tests/vectors/captures` contains small captures, each with the kept result of its analysis. The
results were written once, when an older analysis (Spark joins over Python objects, since removed)
agreed with the analysis in columns. After an intended change, read the difference line by line.
"""

from __future__ import annotations

import gzip
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.spark.equality import in_one_order

CAPTURES = Path(__file__).parents[1] / "vectors" / "captures"
NAMES = ("everything", "hosts", "strange")
RELEASES = ("3.9.2", "4.0.0")
"""The releases for which the captures are audited."""


def files_of(name: str) -> list[Path]:
    """Return the files of a capture."""
    return sorted((CAPTURES / name).glob("*.pcap*"))


def kept(name: str) -> dict[str, Any]:
    """Return the kept result of a capture: its tables and its facts."""
    text = gzip.decompress((CAPTURES / name / "expected.json.gz").read_bytes())
    found: dict[str, Any] = json.loads(text)
    return found


def told(tables: dict[str, list[dict[str, Any]]], facts: Any, directory: Path) -> dict[str, Any]:
    """Return tables and facts in the form in which they are kept, as JSON.

    Nulls are left out, so a column that a new release adds changes no kept row.
    """
    found = {
        "tables": {name: list(map(plain, rows)) for name, rows in in_one_order(tables).items()},
        "facts": plain(facts),
    }
    text = json.dumps(found, sort_keys=True).replace(f"{directory}/", "")
    again: dict[str, Any] = json.loads(text)
    return again


def plain(value: Any) -> Any:
    """Return a value of a row in its JSON form, without nulls."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [None if one is None else plain(one) for one in value]
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, datetime) else value


def main() -> int:
    """Write the result of each capture's analysis below the named directory."""
    from tests.reference.facts import findings, of_an_analysis  # noqa: PLC0415 - tests read alone
    from tests.tables.in_process import analyzed_in_process  # noqa: PLC0415 - as above

    for name in NAMES:
        tables, facts = analyzed_in_process(files_of(name), releases=RELEASES)
        found = of_an_analysis(facts) | {"findings": findings(facts)}
        place = Path(sys.argv[1]) / name
        place.mkdir(parents=True, exist_ok=True)
        text = json.dumps(told(tables, found, CAPTURES / name), sort_keys=True, indent=0)
        (place / "expected.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
