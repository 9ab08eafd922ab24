"""The entries that the tasks of a survey leave for one another, below the place of the output."""

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
"""The survey writes its files for the ranges here, below the place that an analysis writes to."""
PLAN: Final = "plan"
"""The name of the entry with the `SurveyPlan`."""


_Of = Literal["files", "looks", "piece", "summary", "part"]


class SurveyPlan(NamedTuple):
    """The readable files in the capture's order, its pieces, and what is known of the files.

    ``looks`` is None if a file cannot be read and must not be skipped. Without pieces, files are
    likely to overlap.
    """

    looks: list[FileLook] | None
    pieces: list[Piece]
    survey: Survey


def entry_name(what: _Of, number: int) -> str:
    """Return the name of the entry of a task.

    It has a list of ``files``, the ``looks`` at them, a ``piece``, the ``summary`` of its survey,
    or the ``part`` of a share of the connections.
    """
    return f"{what}-{number:06d}"


def keep_entry(directory: OutputDirectory, name: str, data: bytes) -> None:
    """Write an entry of a name."""
    write_there(directory, f"{KEPT}/{name}", compress(data))


def read_kept(directory: OutputDirectory, name: str) -> bytes:
    """Return the survey's entry of a name."""
    return decompress(directory.read(f"{KEPT}/{name}"))


def put_entry(directory: OutputDirectory, name: str, value: object) -> None:
    """Write an entry with a value."""
    keep_entry(directory, name, pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def get_entry(directory: OutputDirectory, name: str) -> Any:
    """Return the value of an entry."""
    # The tasks of this analysis wrote it, in a directory of its own.
    return pickle.loads(read_kept(directory, name))  # noqa: S301 - our own bytes
