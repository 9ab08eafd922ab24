"""The libraries for the schemes of URLs, each opened once per process.

The libraries are those of fsspec, not pyarrow. The fsspec libraries send a file as one request, or
in parts that are aborted if one of them fails. An output stream of pyarrow cannot be aborted, and
publishes the bytes that were written before an error. fsspec's listings also contain each file's
ETag or generation, which pyarrow's listings lack. If a library needs settings (keys, a region,
another endpoint), it reads them from the environment itself.

Here, URLs never contain passwords. Keys come from the environment, which each library reads in its
own way. A URL that seems to contain a password is refused, and no message repeats it.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from flexwire.errors import FlexwireError, StorageError, remedy

if TYPE_CHECKING:
    from collections.abc import Iterator


STORES: Final = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
    "az": "azure",
    "hdfs": "spark",
    "memory": "spark",
}
"""The schemes, each with the flexwire extra that installs its library."""

_WITHOUT_AUTHORITY = {"hdfs", "memory"}
# A file name may contain a colon that is not followed by a slash.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//?)")
# A library's error may contain an address that comes from the environment.
_PASSWORD = re.compile(r"://[^\s@\"']*:[^\s@\"']*@")
_SECRET = re.compile(
    r"([?&][\w.-]*(?:sig|signature|token|key|secret|credential)[\w.-]*=)[^&\s\"']+", re.IGNORECASE
)
_WITHHELD = "…"


def scheme_of(url: str) -> str:
    """Return the scheme in lower case. The scheme is empty for a path and for a ``file:`` URL.

    Raises `StorageError` for a URL whose scheme is not in `STORES`, or that contains a password or
    no bucket.

    >>> scheme_of("captures/monday.pcap"), scheme_of("s3://bucket/captures")
    ('', 's3')
    """
    match = _URL.match(url)
    scheme = match[1].lower() if match else ""
    if not match or scheme == "file" or (scheme not in STORES and match[2] == "/"):
        return ""
    if scheme not in STORES:
        schemes = ", ".join(f"{scheme_name}://" for scheme_name in STORES)
        raise _refused(url, f"expected a path, file://, {schemes}")
    if match[2] == "/":
        raise _refused(url, f"expected two slashes after the scheme: {scheme}://")
    rest = url[match.end() :]
    authority = rest.split("/", 1)[0]
    if ":" in authority and not (scheme == "hdfs" and _is_port(authority)):
        reason = "the URL contains a key or password; set it in the environment instead"
        raise _refused(url, reason)
    if not (authority or (scheme in _WITHOUT_AUTHORITY and rest.strip("/"))):
        raise _refused(url, "expected a bucket after the scheme")
    return scheme


def local_path(url: str) -> Path:
    """Return the path of a URL whose scheme is empty, which includes ``file:`` URLs.

    >>> local_path("file:///srv/captures/one%20day.pcap").as_posix()
    '/srv/captures/one day.pcap'
    """
    match = _URL.match(url)
    if not match or match[1].lower() != "file":
        return Path(url)
    host, _, path = url[match.end() :].partition("/") if match[2] == "//" else ("", "", url[6:])
    if host not in {"", "localhost"}:
        raise _refused(url, f"expected file:/// and a local path, got the host {host}")
    return Path(unquote(f"/{path}"))


def shown(url: str) -> str:
    """Return a URL for a message, without its password or anything that looks like a password.

    >>> shown("s3://key:secret/with/slashes@bucket/captures")
    's3://…@bucket/captures'
    """
    head, separator, rest = url.partition("://")
    if separator and ":" in rest.split("/", 1)[0]:
        _, at, place = rest.rpartition("@")
        if at:
            rest = f"{_WITHHELD}@{place}"
        elif not _is_port(rest.split("/", 1)[0]):
            rest = _WITHHELD
    return _SECRET.sub(rf"\1{_WITHHELD}", f"{head}{separator}{rest}")


def withheld(text: str) -> str:
    """Return a library's text without passwords. The text may contain addresses."""
    return _SECRET.sub(rf"\1{_WITHHELD}", _PASSWORD.sub(f"://{_WITHHELD}@", text))


def _is_port(authority: str) -> bool:
    return authority.rpartition(":")[2].isdecimal()


def _refused(url: str, reason: str) -> StorageError:
    return StorageError(reason, url=shown(url))


