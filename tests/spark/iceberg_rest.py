"""Serve an Iceberg REST catalog on loopback, with the minimum that pyiceberg needs.

SQLite stores the catalog. The server checks a token, refuses a commit whose requirements are not
met, and can lose a response.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "a-token-of-the-test"  # noqa: S105 - it opens nothing


class LostError(Exception):
    """The error response to a commit that succeeded."""


_STATUS = {
    LostError: 500,
    NoSuchTableError: 404,
    NoSuchNamespaceError: 404,
    NamespaceAlreadyExistsError: 409,
    TableAlreadyExistsError: 409,
    CommitFailedException: 409,
}


class RestHandler(BaseHTTPRequestHandler):
    """One request. ``lost`` is the number of further commits to which the response is an error."""

    catalog: ClassVar[SqlCatalog]
    lost: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        self._answer({})

    def do_HEAD(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self._answer(json.loads(self.rfile.read(size)))

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def _answer(self, body: dict[str, Any]) -> None:
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._send(401, _error("NotAuthorizedException", "no token", 401))
            return
        try:
            status, content = 200, self._result(body)
        except tuple(_STATUS) as error:
            status = _STATUS[type(error)]
            content = _error(type(error).__name__, str(error), status)
        self._send(status, content)

    def _send(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _result(self, body: dict[str, Any]) -> dict[str, Any]:
        parts = self.path.partition("?")[0].strip("/").split("/")[1:]
        match parts:
            case ["config"]:
                return {"defaults": {}, "overrides": {}}
            case ["namespaces"]:
                self.catalog.create_namespace(tuple(body["namespace"]))
                return {"namespace": body["namespace"], "properties": {}}
            case ["namespaces", name]:
                return {"namespace": [name], "properties": self._properties(name)}
            case ["namespaces", name, "tables"]:
                return self._create(name, CreateTableRequest.model_validate(body))
            case ["namespaces", name, "tables", table] if self.command == "POST":
                return self._commit((name, table), body)
            case ["namespaces", name, "tables", table]:
                return _loaded(self.catalog.load_table((name, table)))
        raise AssertionError(self.path)

    def _properties(self, name: str) -> dict[str, Any]:
        return {**self.catalog.load_namespace_properties((name,))}

    def _create(self, name: str, asked: CreateTableRequest) -> dict[str, Any]:
        given: dict[str, Any] = {
            "identifier": (name, asked.name),
            "schema": asked.table_schema,
            "location": asked.location,
            "properties": asked.properties,
        }
        if asked.stage_create:
            return _loaded(self.catalog.create_table_transaction(**given)._table)
        return _loaded(self.catalog.create_table(**given))

    def _commit(self, identifier: tuple[str, str], body: dict[str, Any]) -> dict[str, Any]:
        asked = CommitTableRequest.model_validate({"identifier": None, **body})
        table: Any = SimpleNamespace(name=lambda: identifier)
        done = self.catalog.commit_table(table, asked.requirements, asked.updates)
        if self.lost:
            self.lost.pop()
            raise LostError
        return {
            "metadata-location": done.metadata_location,
            "metadata": json.loads(done.metadata.model_dump_json()),
        }


def _loaded(table: Any) -> dict[str, Any]:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }


def _error(kind: str, text: str, code: int) -> dict[str, Any]:
    return {"error": {"message": text, "type": kind, "code": code}}


@contextmanager
def rest_catalog(place: Path) -> Iterator[str]:
    """Serve a catalog in a directory. Return its address."""
    RestHandler.catalog = SqlCatalog("rest", uri=f"sqlite:///{place}/rest.db")
    server = ThreadingHTTPServer(("127.0.0.1", 0), RestHandler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        RestHandler.catalog.close()
