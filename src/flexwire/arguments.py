"""Check the types of the arguments of public functions, and create the error messages.

Values inside a message or a record are checked where they are encoded, because that code knows
their path.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flexwire.errors import ArgumentError, short

if TYPE_CHECKING:
    from collections.abc import Collection

T = TypeVar("T")
_INT64_BITS = 64
# The command line and the Python function for an analysis both use these constants. Neither imports
# the other.
DEFAULT_MEMORY: Final = "2g"
DEFAULT_ZONE: Final = "UTC"
PARQUET: Final = "parquet"
DELTA: Final = "delta"
ICEBERG: Final = "iceberg"


def refuse(name: str, expected: str, got: object) -> ArgumentError:
    """Return the error for an argument that is not valid for its parameter.

    >>> print(refuse("version", "an int", "12"))
    version: expected an int, got '12'
    """
    return ArgumentError(f"{name}: expected {expected}, got {short(got)}")


def to_int(value: object, name: str, *, least: int | None = None, bits: int = _INT64_BITS) -> int:
    """Return an int for an int or an object with ``__index__``, but not for a boolean.

    >>> to_int(7, "version")
    7
    >>> to_int(-(1 << 31) - 1, "offset", bits=32)
    Traceback (most recent call last):
    flexwire.errors.ArgumentError: offset: expected a 32-bit int, got -2147483649
    """
    low = -(1 << (bits - 1)) if least is None else least
    number = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = int(value)
    elif not isinstance(value, bool) and hasattr(value, "__index__"):
        # A NumPy array has this method too, but is not a number.
        with suppress(TypeError):
            number = operator.index(value)
    if number is None:
        raise refuse(name, "an int", value)
    if not low <= number < 1 << (bits - 1):
        expected = f"a {bits}-bit int" if least is None else f"an int of at least {least}"
        raise refuse(name, expected, value)
    return number


def to_version(value: object) -> int:
    """Return the argument as a version. The catalog decides whether a message has this version."""
    return to_int(value, "version", bits=32)


def to_bytes(value: object, name: str = "data") -> bytes:
    """Return the bytes of a bytes-like object in memory order."""
    return value if type(value) is bytes else to_buffer(value, name).tobytes()


def to_buffer(value: object, name: str = "data") -> memoryview:
    """Return a bytes-like object as contiguous bytes, copied only if it is not contiguous.

    A NumPy number is bytes-like too, but is refused, because a caller who passes a number does not
    mean the number's bytes.
    """
    try:
        view = memoryview(value)  # type: ignore[arg-type]  # an object without a buffer is refused here
        if view.ndim and "O" not in view.format:
            contiguous = view.c_contiguous and view.nbytes
            return view.cast("B") if contiguous else memoryview(view.tobytes())
    except (TypeError, ValueError, BufferError):
        pass
    raise refuse(name, "bytes or a buffer", value)


def to_list(value: object, name: str, what: str) -> list[Any]:
    """Return the items of an iterable as a list. Strings, bytes and mappings are refused.

    ``what`` is the name of the elements in the error message.
    """
    if isinstance(value, Iterable) and not isinstance(
        value, str | bytes | bytearray | memoryview | Mapping
    ):
        return list(value)
    raise refuse(name, what, value)


def to_text(value: object, name: str) -> str:
    """Return the argument if it is a string."""
    if not isinstance(value, str):
        raise refuse(name, "a str", value)
    return value


def to_flag(value: object, name: str) -> bool:
    """Return the argument if it is a boolean. Other truthy or falsy values are refused."""
    if not isinstance(value, bool):
        raise refuse(name, "True or False", value)
    return value


def to_kind(value: object, name: str, kind: type[T]) -> T:
    """Return the argument if it is an instance of a class, such as an enum."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise refuse(name, f"{article} {kind.__name__}", value)
    return value


def iso_time(text: str) -> datetime | None:
    """Return the time that an ISO 8601 text represents, or None for any other text.

    The default zone is UTC.

    >>> iso_time("2026-11-22T10:00")
    datetime.datetime(2026, 11, 22, 10, 0, tzinfo=datetime.timezone.utc)
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def to_choice(value: object, name: str, choices: Collection[str]) -> Any:
    """Return the argument if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise refuse(name, " or ".join(map(repr, choices)), value)
    return value
