"""The MCP server answers the client of the same library through pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

from flexwire import __version__
from flexwire.cli.mcp.root import ServedRoot
from flexwire.cli.mcp.server import INSTRUCTIONS
from flexwire.cli.mcp.tools import TOOLS
from tests.cli.mcp.served import HOSTILE, REQUEST, ROWS, make_served
from tests.cli.test_terminal import OBEYED
from tests.modules import run
from tests.searching import in_make_long

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.slow

MODES = ["auto", *in_make_long("legacy")]
"""With the handshake of the protocol's first releases, and without that handshake."""
CALLS: dict[str, dict[str, Any]] = {
    "explain": {"data": REQUEST.hex()},
    "decode": {"file": "captures/tap-00001.pcapng", "packet": 4},
    "frames": {"file": "captures/tap-00001.pcapng"},
    "schema_show": {"message": "FetchRequest", "version": 12},
    "audit": {"analysis": "analysis"},
    "answers": {"analysis": "analysis", "name": "talkers"},
    "list": {},
}
# This program runs the command. On standard error, it prints the imported modules and the opened
# files.
WATCHED = """
import os, sys
opened = []
def hear(event, arguments):
    if event in {"open", "socket.connect", "socket.bind", "subprocess.Popen", "os.system"}:
        path, *rest = map(str, arguments)
        # A file below the root is opened by a descriptor, or part by part.
        if path.startswith("/proc/self/fd/"):
            path = os.readlink(path)
        opened.append((event, path, *rest))
sys.addaudithook(hear)
from flexwire.cli import main
sys.argv = ["flexwire", "mcp", sys.argv[1]]
try:
    main()
finally:
    import json
    print(json.dumps([sorted(sys.modules), opened]), file=sys.stderr)
"""


@asynccontextmanager
async def _connected(root: Path, mode: str) -> AsyncIterator[Client]:
    given = StdioServerParameters(command=sys.executable, args=["-m", "flexwire", "mcp", str(root)])
    with anyio.fail_after(300):
        async with Client(stdio_client(given), mode=mode) as client:
            yield client


def _text(result: Any) -> str:
    [content] = result.content
    text: str = content.text
    return text


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_a_client_lists_the_tools_and_calls_each(tmp_path: Path, mode: str) -> None:
    make_served(tmp_path / "root")
    before = _state(tmp_path)

    async def talk() -> None:
        async with _connected(tmp_path / "root", mode) as client:
            assert client.server_info is not None
            assert client.server_info.name == "flexwire"
            assert client.server_info.version == __version__
            assert client.instructions == INSTRUCTIONS
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == [tool.name for tool in TOOLS] == [*CALLS]
            for tool in listed:
                assert tool.annotations is not None
                assert tool.annotations.read_only_hint is True
                result = await client.call_tool(tool.name, CALLS[tool.name])
                text = _text(result)
                assert not result.is_error, text
                assert not {*text} & {*OBEYED}
                assert json.loads(text).keys() == {"result", "leftOut"}
            rows = json.loads(_text(await client.call_tool("answers", CALLS["answers"])))
            assert len(rows["result"]["rows"]) == ROWS
            assert rows["result"]["rows"][0]["client_id"] == HOSTILE

    anyio.run(talk)
    assert _state(tmp_path) == before


def _state(place: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file, with its modification time and content."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_what_fails_is_told_and_the_server_goes_on(tmp_path: Path, mode: str) -> None:
    make_served(tmp_path / "root")

    async def talk() -> None:
        async with _connected(tmp_path / "root", mode) as client:
            for path in ("../outside.hex", str(tmp_path / "outside.hex")):
                result = await client.call_tool("decode", {"file": path})
                assert result.is_error
                assert "OutsideRootError" in _text(result)
            result = await client.call_tool("list", {"directory": 3})
            assert result.is_error
            with pytest.raises(MCPError, match="the tools are explain, decode"):
                await client.call_tool("call", {"broker": "localhost:9092"})
            calls = [{"skip": skip, "rows": 1, **CALLS["answers"]} for skip in range(5)]
            texts: dict[int, str] = {}

            async def call(given: dict[str, Any]) -> None:
                texts[given["skip"]] = _text(await client.call_tool("answers", given))

            async with anyio.create_task_group() as group:
                for given in calls:
                    group.start_soon(call, given)
            clients = [json.loads(texts[skip])["result"]["rows"][0]["client_id"] for skip in texts]
            assert sorted(clients) == sorted([HOSTILE, "0", "1", "2", "3"])

    anyio.run(talk)


def _request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _lines(root: Path) -> str:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    about["clientInfo"] = {"name": "test", "version": "1"}
    lines = [
        _request(0, "initialize", **about),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            _request(number, "tools/call", name=name, arguments=given)
            for number, (name, given) in enumerate(CALLS.items(), 1)
        ),
        _request(9, "tools/call", name="list", arguments={"directory": str(root)}),
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.long
def test_it_only_reads_and_ends_when_its_input_ends(tmp_path: Path) -> None:
    make_served(tmp_path / "root")
    root = tmp_path / "root"
    with subprocess.Popen(
        [sys.executable, "-c", WATCHED, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(_lines(root))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(len(CALLS) + 2)]
        rest, errors = process.communicate(timeout=300)
    assert (process.returncode, rest) == (0, "")
    results = {answer["id"]: answer["result"] for answer in answers}
    assert [results[number]["isError"] for number in range(1, 8)] == [False] * 7
    assert results[9]["isError"] is True
    modules, opened = json.loads(errors.splitlines()[-1])
    assert not {"pyspark", "flexwire.client", "flexwire.tap.tap"} & {*modules}
    assert {event for event, *_ in opened} <= {"open"}
    read = [path for _, path, mode, _flags in opened if path.startswith(str(tmp_path))]
    assert any(path.endswith("facts.json") for path in read)
    assert all(path.startswith(str(root)) for path in read)
    written = [
        (path, mode)
        for _, path, mode, _flags in opened
        # Standard output is file descriptor 1.
        if any(letter in mode for letter in "wax+") and not path.isdigit()
    ]
    assert written == []


def test_a_root_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("none", "file"):
        done = run("flexwire", "mcp", str(tmp_path / name))
        assert (done.returncode, done.stdout) == (2, "")
        assert "'ROOT'" in done.stderr


@pytest.mark.long
def test_standard_input_that_is_closed_is_an_error(tmp_path: Path) -> None:
    program = (
        "import sys; sys.stdin = None; from flexwire.cli import main;"
        "sys.argv = ['flexwire', 'mcp', sys.argv[1]]; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "InputError: standard input is closed\n"


def test_nothing_of_the_protocol_is_imported_until_the_command_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, flexwire.cli.app; print('mcp' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout == "False\n"


def test_the_root_of_the_command_is_where_its_files_are(tmp_path: Path) -> None:
    with ServedRoot(tmp_path).directory(".") as opened:
        assert os.path.realpath(opened) == os.path.realpath(tmp_path)
