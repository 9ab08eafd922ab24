"""All exceptions of flexwire, in one class hierarchy."""

from __future__ import annotations

import reprlib
from functools import partial
from typing import Any, ClassVar, Final, Self


def short(value: object) -> str:
    """Return a short text for a value in an error message, whatever the size of the value.

    >>> short(b"x" * 1000)
    "b'xxxxxxxxxx...xxxxxxxxxxxxx'"
    """
    try:
        return reprlib.repr(value)
    except Exception:  # noqa: BLE001 - an error in the repr of a foreign object must not hide the error
        # Python refuses to convert very large integers to text.
        return f"<{type(value).__name__}>"


FAILED: Final = "FLEXWIRE.FAILED"
ARGUMENT_INVALID: Final = "FLEXWIRE.ARGUMENT_INVALID"
EXTRA_MISSING: Final = "FLEXWIRE.EXTRA_MISSING"
SPEC_INVALID: Final = "FLEXWIRE.SPEC_INVALID"
MESSAGE_UNKNOWN: Final = "FLEXWIRE.MESSAGE_UNKNOWN"
MESSAGE_INVALID: Final = "FLEXWIRE.MESSAGE_INVALID"
RECORDS_DAMAGED: Final = "FLEXWIRE.RECORDS_DAMAGED"
FILE_UNREADABLE: Final = "FLEXWIRE.FILE_UNREADABLE"
LOG_DAMAGED: Final = "FLEXWIRE.LOG_DAMAGED"
DATA_LOST: Final = "FLEXWIRE.DATA_LOST"
STORAGE_FAILED: Final = "FLEXWIRE.STORAGE_FAILED"
OUT_OF_MEMORY: Final = "FLEXWIRE.OUT_OF_MEMORY"
DISK_FULL: Final = "FLEXWIRE.DISK_FULL"
WORKER_KILLED: Final = "FLEXWIRE.WORKER_KILLED"
CONDITIONS: Final = {
    ARGUMENT_INVALID: "an option, argument, column or topic is invalid",
    EXTRA_MISSING: "a package that one of flexwire's extras installs is missing",
    SPEC_INVALID: "a message spec in your own catalog is invalid",
    MESSAGE_UNKNOWN: "the catalog lacks a message, a version or a release",
    MESSAGE_INVALID: "bytes are not the expected message, or a value does not fit into the message",
    RECORDS_DAMAGED: "bytes are not a record batch, or a record header violates its convention",
    FILE_UNREADABLE: "an input is missing, or is neither a capture nor a log",
    LOG_DAMAGED: "a batch in a log is damaged, and the mode is `FAILFAST`",
    DATA_LOST: "a stream needs offsets or bytes that no longer exist: see `failOnDataLoss`",
    STORAGE_FAILED: "a file or an object store cannot be listed, read or written",
    OUT_OF_MEMORY: "Java or a Python worker ran out of memory",
    DISK_FULL: "the disk for the output or for Spark's working data is full",
    WORKER_KILLED: "the system killed a Python worker",
    FAILED: "any other error",
}
"""The conditions by which programs distinguish errors, and the meaning of each condition."""


class FlexwireError(Exception):
    """The base class of all errors that flexwire raises on purpose."""

    condition: str = FAILED
    """The condition of the error, for programs: one of the `CONDITIONS`."""
    _keywords: ClassVar[tuple[str, ...]] = ()
    """The keyword arguments of the class, which follow its ``reason``."""

    def under(self, condition: str) -> Self:
        """Override the condition of the error's class for this error, and return the error."""
        self.condition = condition
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        # Spark sends errors between processes, and by default the keyword arguments would be lost.
        if not self._keywords:
            return super().__reduce__()
        values = (getattr(self, name) for name in ("reason", *self._keywords))
        own = self.__dict__.get("condition")
        return (_rebuild, (type(self), *values), None if own is None else {"condition": own})


def _rebuild(kind: type[FlexwireError], reason: str, *values: object) -> FlexwireError:
    return kind(reason, **dict(zip(kind._keywords, values, strict=True)))  # noqa: SLF001 - the attribute belongs to flexwire's own class


class ArgumentError(FlexwireError, TypeError, ValueError):
    """An argument that is not valid for its parameter.

    The error is also a TypeError and a ValueError.

    For an invalid message or record, `EncodeError` is raised instead, because that error contains a
    path.
    """

    condition = ARGUMENT_INVALID


