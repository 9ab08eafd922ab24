"""One range of a file in a store, and whether the store's answer is the one that was asked for.

A store, or a proxy before it, may answer with fewer bytes, with another range, or with what the
file held before. A library returns such bytes like any others. The headers tell them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.storage.filesystems import RETRIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.storage.filesystems import FileStore


class RangeAnswer(NamedTuple):
    """The bytes of a range, and the version that the answer names, empty where it names none."""

    data: bytes
    version: str


def request_range(
    opened: FileStore, key: str, size: int, version: str, first: int, last: int
) -> RangeAnswer:
    """Return bytes ``first`` to ``last`` of a file of ``size`` bytes.

    S3 is asked up to `RETRIES` times, until the answer is that range of that ``version``. Where the
    last answer is of another version, it is returned, and the caller refuses it. Raises `OSError`
    for other bytes than were asked for, and what the library raises.
    """
    if opened.kind == "s3":
        wanted = RangeAnswer(b"", version), f"bytes {first}-{last - 1}/{size}"
        return _of_s3(opened, key, *wanted, first, last)
    data = bytes(opened.files.cat_file(key, start=first, end=last, **opened.limit))
    return RangeAnswer(_sized(data, first, last), "")


def _of_s3(
    opened: FileStore, key: str, wanted: RangeAnswer, expected: str, first: int, last: int
) -> RangeAnswer:
    bucket, _, name = key.partition("/")
    asked = {"Bucket": bucket, "Key": name, "Range": f"bytes={first}-{last - 1}"}

    def is_right(told: dict[str, Any], data: bytes) -> bool:
        is_range = told.get("ContentRange") == expected and len(data) == last - first
        return is_range and _version(told) in {"", wanted.version}

    told, data = opened.wait(_s3_answer, opened.files, asked, is_right)
    version = _version(told)
    if version in {"", wanted.version}:
        said = told.get("ContentRange") or "a file without a range"
        if said != expected:
            raise OSError(f"expected {expected}, got {said}")
        _sized(data, first, last)
    return RangeAnswer(data, version)


async def _s3_answer(
    files: Any, asked: dict[str, str], is_right: Callable[[dict[str, Any], bytes], bool]
) -> tuple[dict[str, Any], bytes]:
    """Return the headers and the body of the first answer that is right, or else of the last."""
    for left in reversed(range(RETRIES)):
        told = await files._call_s3("get_object", **asked)  # noqa: SLF001 - s3fs has no other call in its loop
        try:
            data = await told["Body"].read()
        except Exception:
            # A connection that ends: each library below s3fs has errors of its own for that.
            if not left:
                raise
            continue
        finally:
            told["Body"].close()
        if is_right(told, data):
            break
    return told, data


def _version(told: dict[str, Any]) -> str:
    return str(told.get("ETag") or "").strip('"')


def _sized(data: bytes, first: int, last: int) -> bytes:
    if len(data) != last - first:
        raise OSError(f"expected {last - first} bytes at {first}, got {len(data)}")
    return data
