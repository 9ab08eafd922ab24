"""docs/answers.md: the question behind each answer, what to do about it, and its columns."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from flexwire.answers import ANSWERS
from flexwire.answers.asking.results import MOST_ROWS, SHOWN_ROWS
from flexwire.answers.group_offsets import ANSWER as GROUP_OFFSETS
from tools.pages.files import DOCS, write_files
from tools.pages.tables import markdown, spark_type

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.answers.asking.answer import Answer

PAGE = DOCS / "answers.md"
_HEAD = f"""# Answers

An answer is a predefined query for a question that operators ask about their traffic and logs.
`flexwire analyze --answers all` computes all answers. By default, the command computes only the
answers about logs, and only if logs were given: each of the other answers takes some CPU seconds.
flexwire writes each answer to the report, to a table `answers/NAME`, and to a file
`answers/NAME.csv`, which you can share. No cell of this file contains a formula. The report shows
the first {SHOWN_ROWS} rows. The table and the CSV file contain at most the {MOST_ROWS:,} most
important rows, or {GROUP_OFFSETS.most_rows:,} rows for `group_offsets`. Any further rows are only
counted. The report omits a text column that is empty in every row.

`--answers NAME,NAME` computes only the listed answers, and `--answers none` computes no answers. If
an answer fails, the report and the terminal say so, and everything else is written as usual. If you
listed this answer by name, the exit code is 1. An answer that you listed by name also fails if it
is about logs and no logs were given. For Delta and Iceberg tables, flexwire writes the table
(`answers/NAME.parquet`) and the CSV file to the directory of the run, because they cover only the
input of this run. `flexwire answers OUT` computes the answers from all analyses in such tables
together, and reports which connections were cut between the analyses
([boundaries](#boundaries-which-connections-were-cut-between-two-analyses)). For internal topics,
`flexwire answers` prints the stored answers again, because the logs of these topics are not stored
as tables. On a terminal, the output shows the columns and units of the report, in lines of up to
120 characters. `--format csv` and `--format json` output all columns. With `--as-of`, the answers
show the state at an earlier moment ([internal-topics.md](internal-topics.md#in-an-analysis)).

```
flexwire analyze CAPTURE --out OUT --answers all --labels teams.csv
flexwire answers OUT                         # prints them again
flexwire answers OUT NAME --format csv
```

Each answer is a function of plain DataFrame code, in its own file `flexwire/answers/NAME.py`. The
function returns a DataFrame that you can filter and join. Spark returns the rows in no particular
order. `ANSWER.ordered` puts the most important row first, as in the table, the CSV file and the
report.
```python
from pyspark.sql import SparkSession
from flexwire.spark.answers.outputs import open_tables

spark = SparkSession.builder.getOrCreate()  # flexwire.spark.session.session() finds a Java too
tables = open_tables(spark, "OUT")  # a path or URL; of tables that grow, all analyses
tables.frames.groupBy("client_id").count().show()
```
The code blocks below use `spark` and `open_tables` from this block. Tables that grow contain
several analyses, and each analysis numbers its frames from 0. To join and group such tables, use
`frame_key(table.columns)` and `connection_key(table.columns)` from `flexwire.tables.keys`. Both
functions include the column `analysis` if the table contains it.

To change an answer, copy its file, change the function, create an `Answer` with it, and pass this
`Answer` to `analyze`: `analyze(paths, out, answers=["all the others by name", MINE])`. The report
shows only the columns that have a heading. `python -m tools.pages.answers` writes this page from
`flexwire.answers.ANSWERS`. [tables.md](tables.md) describes the tables that the answers read.
"""


def files() -> dict[Path, str]:
    """Return the page."""
    return {PAGE: _HEAD + "".join(map(_section, ANSWERS))}


def _section(answer: Answer) -> str:
    lines = [
        f"| `{column.name}` | {spark_type(column.type)} | {markdown(column.meaning)} "
        f"| {markdown(column.null)} |"
        for column in answer.columns
    ]
    function = inspect.unwrap(answer.ask)
    # The docstring's first sentence is about the function, but this one is about the rows.
    description = (inspect.getdoc(function) or "").removeprefix("Return ")
    description = description[:1].upper() + description[1:]
    return "\n".join([
        f"\n## `{answer.name}`: {answer.question}",
        markdown(answer.meaning),
        "",
        markdown(description),
        "",
        f"**What to do:** {markdown(answer.advice)}{_of_state(answer)}",
        "```python",
        f"from flexwire.answers.{answer.name} import ANSWER, {answer.name}",
        "",
        f'ANSWER.ordered({answer.name}(open_tables(spark, "OUT"))).show()',
        "```",
        f"Each row describes {answer.row}. Rows are ordered by "
        + ", ".join(f"`{name}`" for name in answer.order) + ".",
        "",
        "| column | type | meaning | null |",
        "|---|---|---|---|",
        *lines,
        "",
    ])  # fmt: skip


def _of_state(answer: Answer) -> str:
    """Name the answer to the same question about a broker's logs."""
    return f" For a broker's logs, use `{answer.of_state}`." if answer.of_state else ""


if __name__ == "__main__":
    write_files(files())
