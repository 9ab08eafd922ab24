"""What a user should hear of how an analysis was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flexwire.capture.reassembly.merging import MOST_OPEN
from flexwire.report.answer_facts import moment_notes
from flexwire.spark.surveying import LEAST_BYTES
from flexwire.survey.pieces import COMPRESSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.report.facts import Facts
    from flexwire.storage.source import Source

CROWDED: Final = (
    f"more than {MOST_OPEN} captures that overlap in time and show the same connections"
)
"""What cannot be merged, and is read by objects."""
BY_OBJECTS: Final = (
    f"There were {CROWDED}: Python objects read them, which takes far longer. Files that one host "
    "captured at once can be joined first, with mergecap."
)

# Of a compressed file's size, about what is in it.
_INFLATION: Final = 10


def weight(file: Source) -> int:
    """About how many bytes a file holds."""
    return file.size * (_INFLATION if file.name.endswith(COMPRESSED) else 1)


def gzip_note(files: Sequence[Source]) -> tuple[str, ...]:
    """Say which files are large and gzip'd, if any: each is one task, as it is not split."""
    large = [one for one in files if one.name.endswith(COMPRESSED) and weight(one) >= LEAST_BYTES]
    if not large:
        return ()
    most = max(large, key=lambda one: one.size)
    others = f" and {len(large) - 1:,} more" if len(large) > 1 else ""
    told = f"{most.name}{others}: one task each, as a gzip'd file can only be read from its start."
    return (f"{told} Unpacked, a large file is read by many.",)


def answer_notes(facts: Facts) -> tuple[str, ...]:
    """Say what the audit left out, and of answers the moment, failures and rows left out."""
    failed = (f"Not answered: {one.reason}" for one in facts.unanswered)
    cut = (
        f"The answer {one.name} has {one.rows:,} rows; its table and CSV have the first "
        f"{one.rows - one.left_out:,}."
        for one in facts.answers
        if one.left_out
    )
    left_out = facts.audit.left_out.told
    return (*((left_out,) if left_out else ()), *moment_notes(facts.answers), *failed, *cut)