class MissingExtraError(FlexwireError, ModuleNotFoundError):
    """A missing package that one of flexwire's extras installs.

    The error is also a ModuleNotFoundError.

    ``subject`` is the function or command that needs the package, and ``name`` is the missing
    module.

    >>> print(MissingExtraError("flexwire.columnar", "numpy", "columnar"))
    flexwire.columnar needs numpy, which is not installed: pip install 'flexwire[columnar]'
    """

    condition = EXTRA_MISSING

    def __init__(self, subject: str, module: str, extra: str) -> None:
        self.subject = subject
        self.extra = extra
        reason = f"{subject} needs {module}, which is not installed: {remedy(extra)}"
        super().__init__(reason, name=module)

    def __reduce__(self) -> tuple[object, ...]:
        return (MissingExtraError, (self.subject, self.name, self.extra))


def remedy(extra: str) -> str:
    """Return the command that installs a missing flexwire extra.

    >>> remedy("tls")
    "pip install 'flexwire[tls]'"
    """
    return f"pip install 'flexwire[{extra}]'"


class SpecError(FlexwireError):
    """A message spec that cannot be read, with the position of the error.

    ``line`` and ``column`` are counted from 1, in characters.

    >>> str(SpecError("unknown key 'tagg'", source="Foo.json", line=3, column=7))
    "Foo.json:3:7: unknown key 'tagg'"
    """

    condition = SPEC_INVALID
    _keywords = ("source", "line", "column")

    def __init__(self, reason: str, *, source: str, line: int = 0, column: int = 0) -> None:
        self.reason = reason
        self.source = source
        self.line = line
        self.column = column
        where = f"{source}:{line}:{column}" if line else source
        super().__init__(f"{where}: {reason}")


class UnknownMessageError(FlexwireError):
    """A message, a version of a message, or a release that is not in the catalog."""

    condition = MESSAGE_UNKNOWN


class CodecError(FlexwireError):
    """The base of `DecodeError` and `EncodeError`, with message, version, field path and reason."""

    condition = MESSAGE_INVALID

    _keywords = ("path", "offset", "message", "version")

    def __init__(
        self,
        reason: str,
        *,
        path: str = "",
        offset: int | None = None,
        message: str = "",
        version: int | None = None,
    ) -> None:
        self.reason = reason
        self.path = path
        self.offset = offset
        self.message = message
        self.version = version
        super().__init__(reason)

    def within(self, message: str, version: int) -> CodecError:
        """Add the message and version to the error.

        Code that knows the message and version calls this method.
        """
        self.message = message
        self.version = version
        return self

    def __str__(self) -> str:
        where = self.path or "the message"
        if self.offset is not None:
            where += f", byte {self.offset}"
        version = "" if self.version is None else f" v{self.version}"
        subject = f"{self.message}{version} at " if self.message else "at "
        return f"{subject}{where}: {self.reason}"


class DecodeError(CodecError):
    """Bytes that are not the expected message.

    ``offset`` is counted from the start of the given data. ``path`` uses the field names of the
    JSON form.

    >>> error = DecodeError("5 bytes declared but 2 remain", path="topics[0].name", offset=9)
    >>> print(error.within("FetchRequest", 13))
    FetchRequest v13 at topics[0].name, byte 9: 5 bytes declared but 2 remain
    """


class EncodeError(CodecError):
    """A value that a message of this version, or a batch of this magic, cannot contain."""


class JsonFormError(CodecError):
    """JSON that is not the JSON form of the message in the requested version."""


class MissingFieldsError(JsonFormError):
    """A JSON form in which fields of the version are missing. ``path`` is the first missing field.

    >>> error = MissingFieldsError("missing, and mandatory in this version", path="clientId")
    >>> print(error.within("RequestHeader", 2))
    RequestHeader v2 at clientId: missing, and mandatory in this version
    """


class RecordError(FlexwireError):
    """Bytes that are not a record batch or message set.

    ``offset`` is counted from the first of these bytes.
    """

    condition = RECORDS_DAMAGED

    _keywords = ("offset",)

    def __init__(self, reason: str, *, offset: int = 0) -> None:
        self.reason = reason
        self.offset = offset
        super().__init__(f"record batch at byte {offset}: {reason}")


