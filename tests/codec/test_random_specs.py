"""What holds for Kafka's messages holds for any spec: all executors agree, and nothing is lost.

The specs are the same in every run. ``FLEXWIRE_EXAMPLES=5000`` tries so many others instead, new
ones each time: ``FLEXWIRE_EXAMPLES=5000 pytest tests/codec/test_random_specs.py``.
"""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from flexwire.codec import Encoding, message_of
from flexwire.codec.source import Refused
from flexwire.errors import CodecError, DecodeError, EncodeError
from flexwire.schema.parse import parse_spec
from flexwire.schema.resolve import resolve
from flexwire.schema.write import write_spec
from flexwire.wire.schema import NullableStruct, Presence, Schema
from flexwire.wire.types import Array, Type
from tests.codec.made_up import made as made_up
from tests.codec.specs import message_specs
from tests.codec.values import random_message
from tests.native.harness import REFUSED, functions

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec

EXAMPLES = int(os.environ.get("FLEXWIRE_EXAMPLES", "0"))
SEEDS = st.integers(0, 2**32 - 1)
_law = settings(
    max_examples=EXAMPLES or 80,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def compiled(spec: MessageSpec) -> Any:
    """Give the class of a spec that has been through its text."""
    text = write_spec(spec)
    note(text)
    again = parse_spec(text, "Sample.json", mode="strict")
    assert again == spec
    return message_of(again)


def has_unknown_tags(value: Any) -> bool:
    """Whether the object or one within it has unknown tagged fields."""
    if isinstance(value, list):
        return any(map(has_unknown_tags, value))
    names = getattr(value, "__struct_fields__", ())
    return bool(getattr(value, "unknown_tagged_fields", None)) or any(
        has_unknown_tags(getattr(value, name)) for name in names
    )


def outcome(decode: Any, *arguments: Any, **options: Any) -> str:
    """Give what decoding made or why it refused, as text: NaN is not equal to itself."""
    try:
        return repr(decode(*arguments, **options))
    except DecodeError as error:
        return str(error)


def damage(raw: bytes, source: random.Random) -> bytes:
    """Change, cut or lengthen bytes; sometimes leave them as they are."""
    out = bytearray(raw)
    for _ in range(source.choice([0, 1, 1, 2, 4])):
        if out:
            out[source.randrange(len(out))] = source.choice(
                [0, 1, 2, 0x7F, 0x80, 0xFF, source.randrange(256)]
            )
    if source.random() < 0.3:
        del out[source.randint(0, len(out)) :]
    return bytes(out) + source.choice([b"", b"", b"\x00"])


def check_bytes(made: Any, value: Any, version: int, encoding: Encoding) -> None:
    """Encode and decode with every executor; they agree, and the object comes back."""
    definition = made.definition
    raw: bytes = definition.encode_reference(value, version, encoding)
    assert definition.encode_generated(value, version, encoding) == raw
    for decode in (made.decode_prefix, definition.decode_reference):
        found, end = decode(raw, version, encoding=encoding)
        assert (found, end) == (value, len(raw))
        # To the bit: the objects take -0.0 for 0.0.
        assert definition.encode_reference(found, version, encoding) == raw
    assert made.decode(raw, version, encoding=encoding) == value
    assert made.decode(raw, version, encoding=encoding, lenient=True) == value


@given(message_specs(), SEEDS)
@_law
def test_what_is_encoded_decodes_to_the_same_in_every_encoding(
    spec: MessageSpec, seed: int
) -> None:
    made = compiled(spec)
    for version in spec.valid_versions:
        for encoding in Encoding:
            value = random_message(made, version, seed, encoding)
            check_bytes(made, value, version, encoding)


@given(message_specs(), SEEDS)
@_law
def test_the_kernels_do_the_same_and_refuse_unknown_tagged_fields_only(
    spec: MessageSpec, seed: int
) -> None:
    made = compiled(spec)
    for version in spec.valid_versions:
        decode, encode = functions(made, version)
        for tagged in (True, False):
            value = random_message(made, version, seed, tagged=tagged)
            raw = made.definition.encode_reference(value, version)
            found = decode(raw)
            assert found == value
            assert made.definition.encode_reference(found, version) == raw
            assert encode(value) == (REFUSED if has_unknown_tags(value) else raw)
            assert decode(raw + b"\x00") is REFUSED


@given(message_specs(), SEEDS)
@_law
def test_the_json_form_holds_all_of_it(spec: MessageSpec, seed: int) -> None:
    made = compiled(spec)
    for version in spec.valid_versions:
        value = random_message(made, version, seed)
        form = value.to_json(version)
        assert json.loads(json.dumps(form, allow_nan=False)) == form
        again = made.from_json(form, version)
        assert again == value
        assert again.to_json(version) == form
        assert again.encode(version) == value.encode(version)


@given(message_specs(), SEEDS)
@_law
def test_damaged_bytes_are_read_or_refused_by_all_alike(spec: MessageSpec, seed: int) -> None:
    made, source = compiled(spec), random.Random(seed)
    for version in spec.valid_versions:
        for encoding in Encoding:
            raw = random_message(made, version, seed, encoding).encode(version, encoding=encoding)
            for _ in range(4):
                check_damaged(made, damage(raw, source), version, encoding)


def check_damaged(made: Any, damaged: bytes, version: int, encoding: Encoding) -> None:
    """Read with every executor: they make the same or refuse, in the same words."""
    expected = outcome(made.definition.decode_reference, damaged, version, encoding=encoding)
    # `ExecutorsDisagreeError` where generated code alone refuses.
    assert outcome(made.decode_prefix, damaged, version, encoding=encoding) == expected
    outcome(made.decode, damaged, version, encoding=encoding, lenient=True)
    if encoding is Encoding.KAFKA:
        native = functions(made, version)[0](damaged)
        if is_message(made, damaged, version):
            assert repr(native) == outcome(made.decode, damaged, version)
        else:
            assert native is REFUSED


def is_message(made: Any, data: bytes, version: int) -> bool:
    """Whether the bytes are exactly one message."""
    try:
        made.decode(data, version)
    except DecodeError:
        return False
    return True


@given(message_specs(), SEEDS)
@_law
def test_what_one_version_reads_another_writes_alike_or_refuses_alike(
    spec: MessageSpec, seed: int
) -> None:
    made = compiled(spec)
    for have in spec.valid_versions:
        value = random_message(made, have, seed)
        for want in spec.valid_versions:
            try:
                expected: Any = made.definition.encode_reference(value, want)
            except CodecError as error:
                expected = str(error)
            try:
                found: Any = value.encode(want)
            except CodecError as error:
                found = str(error)
            assert found == expected
            native = functions(made, want)[1](value)
            if native is REFUSED:
                assert isinstance(expected, str) or has_unknown_tags(value)
            else:
                assert native == expected


@pytest.mark.parametrize("tagged", [False, True])
def test_a_default_of_nan_is_never_left_out_as_in_kafka(tagged: bool) -> None:  # noqa: FBT001 - a case
    one = {"name": "Ratio", "type": "float64", "versions": "2+", "default": "NaN"}
    made: Any = made_up([one | ({"tag": 0, "taggedVersions": "2+"} if tagged else {})])
    nan = bytes.fromhex("7ff8000000000000")
    raw = b"\x01\x00\x08" + nan if tagged else nan + b"\x00"
    for write in (made.definition.encode_reference, made.definition.encode_generated):
        assert write(made(), 2) == raw
        with pytest.raises((EncodeError, Refused)):
            write(made(), 0)
    assert functions(made, 2)[1](made()) == raw
    assert functions(made, 0)[1](made()) is REFUSED


def features(schema: Schema) -> set[str]:
    """Say what of the format a schema uses."""
    found = {f"form {schema.form.name}"} if schema.flexible else set()
    for one in schema.fields:
        found.add(one.presence.name)
        if one.presence is not Presence.ABSENT:
            found |= features_of(one.type)
            found |= {"null default"} if one.nullable and one.default is None else set()
    return found


def features_of(kind: Type) -> set[str]:
    if isinstance(kind, Array):
        return {"array"} | features_of(kind.element)
    if isinstance(kind, NullableStruct):
        tagged = "tagged " if kind.tagged else ""
        return {f"{tagged}nullable structure"} | features(kind.schema)
    return {"structure"} | features(kind) if isinstance(kind, Schema) else {kind.name}


def test_the_specs_are_of_every_kind() -> None:
    found: set[str] = set()

    @given(message_specs())
    @settings(_law, max_examples=200)
    def collect(spec: MessageSpec) -> None:
        moved = [one for one in spec.walk() if one.tagged_versions and one.versions]
        found.update({"inline or tagged"} if moved else set())
        for version in spec.valid_versions:
            for encoding in Encoding:
                found.update(features(resolve(spec, version, encoding=encoding)))

    collect()
    sized = {
        f"{compact}{nullable}{kind}"
        for compact in ("", "COMPACT_")
        for nullable in ("", "NULLABLE_")
        for kind in ("STRING", "BYTES", "RECORDS")
    }
    fixed = {"BOOLEAN", "INT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "FLOAT64", "UUID"}
    assert found >= sized | fixed | {
        *("array", "structure", "nullable structure", "tagged nullable structure"),
        *("INLINE", "TAGGED", "ABSENT", "inline or tagged", "null default"),
        *("form SECTION", "form INTERLEAVED", "form BUFFER"),
    }
