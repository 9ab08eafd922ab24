"""The laws for Kafka's messages hold for any spec: all executors agree and lose nothing.

The specs are the same in every run. ``FLEXWIRE_EXAMPLES=5000`` tries that many new examples
instead: ``FLEXWIRE_EXAMPLES=5000 pytest tests/codec/test_random_specs.py``.
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
from flexwire.codec.runtime import Refusal
from flexwire.codec.samples import random_message
from flexwire.errors import CodecError, DecodeError, EncodeError
from flexwire.schema.parse import parse_spec
from flexwire.schema.resolve import resolve
from flexwire.schema.write import write_spec
from flexwire.wire.schema import NullableStruct, Presence, Schema, struct_of
from flexwire.wire.tags import TagForm, join
from flexwire.wire.types import ArrayType, Type
from tests.codec.made_up import made as made_up
from tests.codec.specs import message_specs
from tests.codec.test_hostile_named import _BYTES_PER_BYTE, _ERROR_BYTES, peak
from tests.kernels.harness import REFUSED, functions, has_unordered_tags
from tests.searching import TIMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import MessageSpec

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("FLEXWIRE_EXAMPLES", "0"))
SEEDS = st.integers(0, 2**32 - 1)
law = settings(
    max_examples=EXAMPLES or 40,
    derandomize=not EXAMPLES,
    suppress_health_check=[*TIMED, HealthCheck.data_too_large],
)


def compiled(spec: MessageSpec) -> Any:
    """Return the class of a spec that was written as text and parsed again."""
    text = write_spec(spec)
    note(text)
    again = parse_spec(text, "Sample.json", mode="strict")
    assert again == spec
    return message_of(again)


def outcome(decode: Any, *arguments: Any, **options: Any) -> str:
    """Return the decoded message or the refusal, as text: NaN is not equal to itself."""
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
    """Encode and decode with every executor; they agree and leave the object unchanged."""
    definition = made.definition
    raw: bytes = definition.encode_reference(value, version, encoding)
    assert definition.encode_generated(value, version, encoding) == raw
    for lenient in (False, True):
        read = definition.decode_reference(raw, version, lenient=lenient, encoding=encoding)
        assert read == (value, len(raw))
        # Compared bit by bit, because the objects -0.0 and 0.0 are equal.
        assert definition.encode_reference(read[0], version, encoding) == raw
    found, end = definition.decode(raw, version, 0, lenient=False, encoding=encoding)
    assert (found, end) == (value, len(raw))
    assert definition.encode_reference(found, version, encoding) == raw


@pytest.mark.long
@given(message_specs(), SEEDS)
@law
def test_what_is_encoded_decodes_to_the_same_in_every_encoding(
    spec: MessageSpec, seed: int
) -> None:
    made = compiled(spec)
    for version in spec.valid_versions:
        for encoding in Encoding:
            value = random_message(made, version, seed, encoding)
            check_bytes(made, value, version, encoding)


def structures(value: Any, schema: Schema) -> Iterator[Any]:
    """Yield an object and everything in the fields that its version has."""
    yield value
    for one in schema.fields:
        inner = None if one.presence is Presence.ABSENT else struct_of(one.type)
        if inner is not None:
            held = getattr(value, one.attribute)
            for element in held if isinstance(held, list) else [held]:
                # A field that is left out may hold a null that its version cannot write.
                if element not in (None, type(element)()):
                    yield from structures(element, inner)


@pytest.mark.long
@given(message_specs(), SEEDS)
@law
def test_no_unknown_tagged_field_is_lost_at_any_depth(spec: MessageSpec, seed: int) -> None:
    made = compiled(spec)
    for version in spec.valid_versions:
        for encoding in Encoding:
            schema = made.definition.schema(version, encoding)
            if not schema.flexible:
                continue
            value = random_message(made, version, seed, encoding)
            for number, one in enumerate(structures(value, schema)):
                one.unknown_tagged_fields = {500: b"%d" % number, 20_000: b"deep"}
            check_bytes(made, value, version, encoding)
            if encoding is Encoding.KAFKA:
                raw = made.definition.encode_reference(value, version)
                assert functions(made, version)[0](raw) == value


@pytest.mark.long
@given(message_specs(), SEEDS)
@law
def test_the_kernels_do_the_same_and_refuse_unordered_tagged_fields_only(
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
            assert encode(value) == (REFUSED if has_unordered_tags(value) else raw)
            assert encode(found) == raw
            assert decode(raw + b"\x00") is REFUSED


@pytest.mark.long
@given(message_specs(), SEEDS)
@law
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


@pytest.mark.long
@given(message_specs(), SEEDS)
@law
def test_damaged_bytes_are_read_or_refused_by_all_alike(spec: MessageSpec, seed: int) -> None:
    made, source = compiled(spec), random.Random(seed)
    for version in spec.valid_versions:
        for encoding in Encoding:
            raw = random_message(made, version, seed, encoding).encode(version, encoding=encoding)
            for _ in range(4):
                check_damaged(made, damage(raw, source), version, encoding)


def tagged_field(form: TagForm, tag: int) -> bytes:
    """Return a tagged field of four bytes, in wire form."""
    alone = join(form, {tag: b"deep"})
    return alone[:-1] if form is TagForm.BUFFER else alone[1:]


@pytest.mark.long
@given(message_specs(), SEEDS)
@law
def test_tagged_fields_out_of_place_are_read_or_refused_by_all_alike(
    spec: MessageSpec, seed: int
) -> None:
    made, source = compiled(spec), random.Random(seed)
    tags = [one.tag for one in spec.walk() if one.tag is not None]
    for version in spec.valid_versions:
        for encoding in Encoding:
            schema = made.definition.schema(version, encoding)
            if not schema.flexible:
                continue
            value = random_message(made, version, seed, encoding)
            for one in structures(value, schema):
                one.unknown_tagged_fields = {500: b"deep", 20_000: b"deep"}
            raw = made.definition.encode_reference(value, version, encoding)
            sound = tagged_field(schema.form, 500)
            # Known tags: with values of any type, of other versions, or repeated.
            for tag in (20_000, 32_767, *source.sample(tags, min(3, len(tags)))):
                damaged = raw.replace(sound, tagged_field(schema.form, tag))
                check_damaged(made, damaged, version, encoding)


def check_damaged(made: Any, damaged: bytes, version: int, encoding: Encoding) -> None:
    """Check that all executors return the same message or the same error."""
    read = made.definition.decode_reference
    expected = outcome(read, damaged, version, encoding=encoding)
    # `ExecutorsDisagreeError` if only generated code refuses.
    decode = made.definition.decode
    assert outcome(decode, damaged, version, 0, lenient=False, encoding=encoding) == expected
    outcome(read, damaged, version, encoding=encoding, lenient=True)
    if encoding is Encoding.KAFKA:
        # The text of the decoded message, and the offset of its end.
        native = functions(made, version)[0](damaged)
        whole = expected.endswith(f", {len(damaged)})")
        assert (native is REFUSED) != whole
        assert native is REFUSED or repr((native, len(damaged))) == expected


# Counts and lengths that exceed the bytes after them, in wire form.
LIES = [bytes.fromhex(lie) for lie in ("000f4240", "7fffffff", "c1843d", "ffffffff07", "7fff")]


@pytest.mark.long
@given(message_specs(), SEEDS)
@law
def test_memory_stays_in_proportion_whatever_the_bytes_claim(spec: MessageSpec, seed: int) -> None:
    made, source = compiled(spec), random.Random(seed)
    # One byte yields at most one structure with all its defaults.
    kinds = made.definition.classes.values()
    by_default = peak(lambda _: [kind() for kind in kinds], b"")[1]
    for version in spec.valid_versions:
        decode = made.decoder(version)
        raw = random_message(made, version, seed).encode(version)
        for lie in LIES:
            lying = bytearray(raw)
            at = source.randint(0, len(raw))
            lying[at : at + len(lie)] = lie
            # The first call compiles the code that the second call runs.
            peak(decode, bytes(lying))
            used = peak(decode, bytes(lying))[1]
            assert used <= _ERROR_BYTES + (_BYTES_PER_BYTE + by_default) * len(lying)


@pytest.mark.long
@given(message_specs(), SEEDS)
@law
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
                found: Any = made.definition.encode(value, want)
            except CodecError as error:
                found = str(error)
            assert found == expected
            native = functions(made, want)[1](value)
            if native is REFUSED:
                assert isinstance(expected, str) or has_unordered_tags(value)
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
        with pytest.raises((EncodeError, Refusal)):
            write(made(), 0)
    assert functions(made, 2)[1](made()) == raw
    assert functions(made, 0)[1](made()) is REFUSED


def features(schema: Schema) -> set[str]:
    """Return the parts of the format that a schema uses."""
    found = {f"form {schema.form.name}"} if schema.flexible else set()
    for one in schema.fields:
        found.add(one.presence.name)
        if one.presence is not Presence.ABSENT:
            found |= features_of(one.type)
            found |= {"null default"} if one.nullable and one.default is None else set()
    return found


def features_of(kind: Type) -> set[str]:
    if isinstance(kind, ArrayType):
        return {"array"} | features_of(kind.element)
    if isinstance(kind, NullableStruct):
        tagged = "tagged " if kind.tagged else ""
        return {f"{tagged}nullable structure"} | features(kind.schema)
    return {"structure"} | features(kind) if isinstance(kind, Schema) else {kind.name}


@pytest.mark.long
def test_the_specs_are_of_every_kind() -> None:
    found: set[str] = set()

    @given(message_specs())
    @settings(law, max_examples=100)
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