class RecordHeaderError(FlexwireError):
    """A record header, given as bytes or as a value to write, that violates its convention.

    >>> print(RecordHeaderError("an int has 4 bytes, got 3", key="retries", convention="kip-1308"))
    record header 'retries' does not fit kip-1308: an int has 4 bytes, got 3
    """

    condition = RECORDS_DAMAGED

    _keywords = ("key", "convention")

    def __init__(self, reason: str, *, key: str | bytes, convention: str) -> None:
        self.reason = reason
        self.key = key
        self.convention = convention
        super().__init__(f"record header {short(key)} does not fit {convention}: {reason}")


class FrameError(FlexwireError):
    """A frame that is neither a request nor a response of the Kafka protocol."""


class CaptureError(FlexwireError):
    """A capture file that cannot be read, with the file and the position of the error."""

    condition = FILE_UNREADABLE

    _keywords = ("source", "offset")

    def __init__(self, reason: str, *, source: str = "", offset: int | None = None) -> None:
        self.reason = reason
        self.source = source
        self.offset = offset
        where = source if offset is None else f"{source}, byte {offset}"
        super().__init__(f"{where}: {reason}" if where else reason)


class StorageError(FlexwireError):
    """A file or directory, local or in an object store, that cannot be listed, read or written.

    ``url`` contains no passwords. ``tried`` is a verb for the failed action.

    >>> print(StorageError("no answer after 120 s", url="s3://bucket/day.pcap", tried="read"))
    s3://bucket/day.pcap: cannot read: no answer after 120 s
    """

    condition = STORAGE_FAILED

    _keywords = ("url", "tried")

    def __init__(self, reason: str, *, url: str, tried: str = "") -> None:
        self.reason = reason
        self.url = url
        self.tried = tried
        super().__init__(f"{url}: cannot {tried}: {reason}" if tried else f"{url}: {reason}")


class JavaError(FlexwireError):
    """No Java that Spark can use was found, or only one that is too old."""


class AnalysisError(FlexwireError):
    """An analysis that Spark could not finish, with the stage and the reason."""


class TapError(FlexwireError):
    """A tap that cannot start: an argument is not an address, or the tap cannot listen there."""


class TlsError(FlexwireError):
    """A certificate, key or authority file that prevents TLS from starting, with the reason."""


class CallError(FlexwireError):
    """A broker that cannot be reached, does not respond, or does not use Kafka's protocol."""


class ConnectionEndedError(CallError):
    """A broker that ended the connection before its answer was complete.

    ``held`` is the number of bytes of the answer that were received.
    """

    _keywords = ("held",)

    def __init__(self, reason: str, *, held: int = 0) -> None:
        self.reason = reason
        self.held = held
        super().__init__(reason)


class NoAnswerError(CallError):
    """A broker that sent no complete answer within the time limit."""


class UnreadableFrameError(CallError):
    """A broker whose bytes do not begin with the length of a frame."""


class VersionNotOfferedError(CallError):
    """A request version that the broker does not offer. The error lists the offered versions."""


class NoRouteError(CallError):
    """A broker that does not know which broker is responsible for the request.

    ``code`` is the error code in the broker's answer.
    """

    _keywords = ("code",)

    def __init__(self, reason: str, *, code: int) -> None:
        self.reason = reason
        self.code = code
        super().__init__(reason)


class LoginError(CallError):
    """A broker that refuses the login, or cannot prove that it knows the secret."""


class WriteRefusedError(FlexwireError):
    """A request that may change something on a broker, and that the caller did not permit."""


class ConformanceJournalError(FlexwireError):
    """A journal of a conformance run that cannot be read or written, or belongs to another run."""


class ClientConfigError(FlexwireError):
    """A client's properties file, or a value in it, that makes a connection impossible."""


class VectorsError(FlexwireError):
    """A vector package that cannot be read, or a codec command that cannot be started."""


# Pickled errors of earlier releases use these names, which will be removed in the next release.
_rebuild_spec: Final = partial(_rebuild, SpecError)
_rebuild_record: Final = partial(_rebuild, RecordError)
_rebuild_record_header: Final = partial(_rebuild, RecordHeaderError)
_rebuild_capture: Final = partial(_rebuild, CaptureError)
_rebuild_storage: Final = partial(_rebuild, StorageError)
