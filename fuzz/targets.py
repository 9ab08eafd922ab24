"""The fuzzed laws: each target takes any bytes, and raises an error if a law is broken.

The targets of messages read three bytes first: two choose the message and version, one the
encoding. The message follows.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.capture.files.links import SegmentCounts, UnreadableBytes, read_segments
from flexwire.capture.reassembly.assembly import FrameAssembler, connection_key
from flexwire.codec import Encoding, message
from flexwire.errors import (
    CaptureError,
    DecodeError,
    EncodeError,
    FrameError,
    JsonFormError,
    RecordError,
    SpecError,
)
from flexwire.protocol.headers import parse_request
from flexwire.records import decode_batches
from flexwire.schema.catalog import catalog
from flexwire.schema.parse import parse_spec
from flexwire.schema.write import write_spec
from fuzz.checks import breaking, lint_specs
from fuzz.damaged import pieces
from fuzz.law import LawBrokenError
from fuzz.modes import mode_of
from fuzz.record_headers import conventions, kip82
from tests.capture.test_accounts import (
    test_every_byte_of_any_connections_at_once_is_in_a_frame_or_counted,
)
from tests.columnar.test_odd_arrays import test_records_are_those_asked_for_or_refused
from tests.kernels.harness import REFUSED, functions

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.capture.reassembly.connections import CapturedFrame

HEAD_BYTES = 3
ENCODINGS = tuple(Encoding)
_MOST_INFLATED = 1 << 18
_MOST_FRAME_BYTES = 1 << 16


@dataclass(frozen=True)
class Case:
    """A message, a version, an encoding, and bytes that may be such a message."""

    kind: Any
    version: int
    encoding: Encoding
    body: bytes

    def check(self, what: str, found: object, expected: object) -> None:
        """Raise `LawBrokenError`, with all details, unless both values are equal."""
        if found != expected:
            raise LawBrokenError(
                f"{self.kind.__name__} v{self.version}, {self.encoding.value}: {what}\n"
                f"  bytes    {self.body.hex()}\n  found    {found}\n  expected {expected}"
            )


@cache
def pairs() -> tuple[tuple[str, int], ...]:
    """Return every (message, version) of the catalog, in order."""
    return tuple(
        (name, version)
        for name in catalog().names()
        for version in catalog().entry(name).versions
        if version in catalog().entry(name).versions
    )


def head(name: str, version: int, encoding: Encoding = Encoding.KAFKA) -> bytes:
    """Return the bytes that choose a message, version and encoding."""
    return pairs().index((name, version)).to_bytes(2) + bytes([ENCODINGS.index(encoding)])


def case_of(data: bytes) -> Case | None:
    """Read a case; return None if there are too few bytes."""
    if len(data) < HEAD_BYTES:
        return None
    name, version = pairs()[int.from_bytes(data[:2]) % len(pairs())]
    return Case(message(name), version, ENCODINGS[data[2] % len(ENCODINGS)], data[HEAD_BYTES:])


def _told(decode: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, str]:
    """Return the object, if any, and the result or error as text (NaN is not equal to itself)."""
    try:
        found = decode(*arguments, **options)
    except DecodeError as error:
        return None, str(error)
    return found, repr(found)


def reference(data: bytes) -> None:
    """The reference executor reads any bytes, strictly or not, and writes what it has read."""
    case = case_of(data)
    if case is None:
        return
    read = case.kind.definition.decode_reference
    write = case.kind.definition.encode_reference
    where: Any = {"encoding": case.encoding}
    lax, told_lax = _told(read, case.body, case.version, lenient=True, **where)
    found, told = _told(read, case.body, case.version, **where)
    if found is None:
        return
    case.check("lenient reads otherwise", told_lax, told)
    raw = write(found[0], case.version, case.encoding)
    again, told_again = _told(read, raw, case.version, **where)
    case.check("written and read again", told_again, repr((found[0], len(raw))))
    case.check("written again", write(again[0], case.version, case.encoding), raw)
    case.check("what lenient read, written", write(lax[0], case.version, case.encoding), raw)


def generated(data: bytes) -> None:
    """Generated code reads and writes like the reference, and refuses with the same reasons."""
    case = case_of(data)
    if case is None:
        return
    definition = case.kind.definition
    where: Any = {"encoding": case.encoding}
    definition._decoder(case.version, case.encoding)  # noqa: SLF001 - its first messages would be the reference's
    # If only generated code refuses, this raises `ExecutorsDisagreeError`, which is not caught.
    found, told = _told(definition.decode, case.body, case.version, 0, lenient=False, **where)
    expected = _told(definition.decode_reference, case.body, case.version, **where)[1]
    case.check("generated code reads", told, expected)
    if found is not None:
        case.check(
            "generated code writes",
            definition.encode_generated(found[0], case.version, case.encoding),
            definition.encode_reference(found[0], case.version, case.encoding),
        )


def kernels(data: bytes) -> None:
    """The kernels read and write like the reference, and refuse the same bytes."""
    case = case_of(data)
    if case is None:
        return
    decode, encode = functions(case.kind, case.version)
    found = decode(case.body)
    expected, told = _told(case.kind.definition.decode_reference, case.body, case.version)
    if expected is None or expected[1] < len(case.body):
        case.check(f"the kernels read, and the reference: {told}", found, REFUSED)
        return
    case.check("the kernels read", repr(found), repr(expected[0]))
    raw = case.kind.definition.encode_reference(found, case.version)
    case.check("the kernels write", encode(found), raw)


def json_form(data: bytes) -> None:
    """Any JSON is a message's form or is refused; an accepted form is what its message returns."""
    case = case_of(data)
    if case is None:
        return
    try:
        obj = json.loads(case.body)
    except (ValueError, RecursionError):
        # The text is not JSON, or too deeply nested for Python's own parser.
        return
    try:
        made = case.kind.from_json(obj, case.version)
        raw = made.encode(case.version)
    except (JsonFormError, EncodeError):
        return
    form = made.to_json(case.version)
    again = case.kind.from_json(form, case.version)
    case.check("its form", again.to_json(case.version), form)
    case.check("its bytes", again.encode(case.version), raw)


