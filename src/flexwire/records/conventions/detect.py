"""Which conventions a record's headers may follow, with the evidence; the choice is yours."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from flexwire.errors import RecordHeaderError
from flexwire.records.conventions.convention import (
    Convention,
    Evidence,
    Key,
    RawHeader,
)
from flexwire.records.conventions.registry import CONVENTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable


class Candidate(NamedTuple):
    """A convention by name, and what the record headers say for and against it, in their order."""

    convention: str
    supports: list[Evidence]
    against: list[Evidence]


def detect(pairs: Iterable[RawHeader] | None) -> list[Candidate]:
    """Give every convention with its evidence in the record headers of one record.

    Those with the least against them come first, then those with the most of weight 2 and of weight
    1 for them. No convention is left out, and none is chosen: bytes like ``31`` fit several.

    >>> for candidate in detect([(b"retries", b"3"), (b"ce_id", b"7f")])[:2]:
    ...     print(candidate.convention, candidate.supports)
    utf-8 [Evidence(key='retries', weight=1, reason='1 characters of text'), \
Evidence(key='ce_id', weight=2, reason='is named as an attribute of CloudEvents')]
    connect [Evidence(key='retries', weight=1, reason='reads as int: 3')]
    """
    headers = list(pairs or ())
    candidates = [_candidate(convention, headers) for convention in CONVENTIONS.values()]
    return sorted(candidates, key=_rank)


def _candidate(convention: Convention, headers: list[RawHeader]) -> Candidate:
    # Where Spring's classes cannot be read, the header that holds them says so below.
    with suppress(RecordHeaderError):
        convention = convention.for_record(headers)
    found = [_evidence(convention, key, data) for key, data in headers if data is not None]
    return Candidate(
        convention.name,
        [evidence for evidence in found if evidence and evidence.weight > 0],
        [evidence for evidence in found if evidence and evidence.weight < 0],
    )


def _evidence(convention: Convention, key: Key, data: bytes) -> Evidence | None:
    try:
        return convention.evidence(convention.key_text(key), convention.raw(key, data))
    except RecordHeaderError as error:
        return Evidence(key, -1, error.reason)


def _rank(candidate: Candidate) -> tuple[int, int, int]:
    strong = sum(evidence.weight > 1 for evidence in candidate.supports)
    return len(candidate.against), -strong, -len(candidate.supports)
