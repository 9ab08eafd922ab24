"""The facts about rehearsals, from the comments in captures and from the frames of clients."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from flexwire.capture.files.comments import MOST_CLIENT_ID
from flexwire.facts.rehearsals import MOST_REFUSED, RefusedClient, RehearsalFacts
from flexwire.spark.publishing.commit import run_tasks
from flexwire.survey.rehearsals import RehearsedTraffic, join, read_rehearsal
from flexwire.tasks import begin_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.spark.publishing.task_output import TaskOutput
    from flexwire.storage.input_file import InputFile

_REFUSED = "number int, refused_host string, refused_id string, apis array<string>, last_us bigint"


def rehearsal_facts(
    spark: SparkSession,
    files: Sequence[InputFile],
    releases: tuple[str, ...],
    frames: Callable[[], DataFrame],
    task_output: TaskOutput,
) -> RehearsalFacts:
    """Return the actions that taps recorded in these files, and the refused clients that came back.

    ``frames`` is a function that returns the table of frames of all captures. The function is
    called only if a client was refused.
    """
    done = run_tasks(spark, len(files), partial(_read, list(files)), task_output)
    traffic = join(task.value for task in done)
    order = sorted(traffic.refused.items(), key=lambda item: (-item[1].times, repr(item[0])))
    refused = [
        RefusedClient(
            *client, tuple(refusals.requests), refusals.times, refusals.first_us, refusals.last_us
        )
        for client, refusals in order[:MOST_REFUSED]
    ]
    return RehearsalFacts(
        releases=releases,
        files=len(files),
        narrowed=traffic.did["narrowed"] + traffic.did["sent on"],
        sent_on=traffic.did["sent on"],
        unsupported=traffic.did["unsupported"],
        closed=traffic.did["closed"],
        refused=tuple(with_returns(spark, frames(), refused)) if refused else (),
        refused_count=len(traffic.refused),
        beyond=traffic.beyond,
    )


def _read(files: list[InputFile], number: int, _: TaskOutput) -> RehearsedTraffic:
    begin_task()
    return read_rehearsal(files[number])


def with_returns(
    spark: SparkSession, frames: DataFrame, refused: Sequence[RefusedClient]
) -> list[RefusedClient]:
    """Return the same clients, with the requests that they sent after their last refusal."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - this import is slow

    rows = [
        (number, client.host, client.client_id, _apis(client), client.last_time_us)
        for number, client in enumerate(refused)
    ]
    sent = frames.where(f.col("direction") == "request").select(
        f.regexp_replace("client", ":[0-9]+$", "").alias("host"),
        f.substring("client_id", 1, MOST_CLIENT_ID).alias("client_id"),
        "api_name",
        f.concat_ws(" v", "api_name", f.col("api_version").cast("string")).alias("named"),
        "answered",
        f.expr("unix_micros(time)").alias("us"),
    )
    is_theirs = (
        (f.col("host") == f.col("refused_host"))
        & f.col("client_id").eqNullSafe(f.col("refused_id"))
        & (f.col("us") > f.col("last_us"))
    )
    works = f.col("answered") & f.expr("array_contains(apis, api_name)")
    found: dict[int, Any] = {
        row["number"]: row["works"]
        for row in sent.join(f.broadcast(spark.createDataFrame(rows, _REFUSED)), is_theirs)
        .groupBy("number")
        .agg(f.min(f.when(works, f.struct("us", "named"))).alias("works"))
        .collect()
    }
    return [
        _returned(client, found[number]) if number in found else client
        for number, client in enumerate(refused)
    ]


def _returned(client: RefusedClient, works: tuple[int, str] | None) -> RefusedClient:
    time_us, request = works or (None, None)
    return replace(client, returned=True, works_time_us=time_us, works_with=request)


def _apis(client: RefusedClient) -> list[str]:
    return [request.rpartition(" ")[0] for request in client.requests]
