"""Which way an analysis is written, by where to and in which format.

| | on this machine | in a store |
|---|---|---|
| parquet | `local`: renamed into place | `stored`: one PUT says which run it is |
| delta | `delta`: appended to tables that grow | the same |
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from flexwire.arguments import refuse, to_flag, to_text
from flexwire.errors import FlexwireError, StorageError
from flexwire.extras import needed_by
from flexwire.facts.facts import Facts
from flexwire.spark.publishing.local import FACTS, Staging, staging
from flexwire.spark.publishing.stored import StoredStaging, stored_staging
from flexwire.survey.survey import Asked
from flexwire.tables.output import CountedOutput, Output, is_delta

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flexwire.logs.files import Partition
    from flexwire.spark.delta.output import DeltaStaging
    from flexwire.storage.place import Place
    from flexwire.storage.source import Source

    Writing: TypeAlias = Staging | StoredStaging[Place] | DeltaStaging


PARQUET: Final = "parquet"
DELTA: Final = "delta"
FORMATS: Final = (PARQUET, DELTA)


def to_format(format: object, append: object) -> tuple[str, bool]:  # noqa: A002 - the option's name
    """Give a format and whether to append; `ArgumentError` where that does not go together."""
    named, added = to_text(format, "format"), to_flag(append, "append")
    if named not in FORMATS:
        raise refuse("format", " or ".join(map(repr, FORMATS)), format)
    if added and named != DELTA:
        raise refuse(
            "append", "format delta beside it, as an output of format parquet is replaced", append
        )
    return named, added


@contextmanager
def begun(
    out: Place,
    files: list[Source],
    format: str = PARQUET,  # noqa: A002 - the option's own name
    *,
    append: bool = False,
    logs: Sequence[Source] = (),
) -> Iterator[Writing]:
    """A place for one analysis of ``files`` into ``out``; what is not published goes in the end.

    The ``logs`` beside them are not known by their files, as these grow, but by offsets.
    """
    if format == DELTA:
        with needed_by("--tables delta", "delta"):
            from flexwire.spark.delta.output import delta_staging  # noqa: PLC0415 - an extra
        digest = Asked((*files, *logs)).digest
        with delta_staging(out, files, digest, append=append) as grown:
            yield grown
        return
    if is_delta(out):
        raise FlexwireError(
            f"{out} holds Delta tables of other analyses; give --tables delta, or choose another "
            "--out"
        )
    if out.path is None:
        with stored_staging(out) as stored:
            yield stored
    else:
        with staging(out.path) as local:
            yield local


def here(place: Writing, tried: str) -> Staging:
    """The same where Spark itself writes it. `StorageError` for the others, with what was tried."""
    if isinstance(place, Staging):
        return place
    raise _elsewhere(place.out, tried)


def check_here(out: Place, format: str, tried: str) -> None:  # noqa: A002 - the option's own name
    """Raise that `StorageError` before anything is begun."""
    if out.path is None or format != PARQUET:
        raise _elsewhere(out, tried)


def _elsewhere(out: Place, tried: str) -> StorageError:
    reason = f"{tried} is written in format parquet to a directory on this machine only, for now"
    return StorageError(reason, url=str(out))


def found(place: Writing) -> Output:
    """What is to be read once it is published."""
    told: Any = place.published
    return told if isinstance(told, Output) else Output(told)


def staged(place: Writing) -> Output:
    """The tables that have been written, before they are published."""
    if isinstance(place, Staging):
        return Output(place.files)
    if isinstance(place, StoredStaging):
        return CountedOutput(place.files, place.drop.counts)
    with needed_by("reading Delta tables", "delta"):
        from flexwire.spark.delta.reading import StagedOutput  # noqa: PLC0415 - an extra

    return StagedOutput(place.out, place.files, place.drop.counts)


def known_offsets(place: Writing) -> Mapping[Partition, int] | None:
    """The offsets to go on with in logs where tables grow; None where all of a log is read."""
    return None if isinstance(place, Staging | StoredStaging) else place.next_offsets


def went_on(place: Writing, offsets: Mapping[Partition, int]) -> None:
    """Note the offsets after what was read of logs, where tables grow."""
    if not isinstance(place, Staging | StoredStaging):
        place.read_until.update(offsets)


def facts_of_known(place: Writing) -> Facts:
    """The facts of the analysis of the same input that is in already."""
    return Facts.from_json(json.loads(found(place).read(FACTS)))
