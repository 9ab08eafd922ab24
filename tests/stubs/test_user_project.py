"""A user's project type-checks: right uses pass `mypy --strict`, and each mistake is found."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# A line says in a comment which errors are expected on it, or which type is revealed.
PROJECT = """\
from __future__ import annotations

from typing import Any
from uuid import UUID

import flexwire
from flexwire import errors, load_specs
from flexwire.messages import FetchRequest, FetchResponse, MetadataRequest, ProduceRequest
from flexwire.messages import MetadataReqest  # error: attr-defined


def total(data: bytes, version: int) -> int:
    response = FetchResponse.decode(data, version=version)
    reveal_type(response)  # FetchResponse
    size = 0
    for topic in response.responses:
        reveal_type(topic.topic_id)  # UUID
        for partition in topic.partitions:
            reveal_type(partition.records)  # bytes | None
            size += len(partition.records or b"")
            size += len(partition.records)  # error: arg-type
    return size


def ask(names: list[str]) -> bytes:
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics, unknown_tagged_fields={9: b"x"})
    changed = request.replace(include_topic_authorized_operations=True)
    reveal_type(changed)  # MetadataRequest
    reveal_type(changed.topics)  # list[MetadataRequestTopic] | None
    reveal_type(changed.to_json(12))  # dict[str, Any]
    reveal_type(MetadataRequest.from_json({}, 12))  # MetadataRequest
    reveal_type(MetadataRequest.decode_prefix(b"", 12))  # tuple[MetadataRequest, int]
    return changed.encode(version=12)


def wrong() -> None:
    FetchRequest(max_wait=5)  # error: call-arg
    FetchRequest(max_wait_ms="5")  # error: arg-type
    FetchRequest(5)  # error: call-arg arg-type
    FetchRequest(topics=[MetadataRequest.MetadataRequestTopic()])  # error: list-item
    FetchRequest.FetchTopic(topic=None)  # error: arg-type
    request = MetadataRequest()
    request.topics[0]  # error: index
    request.controller_id  # error: attr-defined
    request.encode("12")  # error: arg-type
    request.unknown_tagged_fields["9"] = b""  # error: index
    ProduceRequest(transactional_id=None, acks=-1, topic_data=None)  # error: arg-type


def by_name(name: str) -> dict[str, Any]:
    made = flexwire.message(name)
    reveal_type(made)  # type[Message]
    own = load_specs("specs", mode="legacy").message("Ping")
    reveal_type(own)  # type[Message]
    load_specs("specs", mode="lax")  # error: arg-type
    try:
        reveal_type(made.decode(b"", 3).unknown_tagged_fields)  # dict[int, bytes]
    except errors.DecodeError as error:
        reveal_type(error.offset)  # int | None
    return made().to_json(3)


HEADER: UUID = FetchRequest.FetchTopic().topic_id
"""
_TOLD = re.compile(r"^\w+\.py:(\d+): (error|note): (.*?)(?:  \[([\w-]+)\])?$", re.MULTILINE)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, str, str]]:
    """What mypy says of the project: (line, error code or "", text)."""
    place: Path = tmp_path_factory.mktemp("project")
    (place / "project.py").write_text(PROJECT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "project.py"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return [(int(line), code, text) for line, _, text, code in _TOLD.findall(done.stdout)]


def test_each_mistake_is_found_and_nothing_else(told: list[tuple[int, str, str]]) -> None:
    expected = {
        (number, code)
        for number, line in enumerate(PROJECT.splitlines(), 1)
        if "# error: " in line
        for code in line.split("# error: ")[1].split()
    }
    assert {(line, code) for line, code, _ in told if code} == expected


def test_each_type_is_known(told: list[tuple[int, str, str]]) -> None:
    revealed = {line: text for line, code, text in told if text.startswith("Revealed type")}
    expected = {
        number: line.split("# ")[1]
        for number, line in enumerate(PROJECT.splitlines(), 1)
        if "reveal_type(" in line
    }
    assert revealed.keys() == expected.keys()
    for line, text in revealed.items():
        # mypy names types with their modules.
        shown = re.sub(r"[\w.]+\.", "", text.removeprefix("Revealed type is ").strip('"'))
        assert shown == expected[line], f"line {line}"
