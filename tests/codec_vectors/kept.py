"""The small vector package in the repository, with Apache Kafka's results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from flexwire.vectors import Vector, VectorPackage, read_package

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KEPT = Path(__file__).parents[1] / "vectors" / "package"
FEW = KEPT / "few"
GZIPS = ("messages.jsonl.gz", "hostile.jsonl.gz", "headers.jsonl.gz", "records.jsonl.gz")


def few() -> VectorPackage:
    """Return the kept package."""
    return read_package(FEW)


def vectors() -> dict[str, Vector]:
    """Return the kept vectors by case name."""
    return {one.case: one for one in few().vectors()}


def judge(questions: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Answer as Apache Kafka did when the package was built; raise KeyError for other questions."""
    yield from (_ANSWERS[_key(one)] for one in questions)


def _key(question: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(question.get(name) for name in ("message", "version", "hex"))


def _answers(found: Iterable[Vector]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {(one.message, one.version, one.hex): _answer(one) for one in found}


def _answer(vector: Vector) -> dict[str, Any]:
    if vector.refused is not None:
        return {"refused": vector.refused}
    read = len(vector.hex) // 2 if vector.read is None else vector.read
    answer: dict[str, Any] = {"json": vector.json, "read": read}
    if vector.message is None:
        return answer
    written = vector.hex if vector.written is UNSET else vector.written
    known = vector.known or written
    answer |= {"written": written, "known": known}
    answer["back"] = None if vector.decode_only else known
    if vector.header_version is not None:
        answer["headerVersion"] = vector.header_version
    return answer


_ANSWERS = _answers(few().vectors())
