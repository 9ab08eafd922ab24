"""Compare the tap with a relay of bytes and with no relay, in the same run.

``python benchmarks/tap.py [--mb MB] [--requests N] [--rounds N]``. A client sends produce requests
of 1 MB, four at once, and then small ones, one after the other, to a broker that reads and answers
them. CPU is the user and system time of the process in the middle: milliseconds for each MB
produced, and for each small request. p50 and p99 are of small requests. The lowest of all rounds
counts. The relay of bytes uses asyncio's streams, with TLS on both sides if the tap has it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from flexwire.client.tls import client_context, server_context
from flexwire.messages import ListGroupsRequest, ProduceRequest, ProduceResponse, RequestHeader
from flexwire.tap import ListenTls, Tap, TapSecurity, UpstreamTls
from flexwire.tap.security import listener_names, make_throwaway_ca
from flexwire.tap.worker import keep_freed_memory

HERE = "127.0.0.1"
MB = 1_000_000
KINDS = ("direct", "relay", "tap")
CHUNK = 256 * 1024
PRODUCE, LIST_GROUPS = 0, 16


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def produced() -> bytes:
    header = RequestHeader(
        request_api_key=PRODUCE, request_api_version=7, correlation_id=1, client_id="bench"
    )
    partition = ProduceRequest.PartitionProduceData(index=0, records=bytes(MB))
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[partition])
    body = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
    return framed(header.encode(1) + body.encode(7))


def small() -> bytes:
    header = RequestHeader(
        request_api_key=LIST_GROUPS, request_api_version=0, correlation_id=1, client_id="bench"
    )
    return framed(header.encode(1) + ListGroupsRequest().encode(0))


PRODUCED, SMALL = produced(), small()
ANSWER = framed(bytes([0, 0, 0, 1]) + ProduceResponse().encode(7))


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Run a broker of a few lines, which answers each frame that arrives."""
    try:
        while head := await reader.readexactly(4):
            await reader.readexactly(int.from_bytes(head, "big"))
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, OSError):
        writer.close()


async def passing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve(told: dict) -> None:
    """Run one of the processes: print its port, and its CPU time when asked."""
    loop = asyncio.get_running_loop()
    made = [Path(one) for one in told["tls"]]
    inner = server_context(made[1], made[2]) if made else None
    outer = client_context(made[0]) if made else None
    if told["kind"] == "tap":
        security = TapSecurity(ListenTls(made[1], made[2]), UpstreamTls(made[0])) if made else None
        options = {} if security is None else {"security": security}
        keep_freed_memory()  # like the command
        options["processes"] = told["processes"]
        tap = Tap((HERE, 0), (HERE, told["upstream"]), Path(told["out"]), **options)
        await tap.start()
        port = tap.listen_address.port
    else:

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            far, near = await asyncio.open_connection(
                HERE, told["upstream"], limit=CHUNK, ssl=outer
            )
            await asyncio.gather(passing(reader, near), passing(far, writer))

        handler = answer if told["kind"] == "broker" else relay
        server = await asyncio.start_server(handler, HERE, 0, limit=CHUNK, ssl=inner)
        port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(time.process_time() + sum(map(used, multiprocessing.active_children())), flush=True)


def used(process: multiprocessing.process.BaseProcess) -> float:
    """Return the CPU seconds of a running process."""
    after_name = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


class Child:
    def __init__(
        self, kind: str, tls: list[str], upstream: int, out: str, processes: int = 1
    ) -> None:
        told = json.dumps(
            {"kind": kind, "tls": tls, "upstream": upstream, "out": out, "processes": processes}
        )
        self.process = subprocess.Popen(  # noqa: S603 - this file
            [sys.executable, __file__, "--child", told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self.process.stdout.readline())

    def cpu(self) -> float:
        self.process.stdin.write("cpu\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@contextmanager
def connected(port: int, tls: list[str]):
    with socket.create_connection((HERE, port)) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not tls:
            yield plain
            return
        with client_context(Path(tls[0])).wrap_socket(plain, server_hostname=HERE) as secured:
            yield secured


def receive(sock: socket.socket, count: int) -> None:
    left = count * len(ANSWER)
    while left:
        left -= len(sock.recv(left))


def measure(kind: str, tls: list[str], megabytes: int, requests: int) -> dict[str, float]:
    with ExitStack() as stack:
        out = stack.enter_context(tempfile.TemporaryDirectory())
        broker = Child("broker", tls, 0, out)
        stack.callback(broker.close)
        between = broker
        if kind != "direct":
            between = Child(kind, tls, broker.port, out)
            stack.callback(between.close)
        sock = stack.enter_context(connected(between.port, tls))
        for _ in range(3):
            sock.sendall(PRODUCED + SMALL)
            receive(sock, 2)
        begin = between.cpu()
        for _ in range(megabytes // 4):
            for _ in range(4):
                sock.sendall(PRODUCED)
            receive(sock, 4)
        middle = between.cpu()
        took = []
        for _ in range(requests):
            before = time.perf_counter()
            sock.sendall(SMALL)
            receive(sock, 1)
            took.append(time.perf_counter() - before)
        end = between.cpu()
    took.sort()
    return {
        "ms per MB": (middle - begin) * 1e3 / (megabytes // 4 * 4),
        "ms per request": (end - middle) * 1e3 / requests,
        "p50 ms": took[len(took) // 2] * 1e3,
        "p99 ms": took[len(took) * 99 // 100] * 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child")
    given = parser.parse_args()
    if given.child:
        asyncio.run(serve(json.loads(given.child)))
        return
    with tempfile.TemporaryDirectory() as directory:
        made = [str(one) for one in make_throwaway_ca(Path(directory), listener_names(HERE))]
        for name, tls in (("plain", []), ("TLS", made)):
            found: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
            for _ in range(given.rounds):
                for kind in KINDS:
                    for what, one in measure(kind, tls, given.mb, given.requests).items():
                        found[kind][what] = min(one, found[kind].get(what, one))
            for kind, figures in found.items():
                if kind == "direct":
                    figures = {what: one for what, one in figures.items() if what[0] == "p"}  # noqa: PLW2901 - a broker's own CPU says nothing
                told = "  ".join(f"{what} {one:7.3f}" for what, one in figures.items())
                print(f"{name:6} {kind:7} {told}")


if __name__ == "__main__":
    main()