ANSWER_SECONDS: Final = 120.0
"""The time limit for requesting a piece or a page, including the library's own retries, in seconds.
"""

RETRIES: Final = 3
"""The number of attempts for each request.

The library makes its own retries in each attempt.
"""

_REASON_CHARACTERS = 300


class FileStore:
    """The file system of one library, and the library's name for a URL."""

    __slots__ = ("files", "kind")

    def __init__(self, files: Any, kind: str) -> None:
        self.files = files
        self.kind = kind

    @property
    def renames(self) -> bool:
        """True if a file must first be written under another name, because readers see it grow."""
        return self.kind == "hdfs"

    def key(self, url: str) -> str:
        """Return the name of a URL in this library: bucket and key, without the scheme."""
        return str(self.files._strip_protocol(url))  # noqa: SLF001 - every file system of fsspec has this method

    def wait(self, coroutine: Any, *arguments: Any) -> Any:
        """Run a coroutine of the library in the library's own event loop, and return the result."""
        from fsspec.asyn import sync  # noqa: PLC0415 - this package is also imported without fsspec

        return sync(self.files.loop, coroutine, *arguments, timeout=ANSWER_SECONDS)

    @property
    def limit(self) -> dict[str, float]:
        """This library's timeouts for a call that receives no response."""
        return {"timeout": ANSWER_SECONDS} if getattr(self.files, "async_impl", False) else {}


def open_store(url: str) -> FileStore:
    """Return the store of a URL.

    Raises `StorageError` if its library is missing or cannot start.
    """
    scheme = scheme_of(url)
    with report_failures(url, "open"):
        try:
            return _open_library(scheme, _authority(url), os.getpid())
        except ImportError:
            reason = f"{scheme}:// needs more packages: {remedy(STORES[scheme])}"
            raise StorageError(reason, url=shown(url)) from None


@contextmanager
def report_failures(url: str, tried: str) -> Iterator[None]:
    """Raise a library's errors as `StorageError`, with the action that was ``tried`` on ``url``."""
    try:
        yield
    except FlexwireError:
        raise
    except Exception as error:  # noqa: BLE001 - each library raises its own kinds of errors
        # The traceback of the error may contain text that must be withheld.
        raise StorageError(reason_of(error), url=shown(url), tried=tried) from None


def reason_of(error: Exception) -> str:
    """Return in one line, without credentials, why a library or the system refused an action."""
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer within {ANSWER_SECONDS:g} s"
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    else:
        text = str(error).strip() or type(error).__name__
    text = withheld(text.splitlines()[0])
    return text if len(text) <= _REASON_CHARACTERS else f"{text[:_REASON_CHARACTERS]}…"


@lru_cache(maxsize=64)
def _open_library(scheme: str, authority: str, process: int) -> FileStore:  # noqa: ARG001 - a forked process opens its own library
    kind = _library(scheme)
    # gcsfs logs a traceback for each error, which would appear on the terminal if there were no
    # handler.
    logging.getLogger(kind.__module__.partition(".")[0]).addHandler(logging.NullHandler())
    settings = kind._get_kwargs_from_urls(f"{scheme}://{authority}/")  # noqa: SLF001 - fsspec itself parses URLs with this function
    # A cached listing would hide the writes of other processes, and a shared instance would have a
    # cache.
    files = kind(**settings, use_listings_cache=False, skip_instance_cache=True)
    if scheme in {"s3", "s3a"}:
        # By default, the library makes 5 attempts. Each consists of 5 attempts of another kind, for
        # each of which botocore makes 5 attempts.
        files.retries = RETRIES
    return FileStore(
        files, {"s3a": "s3", "gcs": "gs", "abfss": "az", "abfs": "az"}.get(scheme, scheme)
    )


def _library(scheme: str) -> Any:
    if scheme in {"gs", "gcs"}:
        # This is not gcsfs's default class. That class asks Google's control plane about each
        # bucket, even if another endpoint is configured, and lets files of zonal buckets appear in
        # parts.
        return importlib.import_module("gcsfs.core").GCSFileSystem
    return importlib.import_module("fsspec").get_filesystem_class(scheme)


def _authority(url: str) -> str:
    # In a memory URL, this is a part of the path. In other URLs, it is the bucket.
    return url.partition("://")[2].split("/", 1)[0]
