"""In a user's project, strict mypy and pyright find each mistake and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# A comment names the errors that are expected on its line, or the revealed type.
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
    request = flexwire.message("MetadataRequest")
    reveal_type(request)  # type[MetadataRequest]
    reveal_type(request.decode(b"", 12).topics)  # list[MetadataRequestTopic] | None
    request(topcs=None)  # error: call-arg
    reveal_type(flexwire.message("MetadataRequest", "4.0"))  # type[Message]
    reveal_type(flexwire.message("MetadataReqest"))  # type[Message]
    flexwire.message(3)  # error: call-overload
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
LINES = list(enumerate(PROJECT.splitlines(), 1))
MISTAKES = {
    number: set(line.split("# error: ")[1].split()) for number, line in LINES if "# error: " in line
}
REVEALED = {number: line.split("# ")[1] for number, line in LINES if "reveal_type(" in line}
_TOLD = re.compile(r"^\w+\.py:(\d+): (error|note): (.*?)(?:  \[([\w-]+)\])?$", re.MULTILINE)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("project")
    (place / "project.py").write_text(PROJECT, encoding="utf-8")
    (place / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    return place


def run(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    # Both programs exit with 1 if they find mistakes.
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def mypy(project: Path) -> list[tuple[int, str, str]]:
    """Return mypy's messages about the project: (line, error code or "", text)."""
    told = run(project, "mypy", "--strict", "--config-file=", "project.py")
    return [(int(line), code, text) for line, _, text, code in _TOLD.findall(told)]


@pytest.fixture(scope="module")
def pyright(project: Path) -> list[tuple[int, str, str]]:
    """Return pyright's messages about the project: (line, severity, text)."""
    told = run(project, "basedpyright", "--pythonpath", sys.executable, "--outputjson")
    return [
        (one["range"]["start"]["line"] + 1, one["severity"], one["message"])
        for one in json.loads(told)["generalDiagnostics"]
    ]


def test_mypy_finds_each_mistake_and_nothing_else(mypy: list[tuple[int, str, str]]) -> None:
    found: dict[int, set[str]] = {}
    for line, code, _ in mypy:
        if code:
            found.setdefault(line, set()).add(code)
    assert found == MISTAKES


def test_mypy_knows_each_type(mypy: list[tuple[int, str, str]]) -> None:
    told = {line: text for line, _, text in mypy if text.startswith("Revealed type is ")}
    # mypy qualifies the names of types with their modules.
    shown = {
        line: re.sub(r"[\w.]+\.", "", text.removeprefix("Revealed type is ").strip('"'))
        for line, text in told.items()
    }
    assert shown == REVEALED


def test_pyright_finds_each_mistake_and_nothing_else(pyright: list[tuple[int, str, str]]) -> None:
    assert {line for line, severity, _ in pyright if severity == "error"} == MISTAKES.keys()
    assert {severity for _, severity, _ in pyright} == {"error", "information"}


def test_pyright_knows_each_type(pyright: list[tuple[int, str, str]]) -> None:
    shown = {
        line: text.split('" is "')[1].strip('"')
        for line, severity, text in pyright
        if severity == "information"
    }
    assert shown == REVEALED
