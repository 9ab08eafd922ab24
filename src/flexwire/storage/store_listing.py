"""List a store page by page, so that a million objects are never in memory at the same time.

The function of each library that lists a single page is used. The libraries' usual functions would
first collect all pages, at two kilobytes per object.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.storage.filesystems import open_store, report_failures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.storage.filesystems import FileStore

_PAGE = 5000
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class FileEntry(NamedTuple):
    """One file: its name relative to the listed place, and the version of its content."""

    name: str
    size: int
    modified: datetime
    version: str


def list_store(url: str, prefix: str = "") -> Iterator[FileEntry]:
    """Yield every object below ``url``, at any depth, whose name there begins with ``prefix``.

    The objects are in the order that a store uses, sorted by the bytes of their names. If the place
    is empty, nothing is yielded.
    """
    store = open_store(url)
    base = store.key(url).rstrip("/") + "/"
    listing = _LISTINGS.get(store.kind, _walk)(store, base, prefix)
    while True:
        with report_failures(url, "list"):
            try:
                page = next(listing, None)
            except FileNotFoundError:
                return
        if page is None:
            return
        for entry in page:
            # Otherwise the object marks a directory.
            if entry.name and not entry.name.endswith("/"):
                yield entry


def file_description(store: FileStore, info: dict[str, Any]) -> tuple[int, datetime, str]:
    """Return the size, time and version of one file, from a library's description."""
    time_value = next(filter(None, map(info.get, _TIMES)), None)
    version = info.get("generation") or info.get("ETag") or info.get("etag")
    if store.kind == "gs" and version is None:
        version = info.get("md5Hash")
    moment = _moment(time_value)
    return int(info["size"]), moment, str(version or moment.isoformat()).strip('"')


_TIMES = ("LastModified", "updated", "last_modified", "mtime", "created", "modified")


def _s3(store: FileStore, base: str, prefix: str) -> Iterator[list[FileEntry]]:
    bucket, _, start = base.partition("/")
    request = {"Bucket": bucket, "Prefix": start + prefix, **store.limit}
    while True:
        page = store.files.call_s3("list_objects_v2", **request)
        yield [
            FileEntry(
                item["Key"][len(start) :], *file_description(store, {**item, "size": item["Size"]})
            )
            for item in page.get("Contents", ())
        ]
        if not page.get("IsTruncated"):
            return
        request["ContinuationToken"] = page["NextContinuationToken"]


def _gs(store: FileStore, base: str, prefix: str) -> Iterator[list[FileEntry]]:
    bucket, _, start = base.partition("/")
    request = {"prefix": start + prefix, "json_out": True, **store.limit}
    while True:
        page = store.files.call("GET", "b/{}/o", bucket, **request)
        yield [
            FileEntry(item["name"][len(start) :], *file_description(store, item))
            for item in page.get("items", ())
        ]
        if not page.get("nextPageToken"):
            return
        request["pageToken"] = page["nextPageToken"]


def _az(store: FileStore, base: str, prefix: str) -> Iterator[list[FileEntry]]:
    container, _, start = base.partition("/")
    token = None
    while True:
        page, token = store.wait(_az_page, store.files, container, start + prefix, token)
        yield [
            FileEntry(
                blob.name[len(start) :],
                blob.size,
                _moment(blob.last_modified),
                blob.etag.strip('"'),
            )
            for blob in page
            if (blob.metadata or {}).get("hdi_isfolder") != "true"
        ]
        if not token:
            return


async def _az_page(files: Any, container: str, prefix: str, token: str | None) -> Any:
    async with files.service_client.get_container_client(container) as client:
        blobs = client.list_blobs(prefix, include=["metadata"], results_per_page=_PAGE)
        listing = blobs.by_page(token)
        async for page in listing:
            return [blob async for blob in page], listing.continuation_token
    return [], None


def _walk(store: FileStore, base: str, prefix: str) -> Iterator[list[FileEntry]]:
    directory, _, _ = (base + prefix).rpartition("/")
    for directory_name, _, files in store.files.walk(directory, detail=True, on_error="raise"):
        below = f"{directory_name.rstrip('/')}/"[len(base) :]
        page = [
            FileEntry(below + name, *file_description(store, info)) for name, info in files.items()
        ]
        yield [entry for entry in page if entry.name.startswith(prefix)]


_LISTINGS = {"s3": _s3, "gs": _gs, "az": _az}


def moment_of(seconds: float) -> datetime:
    """Return the time this many seconds after 1970 in UTC, or the nearest time that is possible.

    A file's time can be any number, because some file systems store times in 64 bits. A datetime
    supports only the years 1 to 9999.

    >>> moment_of(0).isoformat(), moment_of(10**12).isoformat()
    ('1970-01-01T00:00:00+00:00', '9999-12-31T23:59:59.999999+00:00')
    """
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return _LATEST if seconds > 0 else _EARLIEST


def _moment(time_value: Any) -> datetime:
    if isinstance(time_value, datetime):
        return time_value.astimezone(UTC)
    if isinstance(time_value, int | float):
        return moment_of(time_value)
    return datetime.fromisoformat(time_value) if time_value else moment_of(0)
