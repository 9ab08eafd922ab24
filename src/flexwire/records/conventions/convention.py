"""The base class of all conventions for the values of record headers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from flexwire.errors import RecordHeaderError, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.records.record import RecordHeader

# For Kafka's clients a key is text. Only lenient reading returns bytes, for invalid UTF-8.
Key: TypeAlias = str | bytes
RawHeader: TypeAlias = tuple[Key, bytes | None]

# Deeper nesting in a record header is an attack on its readers.
MAX_DEPTH = 100


class HeaderEvidence(NamedTuple):
    """The evidence of one record header for or against a convention.

    ``weight`` is 2 if the header names the convention or has a form that rarely occurs by chance.
    ``weight`` is 1 if the header is valid, and -1 if the header is invalid.
    """

    key: Key
    weight: int
    reason: str


class BulkCondition(NamedTuple):
    """A condition by which Spark SQL judges many values, for the answer about record headers.

    ``condition`` is a Spark SQL expression over two columns: ``value`` contains the bytes, and
    ``size`` their number. The condition is true if the convention can read the value. ``meaning``
    describes the condition in a few words.
    """

    condition: str
    meaning: str


class Convention(ABC):
    """A named way in which some software writes the values of record headers.

    The registry finds classes in the files of this folder (`registry`). A class is instantiated
    without arguments, and defines everything that Python and Spark SQL need. In every convention, a
    null value is None. Order and duplicates are kept. Raises `RecordHeaderError` for an invalid
    value.
    """

    name: ClassVar[str]
    rank: ClassVar[int]
    """The convention's place among all conventions. The most specific convention has the lowest
    rank.
    """
    in_bulk: ClassVar[BulkCondition | None] = None
    """The condition for Spark SQL, or None if a single value cannot show that it follows the
    convention.
    """
    marker: ClassVar[str | None] = None
    """The key of an additional record header that the software writes, if any.

    For many values together, a value follows the convention only if its record has this header.
    """

    def read(self, headers: Iterable[RawHeader], *, lenient: bool = False) -> list[tuple[Key, Any]]:
        """Read one record's headers. Lenient reading keeps the bytes of invalid values."""
        return [self._read(key, data, lenient=lenient) for key, data in headers]

    def write(self, headers: Iterable[tuple[Key, Any]]) -> list[RecordHeader]:
        """Write one record's headers, given in the form that `read` returns.

        Raises `RecordHeaderError` for a value that `read` would not return again.
        """
        return [self._write(key, value) for key, value in headers]

    @abstractmethod
    def read_value(self, key: str, data: bytes) -> Any:
        """Read one value that is not null."""

    @abstractmethod
    def write_value(self, key: str, value: Any) -> bytes:
        """Write one value that is not None."""

    def for_record(self, headers: Sequence[RawHeader]) -> Convention:  # noqa: ARG002 - some classes use this argument
        """Return the convention for these record headers.

        Some of them may specify the types of other headers.
        """
        return self

    def evidence(self, key: str, data: bytes) -> HeaderEvidence | None:
        """Return the evidence, if any, of one record header for or against the convention."""
        try:
            value = self.read_value(key, data)
        except RecordHeaderError as error:
            return HeaderEvidence(key, -1, error.reason)
        return self.sign(key, data, value)

    def sign(self, key: str, data: bytes, value: Any) -> HeaderEvidence | None:  # noqa: ARG002 - some classes use this argument
        """Return the evidence, if any, from a record header whose value was read."""
        return None

    def misfit(self, key: Key, reason: str) -> RecordHeaderError:
        """Return the error for a record header that is invalid in this convention."""
        return RecordHeaderError(reason, key=key, convention=self.name)

    def key_text(self, key: Key) -> str:
        """Return a key as a string, as Kafka's clients do."""
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
        """Return the bytes of a value that is a string."""
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise self.misfit(key, f"cannot be encoded as UTF-8: {error.reason}") from None

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
