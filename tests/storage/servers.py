"""Run object stores on loopback: moto for S3, an emulator for Google's, and a faulty store."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import fsspec
import pytest
from gcp_storage_emulator.server import create_server
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

from flexwire.storage import filesystems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BUCKET = "captures"
HOST = "127.0.0.1"
ACCOUNT = "123456789012"
AZURITE = "FLEXWIRE_AZURITE"
"""The variable with the path of azurite-blob: it comes from npm, which tests do not use."""

ACCOUNT_NAME = "devstoreaccount1"
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


def backend() -> object:
    """Return moto's content, which is read without a request."""
    return s3_backends[ACCOUNT]["aws"]


@contextmanager
def environment(**values: str | None) -> Iterator[None]:
    """Set variables that no store has been opened with."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            if value is None:
                patch.delenv(name, raising=False)
            else:
                patch.setenv(name, value)
        filesystems._open_library.cache_clear()
        yield
    filesystems._open_library.cache_clear()


def s3_environment(port: int, **more: str | None) -> dict[str, str | None]:
    return {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
        **more,
    }


@contextmanager
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address=HOST, port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        with environment(**s3_environment(port)):
            files = filesystems.open_store(f"s3://{BUCKET}").files
            files.call_s3("create_bucket", Bucket=BUCKET)
            yield f"s3://{BUCKET}"
    finally:
        server.stop()


@contextmanager
def gs() -> Iterator[str]:
    server = create_server(HOST, 0, in_memory=True, default_bucket=BUCKET)
    server.start()
    try:
        port = server._api._httpd.socket.getsockname()[1]
        with (
            environment(STORAGE_EMULATOR_HOST=f"http://{HOST}:{port}"),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setitem(fsspec.config.conf, "gcs", {"token": "anon"})
            yield f"gs://{BUCKET}"
    finally:
        server.stop()


@contextmanager
def az() -> Iterator[str]:
    """Run Azurite from npm; its account and key are the same for everybody."""
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    command = [os.environ[AZURITE], "--inMemoryPersistence", "--skipApiVersionCheck"]
    command += ["--disableTelemetry", "--blobPort", str(port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet) as server:
        try:
            until(lambda: socket.create_connection((HOST, port)).close())
            connection = (
                f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT_NAME};AccountKey={ACCOUNT_KEY};"
                f"BlobEndpoint=http://{HOST}:{port}/{ACCOUNT_NAME};"
            )
            with environment(AZURE_STORAGE_CONNECTION_STRING=connection):
                filesystems.open_store(f"az://{BUCKET}").files.mkdir(BUCKET)
                yield f"az://{BUCKET}"
        finally:
            server.kill()


def until(connect: Callable[[], None]) -> None:
    """Wait until a server listens, for half a minute at most."""
    for _ in range(300):
        with suppress(OSError):
            return connect()
        time.sleep(0.1)
    return connect()


class Misbehaving(BaseHTTPRequestHandler):
    """Answer every request in the way that the class attribute ``way`` specifies."""

    protocol_version = "HTTP/1.1"
    way = ""
    ended = threading.Event()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.way == "silent":
            self.ended.wait()
            self.close_connection = True
        elif self.way == "refusing":
            body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            self._answer(403, body, len(body))
        elif self.command == "HEAD":
            self._answer(200, b"", 1000)
        else:
            self._answer(206, b"x" * 10, 1000)
            self.close_connection = True

    def _answer(self, status: int, body: bytes, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("ETag", '"one"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
        """Log nothing."""


@contextmanager
def misbehaving(way: str) -> Iterator[int]:
    """Yield the port of a server that is ``silent``, ``refusing``, or closes during each answer."""
    ended = threading.Event()
    handler = type("Handler", (Misbehaving,), {"way": way, "ended": ended})
    server = ThreadingHTTPServer((HOST, 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
