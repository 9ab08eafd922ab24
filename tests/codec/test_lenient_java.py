"""The lenient reader accepts exactly the bytes that Kafka's Java accepts, and reads the same
values.

``lenient.jsonl.gz`` holds damaged messages and what Java made of them: the generated classes and
JSON converters of Kafka 4.3.0, and those of 4.1.0 and 3.9.1 for modules and versions that its
clients lack. A line contains ``message``, ``version``, ``hex``, the kind of damage (``case``) and
the release (``kafka``). It also contains either the exception (``refused``), or the number of bytes
read (``read``), the JSON form (``json``, with records in base64 and the unknown tagged fields of
each structure in wire order) and the bytes that Java writes for the object (``written``, null if it
refuses). Kafka 4.4.0 differs in one class of messages: it refuses a number of tagged fields above
2**31-1. The other releases read that number as negative, and so as no fields.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from flexwire.codec import Message, message
from flexwire.errors import DecodeError, EncodeError

VECTORS = Path(__file__).parents[1] / "vectors" / "lenient.jsonl.gz"


def _load() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(VECTORS, "rt", encoding="utf-8") as lines:
        for line in lines:
            vector = json.loads(line)
            found[vector["case"]].append(vector)
    return found


BY_CASE = _load()
EVERY = [vector for vectors in BY_CASE.values() for vector in vectors]


def _class_of(vector: dict[str, Any]) -> type[Message]:
    # Names and layouts are those of the release that judged; the catalog contains another patch
    # release.
    major, minor, _ = vector["kafka"].split(".")
    return message(vector["message"], f"{major}.{minor}")


def _in_java(form: Any) -> Any:
    """Return a JSON form with the tags as Java's int32, sorted, and repeated tags in wire order."""
    if isinstance(form, list):
        return [_in_java(item) for item in form]
    if not isinstance(form, dict):
        return form
    if form.keys() == {"tag", "data"}:
        return {"tag": (form["tag"] + 2**31) % 2**32 - 2**31, "data": form["data"]}
    made = {name: _in_java(value) for name, value in form.items()}
    if "_unknownTaggedFields" in made:
        made["_unknownTaggedFields"].sort(key=lambda one: one["tag"])
    return made


def test_every_answer_is_here() -> None:
    refused = sum("refused" in vector for vector in EVERY)
    unwritten = sum(vector.get("written", "") is None for vector in EVERY)
    assert (len(BY_CASE), len(EVERY), refused, unwritten) == (35, 1143, 452, 87)


@pytest.fixture(params=sorted(BY_CASE))
def vectors(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return BY_CASE[request.param]


@pytest.fixture
def taken(vectors: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Any]]:
    """Return the input that Java accepts, and the object that the lenient reader makes of it."""
    return [
        (one, _class_of(one).decode(bytes.fromhex(one["hex"]), one["version"], lenient=True))
        for one in vectors
        if "refused" not in one
    ]


def test_what_java_refuses_the_lenient_reader_refuses(vectors: list[dict[str, Any]]) -> None:
    for vector in vectors:
        made, raw, version = _class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        if "refused" in vector:
            for lenient in (True, False):
                with pytest.raises(DecodeError):
                    made.decode(raw, version, lenient=lenient)
                with pytest.raises(DecodeError):
                    made.definition.decode_reference(raw, version, lenient=lenient)


def test_what_java_takes_is_read_as_java_reads_it(taken: list[tuple[dict[str, Any], Any]]) -> None:
    for vector, decoded in taken:
        made, raw, version = type(decoded), bytes.fromhex(vector["hex"]), vector["version"]
        assert made.definition.decode_reference(raw, version, lenient=True) == (
            decoded,
            vector["read"],
        )
        ours = decoded.to_json(version)
        assert made.from_json(ours, version) == decoded
        # These are compared as strings, so that the order of names counts too.
        assert str(_in_java(ours)) == str(_in_java(vector["json"]))


def test_what_java_writes_of_it_is_written(taken: list[tuple[dict[str, Any], Any]]) -> None:
    for vector, decoded in taken:
        definition, version = type(decoded).definition, vector["version"]
        try:
            written = definition.encode(decoded, version)
        except EncodeError:
            assert vector["written"] is None
            continue
        assert definition.encode_reference(decoded, version) == written
        if vector["written"] is not None:
            assert written.hex() == vector["written"]
        # Java does not write unknown tags out of order; here they are sorted.
        assert type(decoded).decode(written, version) == decoded


def test_what_strict_reading_takes_is_read_alike(taken: list[tuple[dict[str, Any], Any]]) -> None:
    for vector, decoded in taken:
        raw, version = bytes.fromhex(vector["hex"]), vector["version"]
        try:
            strict = type(decoded).decode_prefix(raw, version)
        except DecodeError:
            continue
        assert strict == (decoded, vector["read"])
