"""A small S3 server that fails on request, and records requests.

The server's answers may be errors, or contain incomplete or incorrect data. The server keeps every
content that a key has had, so that an answer can be outdated.
"""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.storage.servers import BUCKET, HOST, environment, s3_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = 1000
_RANGE = re.compile(r"bytes=(\d+)-(\d*)|bytes=-(\d+)")


class Version(NamedTuple):
    """A key's content at a given time; without data, the key was removed."""

    data: bytes | None
    when: datetime

    @property
    def tag(self) -> str:
        return hashlib.md5(self.data or b"", usedforsecurity=False).hexdigest()


class Asked(NamedTuple):
    """One request: its number, its method, and its purpose."""

    number: int
    method: str
    key: str
    query: dict[str, str]
    is_range: bool

    @property
    def is_listing(self) -> bool:
        return self.method == "GET" and "list-type" in self.query

    @property
    def is_lease(self) -> bool:
        return "/_lease/" in f"{self.key}{self.query.get('prefix', '')}"

    @property
    def is_read(self) -> bool:
        return self.method in {"GET", "HEAD"}

    @property
    def is_body(self) -> bool:
        return self.method == "GET" and not self.query and bool(self.key)


@dataclass
class Answer:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    # How many bytes of the body are sent before the connection ends.
    cut: int | None = None


BEFORE = ("500", "503", "reset")
"""Ways in which a request fails without an effect."""

AFTER = ("lost", "500 after")
"""Ways in which a request fails after its effect."""

OF_BODIES = ("cut", "short", "long", "another range", "whole", "older", "gone")
"""Ways to answer a read with other bytes."""


