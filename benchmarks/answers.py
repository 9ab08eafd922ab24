"""Measure each answer of an analysis: ``python benchmarks/answers.py OUT [NAME...]``.

The figures are CPU seconds of Python, Java and workers together. Each answer runs in a separate
process with its own Spark, started as `flexwire answers` does, and the lowest of ``--times`` runs
counts. The cost of starting Spark and of counting a one-row table is measured in the same way and
subtracted. ``--all`` computes all answers in one process, as `analyze` does. The target is 20 CPU
seconds for each answer, on the tables of 4 GB of captures.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from processes import Usage, run

NOTHING = "nothing"


def ask(out: str, names: list[str], memory: str) -> None:
    """Compute answers in this process, and print the number of rows of each."""
    from flexwire.answers import ANSWERS_BY_NAME  # noqa: PLC0415 - what is measured begins here
    from flexwire.answers.asking.results import ask as answer  # noqa: PLC0415 - see above
    from flexwire.answers.asking.results import choose_answers  # noqa: PLC0415 - see above
    from flexwire.spark.answers.outputs import tables_of  # noqa: PLC0415 - see above
    from flexwire.spark.dataframes import output_of  # noqa: PLC0415 - see above
    from flexwire.spark.session import session  # noqa: PLC0415 - see above
    from flexwire.spark.settings import are_small, java_for, set_for_answers  # noqa: PLC0415 - see above

    found = output_of(out)
    spark = session(memory=memory, conf=java_for(found))
    is_small = are_small(found)
    with set_for_answers(spark, is_small=is_small):
        spark.range(1).groupBy("id").count().toArrow()
        for one in [] if names == [NOTHING] else choose_answers(names, ANSWERS_BY_NAME):
            tables = tables_of(spark, found, is_small=is_small)
            print(f"{one.name}: {answer(one, tables).count:,} rows")
    spark.stop()


def least(out: str, names: list[str], memory: str, times: int) -> Usage:
    command = [sys.executable, __file__, out, *names, "--here", "--memory", memory]
    usages = [run(command) for _ in range(times)]
    for one in usages:
        if one.code:
            raise SystemExit(one.output)
    return min(usages, key=lambda one: one.cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--all", action="store_true", help="ask all of them in one process")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        ask(given.out, given.names, given.memory)
        return
    from flexwire.answers import ANSWERS  # noqa: PLC0415 - it imports PySpark

    names = given.names or [one.name for one in ANSWERS]
    size = sum(one.stat().st_size for one in Path(given.out, "tables").rglob("*.parquet"))
    floor = least(given.out, [NOTHING], given.memory, given.times)
    print(f"{given.out}: {size / 1e6:,.0f} MB of tables; Spark alone {floor.cpu:.1f} CPU s")
    for asked in [names] if given.all else [[name] for name in names]:
        usage = least(given.out, asked, given.memory, given.times)
        rows = ", ".join(line for line in usage.output.splitlines() if line.endswith(" rows"))
        java = usage.by_kind.get("java", 0)
        print(
            f"{usage.cpu - floor.cpu:6.1f} CPU s (all {usage.cpu:.1f}, Java {java:.1f}), "
            f"{usage.rss.get('java', 0) / 1e9:.1f} GB: {rows}",
            flush=True,
        )


if __name__ == "__main__":
    main()
