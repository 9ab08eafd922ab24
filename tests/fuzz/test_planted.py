"""The fuzz targets for checks and for record headers detect broken laws."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.records.kip82 import MessageIterator
from flexwire.specs.finding import Finding
from fuzz.corpus import corpus
from fuzz.law import LawBrokenError
from fuzz.targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable

# These are typed as Any, because faults are planted in private names of the modules.
checks: Any = import_module("fuzz.checks")
record_headers: Any = import_module("fuzz.record_headers")

SPEC = (
    b'{ "name": "Foo", "type": "data", "validVersions": "0", "flexibleVersions": "0",'
    b' "fields": [] }'
)
FIELD = (
    b'{ "name": "Foo", "type": "data", "validVersions": "0", "flexibleVersions": "0+", "fields": ['
    b'{ "name": "A", "type": "int8", "versions": "0+" } ] }'
)
HEADERS = record_headers.join([(b"a", b"3"), (b"b", None)])


def changed(module: Any, name: str, change: Callable[[Any], Any]) -> Callable[..., Any]:
    usual = getattr(module, name)

    def wrong(*arguments: Any, **options: Any) -> Any:
        return change(usual(*arguments, **options))

    return wrong


def moved(report: Any, **places: int) -> Any:
    findings = tuple(replace(one, **places) for one in report.findings)
    return replace(report, findings=findings)


@pytest.mark.parametrize(
    ("target", "module", "name", "change", "data"),
    [
        ("lint", checks, "lint", lambda report: moved(report, line=2), b"\0" + SPEC),
        ("lint", checks, "lint", lambda report: moved(report, line=0), b"\0" + SPEC),
        ("lint", checks, "lint", lambda report: moved(report, column=120), b"\0" + SPEC),
        ("lint", checks, "lint", lambda report: moved(report, column=0), b"\0" + SPEC),
        ("lint", checks, "read_message", lambda read: (read[0], []), b"\0{"),
        ("lint", checks.formats, "to_json", lambda _: "[]", b"\0" + SPEC),
        ("lint", checks.formats, "to_github_actions", lambda text: text + "x", b"\0" + SPEC),
        ("lint", checks.formats, "to_text", lambda text: text + "\x07", b"\0" + SPEC),
        (
            "breaking",
            checks,
            "compare",
            lambda report: replace(report, findings=(Finding("F", 1, 1, "TAG_REUSED", "m"),)),
            b"\0" + FIELD + b"\0" + FIELD,
        ),
        ("kip82", record_headers, "down_convert", lambda data: data[:-1] + b"x", b""),
        ("kip82", record_headers, "up_convert", lambda data: data + data, b""),
        ("conventions", record_headers, "detect", lambda found: found[1:], HEADERS),
        ("conventions", record_headers, "write_headers", lambda found: found[1:], HEADERS),
        ("conventions", record_headers, "write_headers", lambda found: found * 2, HEADERS),
    ],
)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    module: Any,
    name: str,
    change: Callable[[Any], Any],
    data: bytes,
) -> None:
    data = data or next(one for one in corpus(target) if one[0] == 0)
    TARGETS[target](data)
    monkeypatch.setattr(module, name, changed(module, name, change))
    with pytest.raises(LawBrokenError):
        TARGETS[target](data)


def test_reading_that_does_not_go_on_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MessageIterator, "position", property(lambda _: -1))
    with pytest.raises(LawBrokenError, match="does not go on"):
        TARGETS["kip82"](b"\0" + bytes(20))


def test_lenient_that_reads_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = record_headers.read_headers

    def wrong(pairs: Any, name: Any, *, lenient: bool = False) -> Any:
        found = usual(pairs, name, lenient=lenient)
        return found[1:] if lenient else found

    monkeypatch.setattr(record_headers, "read_headers", wrong)
    with pytest.raises(LawBrokenError, match="lenient reads otherwise"):
        TARGETS["conventions"](HEADERS)


@pytest.mark.parametrize("target", ["lint", "breaking", "kip82", "conventions"])
def test_another_exception_is_not_swallowed(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise IndexError("planted")

    for module, name in (
        (checks, "lint"),
        (checks, "compare"),
        (record_headers, "down_convert"),
        (record_headers, "detect"),
    ):
        monkeypatch.setattr(module, name, fail)
    with pytest.raises(IndexError, match="planted"):
        TARGETS[target](b"\0" + FIELD + b"\0" + FIELD)


def test_a_change_at_no_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    TARGETS["breaking"](b"\0" + FIELD + b"\0" + FIELD.replace(b"int8", b"int16"))
    usual = checks.compare
    monkeypatch.setattr(checks, "compare", lambda *given: moved(usual(*given), line=99))
    with pytest.raises(LawBrokenError, match="no such place"):
        TARGETS["breaking"](b"\0" + FIELD + b"\0" + FIELD.replace(b"int8", b"int16"))


def test_what_joins_record_headers_splits_them() -> None:
    pairs = [(b"", b""), (b"k", None), (b"k" * 254, b"v" * 254)]
    assert list(record_headers.split(record_headers.join(pairs))) == pairs
    for pair in ((b"k" * 255, b""), (b"", b"v" * 255)):
        with pytest.raises(OverflowError):
            record_headers.join([pair])
