"""docs/answers.md says of every answer what it asks, and every answer is what the report can show.

Write it anew with ``python -m tests.docs.test_answers_page``.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from flexwire import answers
from flexwire.answers import ANSWERS
from flexwire.answers.asking.asking import MOST_ROWS, SHOWN_ROWS
from flexwire.answers.group_offsets import ANSWER as GROUP_OFFSETS
from flexwire.report.charts import PARTS
from tests.docs.test_tables_page import code, spark_type
from tests.each import each
from tests.spark.asked import BUSY, TALKERS

if TYPE_CHECKING:
    from flexwire.answers.asking.answer import Answer
    from flexwire.facts.answers import Kind

PAGE = Path(__file__).parents[2] / "docs" / "answers.md"
HEAD = f"""# Answers

What operators ask of their traffic and logs. `flexwire analyze --answers all` answers it, and by
default what is asked of logs, where logs are given: the others take some CPU seconds each. Each is
a part of the report, a table `answers/NAME`, and `answers/NAME.csv` to send round, in which no cell
is a formula. The report has the first {SHOWN_ROWS} rows, the table and the CSV at most the first
{MOST_ROWS:,}, the most important ones, or {GROUP_OFFSETS.most_rows:,} of `group_offsets`. What is
beyond that is counted. The report leaves out a column of texts that no row has.

`--answers NAME,NAME` asks some, `--answers none` nothing. One that fails is said in the report
and on the terminal, and all else is as it would be; where it was named, the exit code is 1. One
that is named and asks of logs that were not given fails so too. With Delta tables both are in the
directory of the run, the table as answers/NAME.parquet: they are about
its input alone. `flexwire answers OUT` asks Delta tables as a whole, all analyses together, and
says what was cut between them ([boundaries](#boundaries-what-was-cut-between-analyses)). Of
internal topics `flexwire answers` prints what the analysis answered: their logs
are in no table. Text on a terminal has the columns and units of the report, in lines of up to 120
characters; `--format csv` and `--format json` have all columns. `--as-of` asks what they said at an
earlier moment
([internal-topics.md](internal-topics.md#in-an-analysis)).

```
flexwire analyze CAPTURE --out OUT --answers all --labels teams.csv
flexwire answers OUT                         # prints them again
flexwire answers OUT NAME --format csv
```

Each is one function of tables in one file of plain DataFrame code, which is
`flexwire/answers/NAME.py`. It returns a DataFrame that can be filtered and joined further.
Spark gives its rows in no order: `ANSWER.ordered` puts the most important row first, as the table,
the CSV and the report have it.
```python
from pyspark.sql import SparkSession
from flexwire.spark.answers.outputs import open_tables

spark = SparkSession.builder.getOrCreate()  # flexwire.spark.session.session() finds a Java too
tables = open_tables(spark, "OUT")  # a path or URL; of Delta tables all analyses that are in
tables.frames.groupBy("client_id").count().show()
```
The blocks below take `spark` and `open_tables` from here.
Tables that grow hold several analyses, each of which counts frames from 0. Join and group by
`frame_key(table.columns)` and `connection_key(table.columns)` of `flexwire.tables.keys`: these have
the column `analysis` where a table has it.

To change one, copy its file, change the function, and give `analyze` the `Answer` made of it:
`analyze(paths, out, answers=["all the others by name", MINE])`. The report shows those of its
columns that have a heading. `python -m tests.docs.test_answers_page` writes this page from
`flexwire.answers.ANSWERS`; the tables that they ask are in [tables.md](tables.md).
"""
# Which types of columns the report can show as what.
SHOWN_AS: dict[Kind, tuple[str, ...]] = {
    "text": ("string", "list<", "binary"),
    "count": ("int", "double"),
    "id": ("int",),
    "bytes": ("int", "double"),
    "us": ("int", "double"),
    "moment": ("timestamp", "date32"),
    "share": ("double",),
    "flag": ("bool",),
    "setting": ("int",),
}


def page() -> str:
    """Write the page."""
    return HEAD + "".join(map(section, ANSWERS))


def section(answer: Answer) -> str:
    lines = [
        f"| `{one.name}` | {spark_type(one.type)} | {code(one.meaning)} | {code(one.null)} |"
        for one in answer.columns
    ]
    function = inspect.unwrap(answer.ask)
    told = inspect.getdoc(function) or ""
    return "\n".join([
        f"\n## `{answer.name}`: {answer.question}",
        code(answer.meaning),
        "",
        code(told),
        "",
        f"**What to do:** {code(answer.advice)}{of_state(answer)}",
        "```python",
        f"from flexwire.answers.{answer.name} import ANSWER, {answer.name}",
        "",
        f'ANSWER.ordered({answer.name}(open_tables(spark, "OUT"))).show()',
        "```",
        f"One row {answer.row.removeprefix('One row ').removesuffix('.')}, ordered by "
        + ", ".join(f"`{one}`" for one in answer.order) + ".",
        "",
        "| column | type | what | null |",
        "|---|---|---|---|",
        *lines,
        "",
    ])  # fmt: skip


def of_state(answer: Answer) -> str:
    """Where the same is answered of logs."""
    return f" Of a broker's logs, `{answer.of_state}` answers it." if answer.of_state else ""


def test_what_answers_the_same_of_logs_is_an_answer_of_internal_topics() -> None:
    by_name = {one.name: one for one in ANSWERS}
    said = [one.of_state for one in ANSWERS if one.of_state]
    assert said
    assert all(by_name[name].asks for name in said)


def test_the_page_is_what_the_answers_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_block_of_the_page_is_in_the_order_that_the_page_promises() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for answer in ANSWERS:
        assert f"ANSWER.ordered({answer.name}(" in text
        assert f", ordered by {', '.join(f'`{one}`' for one in answer.order)}." in text


def test_no_two_answers_have_one_name_and_each_can_be_imported() -> None:
    names = [one.name for one in ANSWERS]
    assert len(names) == len({*names})
    for one in ANSWERS:
        assert one.ask.__name__ == one.name
        assert one.ask.__module__ == f"{answers.__name__}.{one.name}"


@each("answer", (*ANSWERS, TALKERS, BUSY))
def test_an_answer_is_what_the_report_can_show(answer: Answer) -> None:
    types = {one.name: one.type for one in answer.columns}
    assert len(types) == len(answer.columns)
    assert {one.removeprefix("-") for one in answer.order} <= {*types}
    assert answer.question.endswith("?")
    assert answer.meaning.endswith(".")
    assert answer.advice.endswith(".")
    for one in answer.columns:
        assert one.meaning
        assert "|" not in one.meaning + one.null
    shown = {one.name: one for one in answer.shown_columns()}
    headed = [one.name for one in answer.columns if one.heading]
    assert sorted(shown) == sorted(headed)
    # What the table's own order says is not said again.
    assert list(answer.shown) != headed
    for name, column in shown.items():
        assert str(types[name]).startswith(SHOWN_AS[column.kind]), name
    assert any(one.is_about for one in answer.shown_columns())
    picture = answer.picture
    if picture is not None:
        assert {picture.value, *picture.parts, *picture.across} <= {*shown}
        assert len({one.kind for one in answer.shown_columns() if one.name in picture.across}) <= 1
        assert len(picture.parts) <= len(PARTS)
        assert picture.over is None or pa.types.is_temporal(types[picture.over])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