class Store:
    """The server's content; ``way`` determines how a request fails, if one is to fail.

    ``sent`` counts the bytes in response bodies.
    """

    def __init__(self) -> None:
        self.keys: dict[str, list[Version]] = {}
        self.uploads: dict[str, tuple[str, dict[int, bytes]]] = {}
        self.way: Callable[[Asked], str] = lambda _: ""
        self.asked: list[Asked] = []
        self.sent = 0
        self.lock = threading.Lock()

    def now(self) -> dict[str, bytes]:
        """Return every key with its content."""
        return {k: v[-1].data for k, v in self.keys.items() if v[-1].data is not None}

    def put(self, key: str, data: bytes | None) -> Version:
        made = Version(data, datetime.now(UTC).replace(microsecond=0))
        self.keys.setdefault(key, []).append(made)
        return made

    def age(self, part: str, seconds: float) -> None:
        """Make every key with this part in its name older."""
        for key, versions in self.keys.items():
            if part in key:
                older = [
                    one._replace(when=one.when - timedelta(seconds=seconds)) for one in versions
                ]
                self.keys[key] = older

    def seen(self, key: str, way: str) -> Version | None:
        """Return the facts that a reader gets about a key."""
        versions = self.keys.get(key, [])
        if way == "gone" or not versions:
            return None
        if way == "older":
            versions = versions[:-1]
        return versions[-1] if versions and versions[-1].data is not None else None

    def request(self, asked: Asked, headers: dict[str, str], body: bytes, way: str) -> Answer:
        if way in BEFORE:
            return failed(way)
        answer = self._done(asked, headers, body, way)
        if way in AFTER:
            return failed("reset" if way == "lost" else "500")
        return answer

    def _done(self, asked: Asked, headers: dict[str, str], body: bytes, way: str) -> Answer:
        if asked.is_listing:
            return self._list(asked.query, way)
        if asked.is_read:
            return self._read(asked, headers, way)
        if asked.query.keys() & {"uploads", "uploadId"}:
            return self._upload(asked, body)
        if asked.method == "PUT":
            if headers.get("if-none-match") == "*" and asked.key in self.now():
                return error(412, "PreconditionFailed")
            return Answer(headers={"ETag": f'"{self.put(asked.key, body).tag}"'})
        for key in re.findall(r"<Key>(.*?)</Key>", body.decode()) or [asked.key]:
            self.put(key, None)
        return answer_of("DeleteResult", "")

    def _upload(self, asked: Asked, body: bytes) -> Answer:
        if "uploads" in asked.query:
            name = f"upload{len(self.asked)}"
            self.uploads[name] = asked.key, {}
            told = f"<Bucket>{BUCKET}</Bucket><Key>{asked.key}</Key><UploadId>{name}</UploadId>"
            return answer_of("InitiateMultipartUploadResult", told)
        name = asked.query["uploadId"]
        if name not in self.uploads:
            return error(404, "NoSuchUpload")
        key, parts = self.uploads[name]
        if asked.method == "PUT":
            parts[int(asked.query["partNumber"])] = body
            return Answer(headers={"ETag": f'"{Version(body, datetime.now(UTC)).tag}"'})
        del self.uploads[name]
        if asked.method == "DELETE":
            return Answer(204)
        numbers = map(int, re.findall(r"<PartNumber>(\d+)</PartNumber>", body.decode()))
        made = self.put(key, b"".join(parts[number] for number in numbers))
        told = f"<Key>{escape(key)}</Key><ETag>{made.tag}</ETag>"
        return answer_of("CompleteMultipartUploadResult", told)

    def _read(self, asked: Asked, headers: dict[str, str], way: str) -> Answer:
        if not asked.key:
            return Answer()
        version = self.seen(asked.key, way)
        if version is None or version.data is None:
            return error(404, "NoSuchKey")
        told = {
            "ETag": f'"{version.tag}"',
            "Last-Modified": format_datetime(version.when, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        if headers.get("if-match", f'"{version.tag}"').strip('"') != version.tag:
            return error(412, "PreconditionFailed")
        data, size, status = version.data, len(version.data), 200
        if (match := _RANGE.fullmatch(headers.get("range", ""))) and way != "whole":
            first = size - int(match[3]) if match[3] else int(match[1])
            last = min(int(match[2]) if match[2] else size - 1, size - 1)
            if first >= size:
                return error(416, "InvalidRange")
            if way == "another range":
                first, last = (first + 1, last + 1) if last + 1 < size else (first - 1, last - 1)
                first = max(first, 0)
            told["Content-Range"] = f"bytes {first}-{last}/{size}"
            data, status = version.data[first : last + 1], 206
        if way == "short":
            data = data[: len(data) // 2]
        answer = Answer(status, told, data)
        if way == "cut":
            answer.cut = len(data) // 2
        if way == "long":
            told["Content-Length"] = str(len(data) + 100)
            answer.cut = len(data)
        return answer

    def _list(self, query: dict[str, str], way: str) -> Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after") or ""
        rows: list[tuple[str, Version]] = []
        common: set[str] = set()
        for key in sorted(self.keys):
            version = self.seen(key, way)
            if version is None or not key.startswith(prefix) or key <= after:
                continue
            inner = key[len(prefix) :].split(delimiter, 1) if delimiter else [key]
            if len(inner) > 1:
                common.add(prefix + inner[0] + delimiter)
            else:
                rows.append((key, version))
        if way == "half":
            # The answer states that the list is complete.
            rows = rows[: len(rows) // 2]
        most = int(query.get("max-keys", PAGE))
        is_cut, rows = len(rows) > most, rows[:most]
        text = f"<KeyCount>{len(rows)}</KeyCount><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
        text += "".join(map(_row, rows))
        text += "".join(
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>"
            for one in sorted(common)
        )
        if is_cut:
            text += f"<NextContinuationToken>{escape(rows[-1][0])}</NextContinuationToken>"
        answer = answer_of("ListBucketResult", text)
        answer.cut = len(answer.body) // 2 if way == "cut" else None
        return answer


def _row(row: tuple[str, Version]) -> str:
    key, one = row
    return (
        f"<Contents><Key>{escape(key)}</Key><ETag>{one.tag}</ETag>"
        f"<Size>{len(one.data or b'')}</Size>"
        f"<LastModified>{one.when:%Y-%m-%dT%H:%M:%S.000Z}</LastModified></Contents>"
    )


def answer_of(name: str, text: str) -> Answer:
    """Send an answer in XML."""
    return Answer(body=f"<{name}>{text}</{name}>".encode())


def error(status: int, code: str) -> Answer:
    return Answer(
        status, body=f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    )


def failed(way: str) -> Answer:
    if way == "reset":
        return Answer(0)
    if way == "503":
        return error(503, "SlowDown")
    return error(500, "InternalError")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Store
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        query.pop("x-id", None)
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        headers = {name.lower(): value for name, value in self.headers.items()}
        store = self.store
        with store.lock:
            asked = Asked(len(store.asked), self.command, key, query, "range" in headers)
            store.asked.append(asked)
            answer = store.request(asked, headers, body, store.way(asked))
        if bucket != BUCKET:
            answer = error(404, "NoSuchBucket")
        if not answer.status:
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return
        self.send_response(answer.status)
        answer.headers.setdefault("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            with store.lock:
                store.sent += len(answer.body)
            self.wfile.write(answer.body[: answer.cut])
            if answer.cut is not None:
                self.close_connection = True

    def handle_expect_100(self) -> bool:
        told = super().handle_expect_100()
        self.wfile.flush()
        return told

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
        """Log nothing."""


@contextmanager
def serving(store: Store) -> Iterator[str]:
    handler = type("Of", (Handler,), {"store": store})
    server = ThreadingHTTPServer((HOST, 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with environment(**s3_environment(server.server_address[1])):
            yield f"s3://{BUCKET}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
