"""Build the vector package: a directory of files, and a wheel that contains them.

    python -m tools.vectors_package DIRECTORY

flexwire proposes cases from the specs of the catalog (`tools/vectors_proposals.py`), and
`tools/java/Judge.java` records with the jars of `RELEASE` how Apache Kafka treats each case. If
Kafka does not read a valid case to its last byte, or writes other bytes, the build stops. Java 17
or newer and Maven are required. The same specs and jars produce the same bytes.

The repository contains the manifest of the whole package and a package of a few messages, with
which the tests build without Java. ``--keep`` writes both again.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import itertools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from flexwire.atomic_files import write_together
from flexwire.vectors.package import (
    FORMAT,
    MANIFEST,
    Expected,
    Manifest,
    PackageFile,
    Vector,
    json_schema,
)
from tools.maven import ROOT
from tools.vectors_proposals import header_proposals, proposals, record_proposals
from tools.vectors_wheel import wheel, wheel_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tools.vectors_proposals import Proposal

    Judge = Callable[[list[dict[str, Any]]], Iterable[dict[str, Any]]]

RELEASE = "4.4.0"
EDITION = 1
"""The number of this package among the packages for the same release."""
PROGRAM = ROOT / "tools" / "java" / "Judge.java"
KEPT = ROOT / "tests" / "vectors" / "package"
FEW = (
    "AbortTransactionRecord",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "HeartbeatRequest",
    "MetadataRequest",
    "OffsetCommitKey",
    "ProduceRequest",
    "RequestHeader",
    "ResponseHeader",
    "WriteTxnMarkersResponse",
)
"""The messages of the package in the repository: some of each type, with records among them."""
FEW_BATCHES = ("magic-0-lz4", "magic-1-gzip", "magic-2-none-headers")
"""The kinds of record batches in it."""
README = Path(__file__).parent / "vectors_readme.md"
NOTICE = """flexwire-vectors

The bytes, JSON values and refusals in this package were made or confirmed by running the classes of
Apache Kafka, which is:

  Apache Kafka
  Copyright The Apache Software Foundation.
  Licensed under the Apache License, Version 2.0.

