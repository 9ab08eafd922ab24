"""`flexwire schema list`: list the bundled messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import click

from flexwire.cli.options import Format, InputError, format_option
from flexwire.errors import short

if TYPE_CHECKING:
    from flexwire.schema.catalog import CatalogEntry


@click.command("list")
@click.argument("name", default="")
@click.option(
    "--module", help=("List only messages of this module: clients, metadata, group-coordinator, …")
)
@click.option(
    "--release", help="List only messages of this Kafka release; 4.0 means the newest 4.0 release."
)
@format_option
def schema_list(*, name: str, module: str | None, release: str | None, output: Format) -> None:
    """List the bundled messages.

    Each line contains a message, its versions, its flexible versions, and the releases that contain
    the message.

    NAME limits the list to messages whose name contains NAME, regardless of case.
    """
    from flexwire.schema.catalog import catalog

    bundled = catalog()
    if release is not None:
        release = bundled.release(release)
    rows = [
        listed_form(entry, release)
        for entry in map(bundled.entry, bundled.names())
        if name.lower() in entry.name.lower()
        and module in (None, entry.module)
        and (release is None or release in entry.releases)
    ]
    if not rows:
        _refuse(name, module)
    if output is Format.JSON:
        print(json.dumps(rows, indent=2))
        return
    _print(rows)


def _refuse(name: str, module: str | None) -> NoReturn:
    """Raise an error because nothing can be listed.

    The error names the most similar module or message.
    """
    from flexwire.schema.catalog import catalog
    from flexwire.schema.coercion import nearest

    modules = sorted({catalog().entry(message).module for message in catalog().names()})
    if module is not None and module not in modules:
        raise InputError(f"no module {short(module)}; {nearest(module, modules)}")
    if any(name.lower() in message.lower() for message in catalog().names()):
        raise InputError(f"no message in that module and release has {short(name)} in its name")
    # The error of this call names the most similar message.
    catalog().entry(name)
    raise AssertionError(name)


def listed_form(entry: CatalogEntry, release: str | None) -> dict[str, Any]:
    """Return the JSON form of a message: its versions, and the releases that contain it."""
    releases = entry.releases
    versions = entry.versions if release is None else releases[release]
    return {
        "message": entry.name,
        "module": entry.module,
        "type": entry.type.value,
        "apiKey": entry.api_key,
        "versions": str(versions),
        "flexibleVersions": str(entry.flexible_versions),
        "releases": {release_name: str(valid) for release_name, valid in releases.items()},
    }


def _print(rows: list[dict[str, Any]]) -> None:
    header = ("message", "module", "type", "key", "versions", "flexible", "releases")
    table = [header]
    for row in rows:
        releases = list(row["releases"])
        span = releases[0] if len(releases) == 1 else f"{releases[0]} … {releases[-1]}"
        key = "" if row["apiKey"] is None else str(row["apiKey"])
        table.append(
            (
                row["message"],
                row["module"],
                row["type"],
                key,
                row["versions"],
                row["flexibleVersions"],
                span,
            )
        )
    widths = [max(len(line[column]) for line in table) for column in range(len(header))]
    for line in table:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )
    print(f"\n{len(rows)} message{'s' * (len(rows) != 1)}")
