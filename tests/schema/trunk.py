"""Make specs like those of Kafka's trunk after 4.4 from the newest release of the bundled catalog.

Every request and response specifies its header versions. The request header has a version 3 with a
tagged client instance id (KIP-1313), and three requests have a version with that header. From that
version on, the bodies of telemetry requests do not contain the id. Source: Kafka's pull requests
23317, 23511, 23544 and 23651.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from flexwire.schema.catalog import bundled_catalog
from flexwire.schema.header_versions import spec_header_versions
from flexwire.schema.importer import import_specs
from flexwire.schema.parse import parse_spec
from flexwire.schema.spec import HeaderVersions, MessageSpec, MessageType
from flexwire.schema.write import write_spec
from flexwire.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

RELEASE = "4.5.0-preview"
OFFSET_DELETE, GET_TELEMETRY, PUSH_TELEMETRY = 47, 71, 72
WITH_HEADER_3 = {
    "OffsetDeleteRequest": ({"0": "1", "1+": "3"}, Versions(0, 1), "1+"),
    "OffsetDeleteResponse": ({"0": "0", "1+": "1"}, Versions(0, 1), "1+"),
    "GetTelemetrySubscriptionsRequest": ({"0": "2", "1+": "3"}, Versions(0, 1), "0+"),
    "GetTelemetrySubscriptionsResponse": ({"0+": "1"}, Versions(0, 1), "0+"),
    "PushTelemetryRequest": ({"0": "2", "1+": "3"}, Versions(0, 1), "0+"),
    "PushTelemetryResponse": ({"0+": "1"}, Versions(0, 1), "0+"),
}
REQUEST_HEADER = """{
  "type": "header", "name": "RequestHeader", "validVersions": "1-3", "flexibleVersions": "2+",
  "fields": [
    {"name": "RequestApiKey", "type": "int16", "versions": "0+"},
    {"name": "RequestApiVersion", "type": "int16", "versions": "0+"},
    {"name": "CorrelationId", "type": "int32", "versions": "0+"},
    {"name": "ClientId", "type": "string", "versions": "1+", "nullableVersions": "1+",
     "ignorable": true, "flexibleVersions": "none"},
    {"name": "ClientInstanceId", "type": "uuid", "versions": "3+", "taggedVersions": "3+", "tag": 0,
     "ignorable": true}
  ]
}"""


def trunk_spec(spec: MessageSpec) -> MessageSpec:
    """Return the spec in trunk's form."""
    if spec.name == "RequestHeader":
        return parse_spec(REQUEST_HEADER, spec.name)
    if spec.name in WITH_HEADER_3:
        headers, valid, flexible = WITH_HEADER_3[spec.name]
        is_request = spec.type is MessageType.REQUEST
        return replace(
            spec,
            fields=tuple(
                replace(field, versions=Versions(0, 0), ignorable=True)
                if is_request and field.identifies_client_instance
                else field
                for field in spec.fields
            ),
            valid_versions=valid,
            flexible_versions=Versions.parse(flexible),
            header_versions=HeaderVersions.parse(headers),
        )
    if spec.type.is_api:
        return replace(spec, header_versions=spec_header_versions(spec))
    return spec


@cache
def trunk_texts() -> dict[tuple[str, str], str]:
    """Return the text of every spec by module and name."""
    catalog = bundled_catalog()
    release = catalog.releases[-1]
    entries = [catalog.entry(name) for name in catalog.names()]
    return {
        (entry.module, entry.name): write_spec(trunk_spec(entry.whole_spec(release)))
        for entry in entries
        if entry.releases.get(release)
    }


def write_trunk(root: Path) -> Path:
    """Write the specs below ``root``, one directory a module; return the release's directory."""
    for (module, name), text in trunk_texts().items():
        path = root / RELEASE / module / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root / RELEASE


def trunk_catalog(root: Path) -> Path:
    """Import the specs on top of the bundled catalog; return the new catalog's directory."""
    import_specs(write_trunk(root / "specs"), root / "catalog", base=bundled_catalog())
    return root / "catalog"
