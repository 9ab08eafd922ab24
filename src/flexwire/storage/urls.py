"""What a path or URL means: a place on this machine, or one in a store that a library knows.

A URL carries no password here: keys come from the environment, as each library reads it. What
looks like one is refused, and no message repeats it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from flexwire.errors import StorageError

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
"""Each scheme, and the extra of flexwire that brings what it needs."""

_WITHOUT_AUTHORITY = {"hdfs", "memory"}
# A colon without a slash may stand in any file's name.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//?)")
# What a library says may hold an address of its own, from the environment.
_PASSWORD = re.compile(r"://[^\s@\"']*:[^\s@\"']*@")
_SECRET = re.compile(
    r"([?&][\w.-]*(?:sig|signature|token|key|secret|credential)[\w.-]*=)[^&\s\"']+", re.IGNORECASE
)
_WITHHELD = "…"


def scheme_of(url: str) -> str:
    """The scheme, in small letters; empty for a path, which a ``file:`` URL is too.

    Raises `StorageError` for a URL of a scheme that is not in `STORES`, and for one that
    carries a password or does not name a bucket.

    >>> scheme_of("captures/monday.pcap"), scheme_of("s3://bucket/captures")
    ('', 's3')
    """
    match = _URL.match(url)
    scheme = match[1].lower() if match else ""
    if not match or scheme == "file" or (scheme not in STORES and match[2] == "/"):
        return ""
    if scheme not in STORES:
        known = ", ".join(f"{one}://" for one in STORES)
        raise _refused(url, f"expected a path, file://, {known}")
    if match[2] == "/":
        raise _refused(url, f"expected two slashes after the scheme: {scheme}://")
    rest = url[match.end() :]
    authority = rest.split("/", 1)[0]
    if ":" in authority and not (scheme == "hdfs" and _is_port(authority)):
        reason = "got a key or password in the URL; set them in the environment instead"
        raise _refused(url, reason)
    if not (authority or (scheme in _WITHOUT_AUTHORITY and rest.strip("/"))):
        raise _refused(url, "expected a bucket after the scheme")
    return scheme


def local_path(url: str) -> Path:
    """The path of a URL whose scheme is empty; of ``file:`` as such URLs are written.

    >>> local_path("file:///srv/captures/one%20day.pcap").as_posix()
    '/srv/captures/one day.pcap'
    """
    match = _URL.match(url)
    if not match or match[1].lower() != "file":
        return Path(url)
    host, _, path = url[match.end() :].partition("/") if match[2] == "//" else ("", "", url[6:])
    if host not in {"", "localhost"}:
        raise _refused(url, f"expected file:/// and a path here, got the machine {host}")
    return Path(unquote(f"/{path}"))


def shown(url: str) -> str:
    """A URL for a message: without the password in it, or whatever looks like one.

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
    """The same for text of a library, which may name addresses anywhere."""
    return _SECRET.sub(rf"\1{_WITHHELD}", _PASSWORD.sub(f"://{_WITHHELD}@", text))


def _is_port(authority: str) -> bool:
    return authority.rpartition(":")[2].isdecimal()


def _refused(url: str, reason: str) -> StorageError:
    return StorageError(reason, url=shown(url))
