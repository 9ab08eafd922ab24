"""Finds, in the user's program, the condition of an error that Spark's Python workers raised.

Java receives a Python worker's error as a string, so the error's class and attributes are lost. The
condition that Spark shows is Spark's own: ``PYTHON_EXCEPTION``, ``PYTHON_DATA_SOURCE_ERROR`` or
``STREAM_FAILED``. Python appends the notes of an error to its traceback (PEP 678). The condition is
therefore added as a note, such as ``[FLEXWIRE.DATA_LOST]``, and the error's own text remains
unchanged. `flexwire.tasks.carrying_condition` adds the note.
"""

from __future__ import annotations

import re
from typing import Any, Final

from flexwire import errors
from flexwire.errors import FlexwireError

_NOTE: Final = re.compile(r"^\[(FLEXWIRE\.[A-Z_]+)\]\s*$", re.MULTILINE)
# The line with the class, which follows the stack in a traceback. Each error class defines a
# condition.
_CLASS: Final = re.compile(r"^flexwire\.errors\.(\w+)(?=:|$)", re.MULTILINE)


def condition_of(error: BaseException) -> str | None:
    """Return the condition of a flexwire error, or of a Spark error that a flexwire error caused.

    The condition is one of `flexwire.errors.CONDITIONS`, or None if the cause is not a flexwire
    error.

    >>> from flexwire.errors import UnknownMessageError
    >>> condition_of(UnknownMessageError("no message 'Fetsch'"))
    'FLEXWIRE.MESSAGE_UNKNOWN'
    """
    if isinstance(error, FlexwireError):
        return error.condition
    return condition_in("\n".join([str(error), *(text for _, text in java_causes(error))]))


def condition_in(text: str) -> str | None:
    """Return the last condition in a string with tracebacks, or None."""
    found = [(match.start(), match[1]) for match in _NOTE.finditer(text)]
    for match in _CLASS.finditer(text):
        kind = getattr(errors, match[1], None)
        if isinstance(kind, type) and issubclass(kind, FlexwireError):
            found.append((match.start(), kind.condition))
    # The note follows the line with the class.
    return max(found)[1] if found else None


def without_notes(text: str) -> str:
    """Return a string without the notes that contain a condition."""
    return _NOTE.sub("", text)


def java_causes(error: BaseException) -> list[tuple[str, str]]:
    """Return the class and message of the Java exception behind an error, and of its causes."""
    from py4j.protocol import (  # noqa: PLC0415 - importing this package must not import PySpark
        Py4JError,
        Py4JJavaError,
    )

    if isinstance(error, Py4JJavaError):
        java: Any = error.java_exception
    else:
        # PySpark's exceptions keep the original Java exception only in this attribute.
        java = getattr(error, "_origin", None)
    causes: list[tuple[str, str]] = []
    try:
        while java is not None:
            causes.append((java.getClass().getName(), java.getMessage() or ""))
            java = java.getCause()
    except (Py4JError, ConnectionError):
        # Java has ended in the meantime, so the causes found so far are used.
        return causes
    return causes
