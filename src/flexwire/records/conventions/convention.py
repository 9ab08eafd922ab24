"""The base of all conventions for the values of record headers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from flexwire.errors import RecordHeaderError, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.records.record import RecordHeader

# A key is text for Kafka's clients; only lenient reading returns bytes, for invalid UTF-8.
Key: TypeAlias = str | bytes
RawHeader: TypeAlias = tuple[Key, bytes | None]

# Deeper nesting in a record header is an attack on its readers, not data.
MAX_DEPTH = 100


class HeaderEvidence(NamedTuple):
    """The evidence of one record header for or against a convention.

    ``weight`` is 2 if it names the convention or has a form that is rare by chance, 1 if it fits,
    and -1 if it does not.
    """

    key: Key
    weight: int
    reason: str


class BulkCondition(NamedTuple):
    """A condition by which Spark SQL judges many values, for the answer about record headers.

    ``condition`` is an expression of Spark SQL over the columns ``value``, the bytes, and ``size``,
    their number. It is true if the value can be read by the convention. ``meaning`` says the same
    in a few words.
    """

    condition: str
    meaning: str


class Convention(ABC):
    """How some software writes the values of record headers, under the convention's name.

    The registry finds a class in a file of this folder by itself (`registry`). It is created
    without arguments, and has everything that Python and Spark SQL need. A null value is None in
    every convention. Order and duplicates are kept. Raises `RecordHeaderError` for a value that
    does not fit.
    """

    name: ClassVar[str]
    rank: ClassVar[int]
    """Its place among all conventions; the most specific convention has the lowest."""
    in_bulk: ClassVar[BulkCondition | None] = None
    """None if a value alone does not show that it follows the convention."""
    marker: ClassVar[str | None] = None
    """The key of a record header that the software writes beside the others, if it writes one.

    In bulk a value follows the convention only if its record has this header.
    """

    def read(self, headers: Iterable[RawHeader], *, lenient: bool = False) -> list[tuple[Key, Any]]:
        """Read the record headers of one record; lenient reading keeps unfit values as bytes."""
        return [self._read(key, data, lenient=lenient) for key, data in headers]

    def write(self, headers: Iterable[tuple[Key, Any]]) -> list[RecordHeader]:
        """Write the record headers of one record, in the form that `read` returns.

        A value that `read` would not return again raises `RecordHeaderError` at once.
        """
        return [self._write(key, value) for key, value in headers]

    @abstractmethod
    def read_value(self, key: str, data: bytes) -> Any:
        """Read one value that is not null."""

    @abstractmethod
    def write_value(self, key: str, value: Any) -> bytes:
        """Write one value that is not None."""

    def for_record(self, headers: Sequence[RawHeader]) -> Convention:  # noqa: ARG002 - some need them
        """Return the convention for these record headers, which may name types of others."""
        return self

    def evidence(self, key: str, data: bytes) -> HeaderEvidence | None:
        """Return the evidence of one record header for or against the convention, if any."""
        try:
            value = self.read_value(key, data)
        except RecordHeaderError as error:
            return HeaderEvidence(key, -1, error.reason)
        return self.sign(key, data, value)

    def sign(self, key: str, data: bytes, value: Any) -> HeaderEvidence | None:  # noqa: ARG002 - some need them
        """Return the evidence of a record header that was read as ``value``, if any."""
        return None

    def misfit(self, key: Key, reason: str) -> RecordHeaderError:
        """Return the error for a record header of this convention."""
        return RecordHeaderError(reason, key=key, convention=self.name)

    def key_text(self, key: Key) -> str:
        """Return a key as text, as Kafka's clients do."""
        try:
            return key if isinstance(key, str) else bytes(key).decode()
        except UnicodeDecodeError as error:
            raise self.misfit(key, f"the key is not UTF-8: {error.reason}") from None

    def raw(self, key: Key, data: Any) -> bytes:
        """Return the bytes of a value that is not null."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise self.misfit(key, f"expected bytes, got {short(data)}")
        return bytes(data)

    def text(self, key: str, data: bytes) -> str:
        """Return the text of a value."""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            where = f"byte {error.start}"
            raise self.misfit(key, f"not UTF-8: {error.reason} at {where}") from None

    def encoded(self, key: str, text: str) -> bytes:
        """Return a text as a value."""
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise self.misfit(key, f"not writable as UTF-8: {error.reason}") from None

    def _read(self, key: Key, data: bytes | None, *, lenient: bool) -> tuple[Key, Any]:
        try:
            key = self.key_text(key)
            return key, None if data is None else self.read_value(key, self.raw(key, data))
        except RecordHeaderError:
            if not lenient:
                raise
            return key, data

    def _write(self, key: Key, value: Any) -> RecordHeader:
        key = self.key_text(key)
        return self.encoded(key, key), None if value is None else self.write_value(key, value)
