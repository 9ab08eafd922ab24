"""A codec for the vector runner, built on flexwire; an argument makes it misbehave.

Run the codec as a program: ``python codec.py [HABIT]``.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from flexwire.codec import message
from flexwire.errors import FlexwireError
from flexwire.records import decode_batches

if TYPE_CHECKING:
    from collections.abc import Callable

Question = dict[str, Any]


def answered(question: Question, *, as_hex: bool = False) -> dict[str, Any]:
    """Return the answer that a correct codec gives."""
    try:
        if question["do"] == "decode-records":
            return {"json": {"batches": _batches(bytes.fromhex(question["hex"]))}}
        kind, version = message(question["message"], "4.4.0"), question["version"]
        if question["do"] == "encode":
            return {"hex": kind.from_json(question["json"], version).encode(version).hex()}
        found = kind.decode(bytes.fromhex(question["hex"]), version)
        if as_hex:
            return {"hex": found.encode(version).hex()}
        return {"json": found.to_json(version)}
    except FlexwireError as error:
        return {"refused": str(error)}


def _batches(data: bytes) -> list[dict[str, Any]]:
    batches = decode_batches(data)
    return [
        {
            "magic": batch.magic,
            "baseOffset": batch.base_offset if batch.magic > 1 else -1,
            "checksum": batch.crc,
            "records": [
                {
                    "offset": record.offset,
                    "timestamp": record.timestamp,
                    "key": _hex(record.key),
                    "value": _hex(record.value),
                    "headers": [[_hex(key), _hex(value)] for key, value in record.headers],
                }
                for record in batch.records
            ],
        }
        for batch in batches
    ]


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _lenient(question: Question) -> dict[str, Any]:
    if question["do"] != "decode":
        return answered(question)
    try:
        found = message(question["message"], "4.4.0").decode(
            bytes.fromhex(question["hex"]), question["version"], lenient=True
        )
    except FlexwireError as error:
        return {"refused": str(error)}
    return {"json": _in_java(found.to_json(question["version"]))}


def _in_java(form: Any) -> Any:
    """Return a JSON form with tags as in Java, as int32; flexwire adds 2**32 to a repeated tag."""
    if isinstance(form, list):
        return [_in_java(one) for one in form]
    if not isinstance(form, dict):
        return form
    if form.keys() == {"tag", "data"}:
        return {"tag": (form["tag"] + 2**31) % 2**32 - 2**31, "data": form["data"]}
    return {name: _in_java(value) for name, value in form.items()}


def _forgetful(question: Question) -> dict[str, Any]:
    return {"json": _without(answered(question).get("json"))}


def _without(form: Any) -> Any:
    if isinstance(form, list):
        return [_without(one) for one in form]
    if not isinstance(form, dict):
        return form
    return {name: _without(one) for name, one in form.items() if name != "_unknownTaggedFields"}


def _crashing(question: Question) -> dict[str, Any]:
    if question["case"].endswith("/full"):
        sys.stderr.write("no room\n")
        sys.exit(7)
    return answered(question)


def _silent(question: Question) -> dict[str, Any]:
    if question["case"].endswith("/full"):
        time.sleep(3600)
    return answered(question)


def _endless(question: Question) -> dict[str, Any]:
    if question["case"].endswith("/full"):
        while True:
            sys.stdout.write("x" * 65536)
    return answered(question)


def _chatty(question: Question) -> dict[str, Any]:
    sys.stdout.write("starting\n")
    return answered(question)


def _noisy(question: Question) -> dict[str, Any]:
    sys.stderr.write("x" * 1_000_000)
    return answered(question)


def _off(question: Question) -> dict[str, Any]:
    """Return an answer with base64 in place of hex, or with each number increased by one."""
    answer = answered(question)
    if "hex" in answer:
        return {"hex": base64.b64encode(bytes.fromhex(answer["hex"])).decode()}
    return {"json": _more(answer["json"])} if "json" in answer else answer


def _more(form: Any) -> Any:
    if isinstance(form, list):
        return [_more(one) for one in form]
    if isinstance(form, dict):
        return {name: _more(one) for name, one in form.items()}
    return form + 1 if type(form) is int else form


HABITS: dict[str, Callable[[Question], Any]] = {
    "good": answered,
    "hex": lambda question: answered(question, as_hex=True),
    "lenient": _lenient,
    "forgetful": _forgetful,
    "crashing": _crashing,
    "silent": _silent,
    "endless": _endless,
    "chatty": _chatty,
    "noisy": _noisy,
    "off": _off,
    "refusing": lambda _: {"refused": "I take nothing"},
    "taking": lambda _: {"json": {}},
    "ignorant": lambda _: {"unsupported": "I know no message"},
    "mute": lambda _: {},
    "undecided": lambda _: {"hex": "", "refused": "both"},
    "listing": lambda _: [],
    "other": lambda question: {**answered(question), "case": "another"},
}


def main(habit: str) -> None:
    """Answer each line."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(HABITS[habit](json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["good"]))
