"""The library that each scheme is read and written by, opened once in each process.

fsspec's, not pyarrow's: these send a file as one request, or in parts that are aborted when one of
them fails, where an output stream of pyarrow has no abort and publishes what was written before
the error; and their listings say the ETag or generation, which pyarrow's do not. Where a library
wants settings (keys, region, another endpoint), it reads them from the environment by itself.
"""

from __future__ import annotations

import importlib
import logging
import os
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from flexwire.errors import FlexwireError, StorageError, remedy
from flexwire.storage.urls import STORES, scheme_of, shown, withheld

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER_SECONDS: Final = 120.0
"""How long one request for a piece or a page may take, with the library's own retries."""

RETRIES: Final = 3
"""How often a request is made, with the tries of the library below inside each."""

_REASON_CHARACTERS = 300


class Door:
    """What one library gives, and the name that it knows a URL by."""

    __slots__ = ("files", "kind")

    def __init__(self, files: Any, kind: str) -> None:
        self.files = files
        self.kind = kind

    @property
    def renames(self) -> bool:
        """Whether a file must be written beside its place first: it shows while it grows."""
        return self.kind == "hdfs"

    def key(self, url: str) -> str:
        """The name of a URL in this library: bucket and key, without the scheme."""
        return str(self.files._strip_protocol(url))  # noqa: SLF001 - every fsspec file system has it

    def wait(self, coroutine: Any, *arguments: Any) -> Any:
        """The result of a coroutine of the library, in its own loop."""
        from fsspec.asyn import sync  # noqa: PLC0415 - this room is imported where fsspec is not

        return sync(self.files.loop, coroutine, *arguments, timeout=ANSWER_SECONDS)

    @property
    def limit(self) -> dict[str, float]:
        """What ends a call of this library that nobody answers."""
        return {"timeout": ANSWER_SECONDS} if getattr(self.files, "async_impl", False) else {}


def door(url: str) -> Door:
    """The door of a URL. `StorageError` where its library is missing, or cannot start."""
    scheme = scheme_of(url)
    with reported(url, "open"):
        try:
            return _opened(scheme, _authority(url), os.getpid())
        except ImportError:
            reason = f"{scheme}:// needs more packages: {remedy(STORES[scheme])}"
            raise StorageError(reason, url=shown(url)) from None


@contextmanager
def reported(url: str, tried: str) -> Iterator[None]:
    """What a library raises, as a `StorageError` that says what was ``tried`` on ``url``."""
    try:
        yield
    except FlexwireError:
        raise
    except Exception as error:  # noqa: BLE001 - each library raises trees of its own
        # Its traceback may hold what is withheld.
        raise StorageError(reason_of(error), url=shown(url), tried=tried) from None


def reason_of(error: Exception) -> str:
    """Why a library or the system refused, in one line, without credentials."""
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer in {ANSWER_SECONDS:g} s"
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    else:
        text = str(error).strip() or type(error).__name__
    text = withheld(text.splitlines()[0])
    return text if len(text) <= _REASON_CHARACTERS else f"{text[:_REASON_CHARACTERS]}…"


@lru_cache(maxsize=64)
def _opened(scheme: str, authority: str, process: int) -> Door:  # noqa: ARG001 - a fork opens its own
    kind = _library(scheme)
    # gcsfs logs a traceback for each error, which without any handler goes to the terminal.
    logging.getLogger(kind.__module__.partition(".")[0]).addHandler(logging.NullHandler())
    settings = kind._get_kwargs_from_urls(f"{scheme}://{authority}/")  # noqa: SLF001 - fsspec's own way
    # A cached listing would hide what others write, and a shared instance would have one.
    files = kind(**settings, use_listings_cache=False, skip_instance_cache=True)
    if scheme in {"s3", "s3a"}:
        # By default it asks 5 times, inside 5 times of its own, inside botocore's 5.
        files.retries = RETRIES
    return Door(files, {"s3a": "s3", "gcs": "gs", "abfss": "az", "abfs": "az"}.get(scheme, scheme))


def _library(scheme: str) -> Any:
    if scheme in {"gs", "gcs"}:
        # Not the class that gcsfs gives by default: that asks Google's control plane about each
        # bucket, beside any endpoint that is set, and lets a zonal bucket's files appear in parts.
        return importlib.import_module("gcsfs.core").GCSFileSystem
    return importlib.import_module("fsspec").get_filesystem_class(scheme)


def _authority(url: str) -> str:
    # Of a memory URL this is a part of the path, and of the others the bucket.
    return url.partition("://")[2].split("/", 1)[0]