def records(data: bytes) -> None:
    """Any bytes are record batches or refused, and reading behind every error comes to an end."""
    batches = decode_batches(data[1:], check_crc=data[:1] > b"\x7f", max_inflated=_MOST_INFLATED)
    position = -1
    while batches.position < len(data) - 1:
        if batches.position <= position:
            raise LawBrokenError(f"reading does not go on from byte {position}: {data.hex()}")
        position = batches.position
        try:
            for batch in batches:
                position = batch.position
                tuple(batch.records)
        except RecordError as error:
            if not 0 <= error.offset < len(data):
                raise LawBrokenError(f"an error outside the data: {data.hex()}") from error


def captures(data: bytes) -> None:
    """Any file is a capture or refused; its segments make frames of requests or of other bytes."""
    counts = SegmentCounts()
    assemblers: dict[str, FrameAssembler] = {}
    frames: list[CapturedFrame] = []
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(data)
        file.flush()
        try:
            for item in read_segments(Path(file.name), counts):
                if isinstance(item, UnreadableBytes):
                    continue
                key = connection_key(item)
                assembler = assemblers.setdefault(key, FrameAssembler(limit=_MOST_FRAME_BYTES))
                frames += assembler.push(item)
        except CaptureError:
            # The whole file is no capture.
            return
    for assembler in assemblers.values():
        frames += assembler.finish()
    told = counts.segments + counts.unreadable_packets + sum(counts.skipped.values())
    if told != counts.packets:
        raise LawBrokenError(f"{counts.packets} packets but {told} are told: {data.hex()}")
    for frame in frames:
        try:
            parse_request(frame.payload)
        except (FrameError, DecodeError):
            continue


def specs(data: bytes) -> None:
    """Any text is a message spec or refused; a spec that is written and read again is the same."""
    try:
        text = data[1:].decode()
    except UnicodeDecodeError:
        return
    try:
        spec = parse_spec(text, mode=mode_of(data))
    except SpecError:
        return
    again = write_spec(parse_spec(write_spec(spec)))
    if again != write_spec(spec):
        raise LawBrokenError(f"written otherwise: {text!r}")


def connections(data: bytes) -> None:
    """Connections that reuse ports, in any order of segments, account for every byte."""
    # The test is about what hypothesis draws from the bytes.
    any_connections: Any = test_every_byte_of_any_connections_at_once_is_in_a_frame_or_counted
    any_connections.hypothesis.fuzz_one_input(data)


def columns(data: bytes) -> None:
    """Odd Arrow arrays are written as records with exactly their values, or refused."""
    any_columns: Any = test_records_are_those_asked_for_or_refused
    any_columns.hypothesis.fuzz_one_input(data)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "reference": reference,
    "connections": connections,
    "columns": columns,
    "generated": generated,
    "kernels": kernels,
    "json": json_form,
    "records": records,
    "captures": captures,
    "pieces": pieces,
    "specs": specs,
    "lint": lint_specs,
    "breaking": breaking,
    "kip82": kip82,
    "conventions": conventions,
}
