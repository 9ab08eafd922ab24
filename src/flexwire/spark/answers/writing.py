"""Writes what answers gave, beside the tables that they were asked of.

```
tables/answers/NAME/NAME.parquet     as a table, in one file
answers/NAME.csv                     as CSV, to send round
```
With Delta tables both are in the directory of the analysis, the table as answers/NAME.parquet: it
is about one input, and percentiles of two cannot be added up.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from flexwire.spark.answers import LOG_ANSWERS
from flexwire.spark.publishing.output import ANSWERS
from flexwire.spark.publishing.table_files import write_one_file
from flexwire.spark.tables import FORMAT
from flexwire.tables.output import MARKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flexwire.spark.answers.asking import Given
    from flexwire.storage.place import Place

_OF_LOGS: Final = frozenset(one.name for one in LOG_ANSWERS)


def to_send(given: Given, part: Mapping[str, float | str]) -> Given:
    """An answer as it is sent round: where it is about a ``part`` of what passed, rows say so.

    Answers of logs are about all that the logs have.
    """
    if not part or given.answer.asks or given.answer.name in _OF_LOGS:
        return given
    rows = given.rows
    for name, said in part.items():
        rows = rows.append_column(name, pa.repeat(said, len(rows)))
    return replace(given, rows=rows)


def write_answers(
    place: Place, given: Iterable[Given], *, grows: bool, part: Mapping[str, float | str]
) -> None:
    """Write them, and whose their directory is; ``grows`` where the tables are Delta's.

    ``part`` is what is said of captures that do not hold all that passed (`part_columns`).
    """
    # What has it, a later analysis may replace.
    place.write(f"{ANSWERS}/{MARKER}", json.dumps({"format": FORMAT}).encode() + b"\n")
    for one in given:
        name = one.answer.name
        place.write(f"{ANSWERS}/{name}.csv", to_send(one, part).csv().encode())
        directory = ANSWERS if grows else f"tables/{ANSWERS}/{name}"
        rows = one.rows
        write_one_file(place, f"{directory}/{name}.parquet", rows.schema, rows.to_batches())
