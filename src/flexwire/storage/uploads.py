"""Write whole files to a store: in one request, or in parts that are completed at the end.

The output streams of libraries are never used, because an abandoned stream publishes its bytes.
"""

from __future__ import annotations

import errno
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from flexwire.storage.filesystems import FileStore

PART_BYTES: Final = 32 << 20
"""A file of up to twice this size is sent in one request. For a larger file, two parts are sent at
the same time.
"""

_PARTS_AT_ONCE = 2


def put_file(store: FileStore, key: str, file: Path) -> None:
    """Copy a local file to ``key``."""
    # The libraries misinterpret or ignore a missing file.
    with file.open("rb"):
        pass
    if store.renames:
        _by_renaming(store, key, lambda unfinished: store.files.put_file(str(file), unfinished))
    elif store.kind == "gs" and file.stat().st_size <= PART_BYTES:
        put_bytes(store, key, file.read_bytes())
    else:
        store.files.put_file(str(file), key, **_parts(store))


def put_bytes(store: FileStore, key: str, data: bytes) -> None:
    """Write ``key`` with this content."""
    if store.renames:
        _by_renaming(store, key, lambda unfinished: store.files.pipe_file(unfinished, data))
    else:
        store.files.pipe_file(key, data, **_parts(store, len(data)))


def create_bytes(store: FileStore, key: str, data: bytes) -> bool:
    """Write ``key`` unless it exists; return whether this call wrote it.

    S3, Google Cloud Storage and Azure decide in one request which of two calls is first. HDFS, and
    an S3 store without ``If-None-Match``, are only queried before the write. Returns False if the
    file exists after a failed write, even if that write created it.
    """
    if is_file(store, key):
        return False
    if store.renames:
        put_bytes(store, key, data)
        return True
    try:
        store.files.pipe_file(key, data, mode="create", **_parts(store, len(data)))
    except Exception as error:
        # Each library raises a different error if the file exists.
        if is_file(store, key):
            return False
        if not (isinstance(error, OSError) and error.errno == errno.ENOSYS):
            raise
        put_bytes(store, key, data)
    return True


def is_file(store: FileStore, key: str) -> bool:
    """Return whether there is a file with this name."""
    with suppress(FileNotFoundError):
        return bool(store.files.info(key, **store.limit)["type"] == "file")
    return False


def remove(store: FileStore, keys: Sequence[str]) -> None:
    """Remove up to a thousand files. A missing file is not an error."""
    if store.kind == "s3":
        bucket = keys[0].partition("/")[0]
        objects = [{"Key": key.partition("/")[2]} for key in keys]
        answer = store.files.call_s3(
            "delete_objects", Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
        )
        for error in answer.get("Errors", ()):
            raise OSError(f"{error.get('Key')}: {error.get('Message')}")
        return
    for key in keys:
        with suppress(FileNotFoundError):
            store.files.rm_file(key)


def sweep(store: FileStore, key: str, before: datetime) -> int:
    """Abort the unfinished uploads to S3 below ``key`` that began before a time."""
    if store.kind != "s3":
        return 0
    bucket, _, start = f"{key.rstrip('/')}/".partition("/")
    request: dict[str, Any] = {"Bucket": bucket, "Prefix": start}
    count = 0
    while True:
        page = store.files.call_s3("list_multipart_uploads", **request)
        for upload in page.get("Uploads", ()):
            if upload["Initiated"] < before:
                store.files.call_s3(
                    "abort_multipart_upload",
                    Bucket=bucket,
                    Key=upload["Key"],
                    UploadId=upload["UploadId"],
                )
                count += 1
        if not page.get("IsTruncated"):
            return count
        request["KeyMarker"] = page["NextKeyMarker"]
        request["UploadIdMarker"] = page["NextUploadIdMarker"]


def _parts(store: FileStore, size: int = PART_BYTES) -> dict[str, int]:
    if store.kind == "s3":
        return {"chunksize": PART_BYTES, "max_concurrency": _PARTS_AT_ONCE}
    if store.kind == "gs":
        # gcsfs sends data that is smaller than a part between two lines that delimit it. A file
        # that contains such a line, or that ends with "\r", would be cut off there. A part is sent
        # unchanged.
        return {"chunksize": min(size, PART_BYTES) or 1}
    return {"max_concurrency": _PARTS_AT_ONCE} if store.kind == "az" else {}


def _by_renaming(store: FileStore, key: str, write: Any) -> None:
    directory, _, name = key.rpartition("/")
    unfinished = f"{directory}/.flexwire-{secrets.token_hex(8)}-{name}"
    try:
        store.files.makedirs(directory, exist_ok=True)
        write(unfinished)
        # Renaming in HDFS does not replace an existing file. Between the two calls, no file has
        # this name.
        with suppress(FileNotFoundError):
            store.files.rm_file(key)
        store.files.mv(unfinished, key)
    except BaseException:
        with suppress(Exception):
            store.files.rm_file(unfinished)
        raise
