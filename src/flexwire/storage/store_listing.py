"""What a place holds, page by page: a million objects never stand in memory as a library's own.

Each library's listing is asked for one page at a time, as their own calls gather all of them
first, at two kilobytes an object.
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
    """One file: its name below the place that was listed, and which content it has."""

    name: str
    size: int
    modified: datetime
    version: str


def list_store(url: str, prefix: str = "") -> Iterator[FileEntry]:
    """Every object below ``url``, at any depth, whose name there begins with ``prefix``.

    In an object store's order, which is that of the names' bytes. Nothing where nothing is.
    """
    opened = open_store(url)
    base = opened.key(url).rstrip("/") + "/"
    listing = _LISTINGS.get(opened.kind, _walk)(opened, base, prefix)
    while True:
        with report_failures(url, "list"):
            try:
                page = next(listing, None)
            except FileNotFoundError:
                return
        if page is None:
            return
        for entry in page:
            if entry.name and not entry.name.endswith("/"):  # else the mark of a directory
                yield entry


def file_description(opened: FileStore, info: dict[str, Any]) -> tuple[int, datetime, str]:
    """Size, time and version in what a library says of one file."""
    when = next(filter(None, map(info.get, _TIMES)), None)
    version = info.get("generation") or info.get("ETag") or info.get("etag")
    if opened.kind == "gs" and version is None:
        version = info.get("md5Hash")
    moment = _moment(when)
    return int(info["size"]), moment, str(version or moment.isoformat()).strip('"')


_TIMES = ("LastModified", "updated", "last_modified", "mtime", "created", "modified")


def _s3(opened: FileStore, base: str, prefix: str) -> Iterator[list[FileEntry]]:
    bucket, _, start = base.partition("/")
    asked = {"Bucket": bucket, "Prefix": start + prefix, **opened.limit}
    while True:
        page = opened.files.call_s3("list_objects_v2", **asked)
        yield [
            FileEntry(
                one["Key"][len(start) :], *file_description(opened, {**one, "size": one["Size"]})
            )
            for one in page.get("Contents", ())
        ]
        if not page.get("IsTruncated"):
            return
        asked["ContinuationToken"] = page["NextContinuationToken"]


def _gs(opened: FileStore, base: str, prefix: str) -> Iterator[list[FileEntry]]:
    bucket, _, start = base.partition("/")
    asked = {"prefix": start + prefix, "json_out": True, **opened.limit}
    while True:
        page = opened.files.call("GET", "b/{}/o", bucket, **asked)
        yield [
            FileEntry(one["name"][len(start) :], *file_description(opened, one))
            for one in page.get("items", ())
        ]
        if not page.get("nextPageToken"):
            return
        asked["pageToken"] = page["nextPageToken"]


def _az(opened: FileStore, base: str, prefix: str) -> Iterator[list[FileEntry]]:
    container, _, start = base.partition("/")
    token = None
    while True:
        page, token = opened.wait(_az_page, opened.files, container, start + prefix, token)
        yield [
            FileEntry(
                one.name[len(start) :], one.size, _moment(one.last_modified), one.etag.strip('"')
            )
            for one in page
            if (one.metadata or {}).get("hdi_isfolder") != "true"
        ]
        if not token:
            return


async def _az_page(files: Any, container: str, prefix: str, token: str | None) -> Any:
    async with files.service_client.get_container_client(container) as client:
        blobs = client.list_blobs(prefix, include=["metadata"], results_per_page=_PAGE)
        listing = blobs.by_page(token)
        async for page in listing:
            return [one async for one in page], listing.continuation_token
    return [], None


def _walk(opened: FileStore, base: str, prefix: str) -> Iterator[list[FileEntry]]:
    directory, _, _ = (base + prefix).rpartition("/")
    for place, _, files in opened.files.walk(directory, detail=True, on_error="raise"):
        below = f"{place.rstrip('/')}/"[len(base) :]
        page = [
            FileEntry(below + name, *file_description(opened, info)) for name, info in files.items()
        ]
        yield [entry for entry in page if entry.name.startswith(prefix)]


_LISTINGS = {"s3": _s3, "gs": _gs, "az": _az}


def moment_of(seconds: float) -> datetime:
    """Return the moment so many seconds after 1970, in UTC, or the nearest one of years 1 to 9999.

    A file may have any time: some file systems keep 64 bits of it.

    >>> moment_of(0).isoformat(), moment_of(10**12).isoformat()
    ('1970-01-01T00:00:00+00:00', '9999-12-31T23:59:59.999999+00:00')
    """
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return _LATEST if seconds > 0 else _EARLIEST


def _moment(when: Any) -> datetime:
    if isinstance(when, datetime):
        return when.astimezone(UTC)
    if isinstance(when, int | float):
        return moment_of(when)
    return datetime.fromisoformat(when) if when else moment_of(0)
