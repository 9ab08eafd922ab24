"""Read one range of a file in a store, and check that the response is for the requested range.

A store, or a proxy in front of it, may respond with fewer bytes, with another range, or with old
content of the file. A library returns such bytes like any others. The headers of the response show
the difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.storage.filesystems import RETRIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.storage.filesystems import FileStore


class RangeAnswer(NamedTuple):
    """The bytes of a range, and the version in the response, which is empty if it is missing."""

    data: bytes
    version: str


def request_range(
    store: FileStore, key: str, size: int, version: str, first: int, last: int
) -> RangeAnswer:
    """Return the bytes from ``first`` to ``last`` of a file with ``size`` bytes.

    The request is sent to S3 up to `RETRIES` times, until the response contains this range of this
    ``version``. If the last response is for another version, it is returned, and the caller refuses
    it. Raises `OSError` if the store returns bytes other than those requested, and the library's
    own errors.
    """
    if store.kind == "s3":
        wanted = RangeAnswer(b"", version), f"bytes {first}-{last - 1}/{size}"
        return _request_s3_range(store, key, *wanted, first, last)
    data = bytes(store.files.cat_file(key, start=first, end=last, **store.limit))
    return RangeAnswer(_check_size(data, first, last), "")


def _request_s3_range(
    store: FileStore, key: str, wanted: RangeAnswer, expected: str, first: int, last: int
) -> RangeAnswer:
    bucket, _, name = key.partition("/")
    request = {"Bucket": bucket, "Key": name, "Range": f"bytes={first}-{last - 1}"}

    def is_right(response: dict[str, Any], data: bytes) -> bool:
        is_range = response.get("ContentRange") == expected and len(data) == last - first
        return is_range and _version(response) in {"", wanted.version}

    response, data = store.wait(_s3_response, store.files, request, is_right)
    version = _version(response)
    if version in {"", wanted.version}:
        content_range = response.get("ContentRange") or "no Content-Range"
        if content_range != expected:
            raise OSError(f"expected {expected}, got {content_range}")
        _check_size(data, first, last)
    return RangeAnswer(data, version)


async def _s3_response(
    files: Any, request: dict[str, str], is_right: Callable[[dict[str, Any], bytes], bool]
) -> tuple[dict[str, Any], bytes]:
    """Return the headers and body of the first correct response, or else of the last response."""
    for retries_left in reversed(range(RETRIES)):
        response = await files._call_s3("get_object", **request)  # noqa: SLF001 - s3fs has no public asynchronous function for this
        try:
            data = await response["Body"].read()
        except Exception:
            # The connection has ended. Each library below s3fs raises its own errors for this.
            if not retries_left:
                raise
            continue
        finally:
            response["Body"].close()
        if is_right(response, data):
            break
    return response, data


def _version(response: dict[str, Any]) -> str:
    return str(response.get("ETag") or "").strip('"')


def _check_size(data: bytes, first: int, last: int) -> bytes:
    if len(data) != last - first:
        raise OSError(f"expected {last - first} bytes at {first}, got {len(data)}")
    return data
