"""The entries that the tasks of a survey write for one another, in the output's directory."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from flexwire.spark.publishing.manifest import write_there
from flexwire.storage.local import compress, decompress

if TYPE_CHECKING:
    from flexwire.storage.output_directory import OutputDirectory
    from flexwire.survey.pieces import Piece
    from flexwire.survey.request import FileLook, Survey


KEPT: Final = "_survey"
"""The directory of the survey's files for the ranges, below the place of an analysis's files."""
PLAN: Final = "plan"
"""The name of the entry with the `SurveyPlan`."""


_Of = Literal["files", "looks", "piece", "summary", "part"]


class SurveyPlan(NamedTuple):
    """The readable files in the capture's order, its pieces, and the facts about the files.

    ``looks`` is None if a file cannot be read and must not be skipped. If there are no pieces, some
    files probably overlap.
    """

    looks: list[FileLook] | None
    pieces: list[Piece]
    survey: Survey


def entry_name(what: _Of, number: int) -> str:
    """Return the name of a task's entry.

    An entry is a list of ``files``, their ``looks``, a ``piece``, the ``summary`` of the survey, or
    the ``part`` of the survey for a share of the connections.
    """
    return f"{what}-{number:06d}"


def keep_entry(directory: OutputDirectory, name: str, data: bytes) -> None:
    """Write an entry under a name."""
    write_there(directory, f"{KEPT}/{name}", compress(data))


def read_kept(directory: OutputDirectory, name: str) -> bytes:
    """Return the bytes of the entry with this name."""
    return decompress(directory.read(f"{KEPT}/{name}"))


def put_entry(directory: OutputDirectory, name: str, value: object) -> None:
    """Write a value as an entry."""
    keep_entry(directory, name, pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def get_entry(directory: OutputDirectory, name: str) -> Any:
    """Return the value of an entry."""
    # The tasks of this analysis wrote these bytes, in the analysis's own directory.
    return pickle.loads(read_kept(directory, name))  # noqa: S301 - we wrote these bytes ourselves
