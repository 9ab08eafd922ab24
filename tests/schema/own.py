"""Make a user's own catalog: the bundled releases of Kafka, and an invented release 4.5."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

from flexwire.schema.catalog import bundled_catalog
from flexwire.schema.importer import import_specs

if TYPE_CHECKING:
    from pathlib import Path

API_VERSIONS = 18
PING = 900
"""The api key of a message that does not exist in Kafka."""


def spec(name: str, valid: str, key: int, *fields: dict[str, str]) -> str:
    """Return the text of a request's or response's spec."""
    kind = "request" if name.endswith("Request") else "response"
    return json.dumps(
        {
            "apiKey": key,
            "type": kind,
            "name": name,
            "validVersions": valid,
            "flexibleVersions": "3+" if key == API_VERSIONS else "0+",
            "fields": fields,
        }
    )


def clients_jar(directory: Path) -> Path:
    """Write a kafka-clients 4.5.0 jar with an additional message and a new version of another
    message.
    """
    text = {"name": "Text", "type": "string", "versions": "0+"}
    software = [
        {"name": f"ClientSoftware{what}", "type": "string", "versions": "3+"}
        for what in ("Name", "Version")
    ]
    added = {"name": "Added", "type": "int8", "versions": "6+"}
    path = directory / "kafka-clients-4.5.0.jar"
    with zipfile.ZipFile(path, "w") as jar:
        for name, made in {
            "PingRequest": spec("PingRequest", "0", PING, text),
            "PingResponse": spec("PingResponse", "0", PING),
            "ApiVersionsRequest": spec("ApiVersionsRequest", "0-6", API_VERSIONS, *software, added),
        }.items():
            jar.writestr(f"common/message/{name}.json", made)
    return path


def own_catalog(directory: Path) -> Path:
    """Write the catalog; return its directory."""
    import_specs(clients_jar(directory), directory / "own", base=bundled_catalog())
    return directory / "own"
