"""All conventions by name, and those that the headers of a record may follow.

Each convention is a class in a file of this folder. The registry finds the classes in these files,
so a new convention needs no other code.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.errors import FlexwireError, RecordHeaderError, short
from flexwire.records.conventions.convention import Convention, HeaderEvidence, Key, RawHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.records.record import RecordHeader

# The files in this folder that contain no convention.
_SHARED: Final = frozenset({"convention", "registry"})


def _conventions() -> Iterator[Convention]:
    """Yield an instance of each convention in the files of this folder."""
    room = __name__.rpartition(".")[0]
    for file in iter_modules(sys.modules[room].__path__):
        if file.name in _SHARED:
            continue
        module = import_module(f"{room}.{file.name}")
        for kind in vars(module).values():
            is_convention = isinstance(kind, type) and issubclass(kind, Convention)
            if is_convention and kind.__module__ == module.__name__:
                yield kind()


CONVENTIONS: dict[str, Convention] = {
    convention.name: convention
    for convention in sorted(_conventions(), key=lambda convention: convention.rank)
}
"""Each convention under its name, the most specific first."""


def read_headers(
    pairs: Iterable[RawHeader] | None, convention: str | Convention, *, lenient: bool = False
) -> list[tuple[Key, Any]]:
    """Read one record's headers by a convention, specified by its name or as an object.

    ``pairs`` is a client's list of headers, a `Record`, or None if there are no headers. Keys
    become text. Raises `RecordHeaderError` with the key of an invalid header. Lenient reading keeps
    the header's bytes.

    >>> read_headers([(b"a", b"12"), (b"b", b"12:30")], "connect", lenient=True)
    [('a', 12), ('b', b'12:30')]
    """
    return _named(convention).read(pairs or (), lenient=lenient)


def write_headers(
    pairs: Iterable[tuple[Key, Any]], convention: str | Convention
) -> list[RecordHeader]:
    """Write one record's headers by a convention.

    Raises `RecordHeaderError` for a value that reading would not return. Only floats may lose
    digits.

    >>> write_headers([("retries", 3)], "spring-json")
    [(b'retries', b'3'), (b'spring_json_header_types', b'{"retries":"java.lang.Integer"}')]
    """
    return _named(convention).write(pairs)


def _named(convention: str | Convention) -> Convention:
    if isinstance(convention, Convention):
        return convention
    try:
        return CONVENTIONS[convention]
    except KeyError:
        names = ", ".join(CONVENTIONS)
        raise FlexwireError(f"unknown convention {short(convention)}; expected {names}") from None


class Candidate(NamedTuple):
    """The name of a convention, with the headers' evidence for and against it, in order."""

    convention: str
    supports: list[HeaderEvidence]
    against: list[HeaderEvidence]


def detect(pairs: Iterable[RawHeader] | None) -> list[Candidate]:
    """Return every convention with the evidence for and against it in one record's headers.

    The conventions with the least evidence against them come first. Among equals, the conventions
    with the most evidence of weight 2, and then of weight 1, come first. No convention is left out,
    and none is
    chosen: bytes such as ``31`` are valid in several conventions.

    >>> for candidate in detect([(b"retries", b"3"), (b"ce_id", b"7f")])[:2]:
    ...     print(candidate.convention, candidate.supports)
    utf-8 [HeaderEvidence(key='retries', weight=1, reason='1 characters of text'), \
HeaderEvidence(key='ce_id', weight=2, reason='has the name of a CloudEvents attribute')]
    connect [HeaderEvidence(key='retries', weight=1, reason='reads as int: 3')]
    """
    headers = list(pairs or ())
    candidates = [_candidate(convention, headers) for convention in CONVENTIONS.values()]
    return sorted(candidates, key=_rank)


def _candidate(convention: Convention, headers: list[RawHeader]) -> Candidate:
    # If the header with Spring's classes cannot be read, this is reported below.
    with suppress(RecordHeaderError):
        convention = convention.for_record(headers)
    judged = [_evidence(convention, key, data) for key, data in headers if data is not None]
    return Candidate(
        convention.name,
        [evidence for evidence in judged if evidence and evidence.weight > 0],
        [evidence for evidence in judged if evidence and evidence.weight < 0],
    )


def _evidence(convention: Convention, key: Key, data: bytes) -> HeaderEvidence | None:
    try:
        return convention.evidence(convention.key_text(key), convention.raw(key, data))
    except RecordHeaderError as error:
        return HeaderEvidence(key, -1, error.reason)


def _rank(candidate: Candidate) -> tuple[int, int, int]:
    strong = sum(evidence.weight > 1 for evidence in candidate.supports)
    return len(candidate.against), -strong, -len(candidate.supports)
