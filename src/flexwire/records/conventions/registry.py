"""All conventions by name, and reading and writing by a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.errors import FlexwireError, short
from flexwire.records.conventions.connect import Connect
from flexwire.records.conventions.convention import Convention, Key, RawHeader
from flexwire.records.conventions.fixed_width import FixedWidth
from flexwire.records.conventions.spring import SpringJson
from flexwire.records.conventions.typed_values import EarlierTypedValues, TypedValues
from flexwire.records.conventions.utf8 import Utf8

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.records.record import RecordHeader

#: Each convention under its name, the most particular first.
CONVENTIONS: dict[str, Convention] = {
    convention.name: convention
    for convention in (
        SpringJson(),
        TypedValues(),
        EarlierTypedValues(),
        Connect(),
        Utf8(),
        FixedWidth(),
    )
}


def read_headers(
    pairs: Iterable[RawHeader] | None, convention: str | Convention, *, lenient: bool = False
) -> list[tuple[Key, Any]]:
    """Read the record headers of one record by a convention, given by name or made for the case.

    ``pairs`` is what a client gives, or a `Record`, or None for no headers. Keys come as text.
    Raises `RecordHeaderError` with the key of one that does not fit; lenient reading leaves its
    bytes as they are.

    >>> read_headers([(b"a", b"12"), (b"b", b"12:30")], "connect", lenient=True)
    [('a', 12), ('b', b'12:30')]
    """
    return _named(convention).read(pairs or (), lenient=lenient)


def write_headers(
    pairs: Iterable[tuple[Key, Any]], convention: str | Convention
) -> list[RecordHeader]:
    """Write the record headers of one record by a convention.

    Raises `RecordHeaderError` for a value that reading would not give back; only floats may lose
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
        known = ", ".join(CONVENTIONS)
        raise FlexwireError(f"no convention {short(convention)}; there are {known}") from None