It contains no source code of Apache Kafka. flexwire is not a product of the Apache Software
Foundation. Apache Kafka is its trademark.
"""


class Contradiction(Exception):  # noqa: N818 - the name says what it is
    """A case that Apache Kafka does not read or write as flexwire proposed."""


def kafka_judge(jars: Path) -> Judge:
    """Return a function that asks the classes in a directory of jars."""

    def judge(questions: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        names = sorted(str(one) for one in jars.glob("kafka*.jar"))
        command = ["java", "-Xmx1g", "-cp", f"{jars}/*", str(PROGRAM), *names]
        lines = "".join(f"{json.dumps(one)}\n" for one in questions)
        ran = subprocess.run(
            command, input=lines, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True
        )
        yield from map(json.loads, ran.stdout.splitlines())

    return judge


def jar_digests(jars: Path) -> dict[str, str]:
    """Return the SHA-256 of each jar of Kafka in a directory, by its name."""
    named = sorted(jars.glob("kafka*.jar"))
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in named}


def build(
    judge: Judge,
    jars: dict[str, str],
    names: tuple[str, ...] = (),
    sorts: tuple[str, ...] = (),
) -> dict[str, bytes]:
    """Return the files of the package by name, for all messages or the named ones.

    ``sorts`` are the kinds of record batches; by default all kinds.

    Raises `Contradiction` if Apache Kafka does not confirm a valid case.
    """
    messages = [*proposals(RELEASE, names)]
    groups = {
        "messages.jsonl": [one for one in messages if one.damage is None],
        "hostile.jsonl": [one for one in messages if one.damage is not None],
        "headers.jsonl": [*header_proposals(RELEASE, names)],
        "records.jsonl": [*record_proposals(sorts)],
    }
    asked = [one for group in groups.values() for one in group]
    answers = iter(judge([one.question for one in asked]))
    counts: Counter[Expected] = Counter()
    files, told = {}, []
    for name, group in groups.items():
        pairs = zip(group, itertools.islice(answers, len(group)), strict=True)
        vectors = [judged(proposal, answer) for proposal, answer in pairs]
        counts.update(one.expected for one in vectors)
        lines = b"".join(msgspec.json.encode(one) + b"\n" for one in vectors)
        digest = hashlib.sha256(lines).hexdigest()
        told.append(PackageFile(f"{name}.gz", len(vectors), len(lines), digest))
        files[f"{name}.gz"] = gzip.compress(lines, 9, mtime=0)
    manifest = Manifest(
        format=FORMAT,
        version=f"{RELEASE}.{EDITION}",
        kafka=RELEASE,
        jars=jars,
        expected={one: counts[one] for one in Expected},
        files=told,
    )
    return {
        MANIFEST: _pretty(msgspec.to_builtins(manifest)),
        "schema.json": _pretty(json_schema()),
        **files,
        "README.md": README.read_bytes(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "NOTICE": NOTICE.encode(),
    }


def judged(proposal: Proposal, answer: dict[str, Any]) -> Vector:
    """Return the vector for a case and Apache Kafka's result."""
    vector = Vector(
        case=proposal.case,
        expected=Expected.REFUSE,
        message=proposal.facts.get("message"),
        type=proposal.facts.get("type"),
        api_key=proposal.facts.get("apiKey"),
        version=proposal.facts.get("version"),
        hex=proposal.data.hex(),
        damage=proposal.damage,
    )
    if "refused" in answer:
        if proposal.damage is None:
            raise Contradiction(f"{proposal.case}: Kafka refuses it: {answer['refused']}")
        return msgspec.structs.replace(vector, refused=answer["refused"])
    written = answer.get("written", UNSET)
    is_whole = answer["read"] == len(proposal.data)
    is_same = written in {UNSET, vector.hex}
    # Kafka reads the highest tag, but never writes it.
    if proposal.damage is None and not (is_whole and (is_same or written is None)):
        raise Contradiction(f"{proposal.case}: Kafka reads or writes other bytes: {answer}")
    # Kafka does not rewrite record batches, so nothing confirms a damaged one.
    is_valid = is_whole and is_same and (proposal.damage is None or "written" in answer)
    known = answer.get("known")
    back = answer.get("back")
    return msgspec.structs.replace(
        vector,
        expected=Expected.TAKE if is_valid else Expected.EITHER,
        header_version=answer.get("headerVersion"),
        json=answer["json"],
        read=None if is_whole else answer["read"],
        written=UNSET if is_same else written,
        known=None if known in {vector.hex, written} else known,
        # The converter loses unknown tagged fields.
        decode_only=proposal.damage is None and back not in {vector.hex, known},
    )


def _pretty(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def main(arguments: list[str]) -> None:
    """Build the package into a directory, and the wheel beside it."""
    parser = argparse.ArgumentParser(description="Build the package of vectors and its wheel.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--keep", action="store_true", help="write what the repository keeps")
    given = parser.parse_args(arguments)
    from tools.broker import jars  # noqa: PLC0415 - tests build without a broker's jars

    place = jars(RELEASE)
    judge, digests = kafka_judge(place), jar_digests(place)
    files = build(judge, digests)
    out = given.directory / "flexwire-vectors"
    write_together(out, files)
    version = json.loads(files[MANIFEST])["version"]
    write_together(given.directory, {wheel_name(version): wheel(files, version)})
    manifest = json.loads(files[MANIFEST])
    size = sum(map(len, files.values()))
    cases = sum(one["cases"] for one in manifest["files"])
    sys.stdout.write(f"{cases} cases, {size} bytes, in {out}\n")
    if given.keep:
        write_together(KEPT, {MANIFEST: files[MANIFEST]})
        few = build(judge, digests, FEW, FEW_BATCHES)
        kept = {name: few[name] for name in few if name == MANIFEST or name.endswith(".gz")}
        write_together(KEPT / "few", kept)
    elif (KEPT / MANIFEST).read_bytes() != files[MANIFEST]:
        sys.exit(f"error: {KEPT / MANIFEST} is of other cases; look at the change, then --keep")


if __name__ == "__main__":
    main(sys.argv[1:])
