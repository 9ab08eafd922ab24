"""Errors are unchanged by pickling and unpickling, so they can be sent between processes."""

from __future__ import annotations

import pickle

import pytest

from flexwire.errors import (
    CaptureError,
    DecodeError,
    FlexwireError,
    RecordError,
    RecordHeaderError,
    SpecError,
    StorageError,
)

ERRORS = {
    "SpecError": SpecError("unknown key", source="Foo.json", line=3, column=7),
    "DecodeError": DecodeError("too short", path="a.b", offset=4, message="Foo", version=2),
    "RecordError": RecordError("crc", offset=61),
    "RecordHeaderError": RecordHeaderError("an int", key=b"k", convention="kip-1308"),
    "CaptureError": CaptureError("cut off", source="a.pcap", offset=9),
    "StorageError": StorageError("no answer", url="s3://b/a", tried="read"),
}
# Pickles of the same errors from the previous release, in protocol 0 without memo entries.
OLD = {
    "SpecError": b"cflexwire.errors\n_rebuild_spec\n(Vunknown key\nVFoo.json\nI3\nI7\ntR.",
    "DecodeError": b"cflexwire.errors\n_rebuild\n(cflexwire.errors\nDecodeError\n"
    b"Vtoo short\nVa.b\nI4\nVFoo\nI2\ntR.",
    "RecordError": b"cflexwire.errors\n_rebuild_record\n(Vcrc\nI61\ntR.",
    "RecordHeaderError": b"cflexwire.errors\n_rebuild_record_header\n"
    b"(Van int\nc_codecs\nencode\n(Vk\nVlatin1\ntRVkip-1308\ntR.",
    "CaptureError": b"cflexwire.errors\n_rebuild_capture\n(Vcut off\nVa.pcap\nI9\ntR.",
    "StorageError": b"cflexwire.errors\n_rebuild_storage\n(Vno answer\nVs3://b/a\nVread\ntR.",
}


def told(error: FlexwireError) -> tuple[type, str, dict[str, object]]:
    return type(error), str(error), vars(error)


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_an_error_that_was_pickled_says_the_same(error: FlexwireError) -> None:
    assert told(pickle.loads(pickle.dumps(error))) == told(error)  # noqa: S301 - our own


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_that_the_last_release_pickled_is_read(name: str) -> None:
    assert told(pickle.loads(OLD[name])) == told(ERRORS[name])  # noqa: S301 - written above


def test_an_error_without_keywords_keeps_its_arguments() -> None:
    assert pickle.loads(pickle.dumps(FlexwireError("a", 2))).args == ("a", 2)  # noqa: S301 - our own
