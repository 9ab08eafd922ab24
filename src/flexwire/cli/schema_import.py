"""`flexwire schema import`: import Kafka's releases into a catalog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flexwire.cli.options import Format, format_option
from flexwire.cli.standard_input import spec_name, takes_standard_input
from flexwire.cli.terminal import print_line

if TYPE_CHECKING:
    from flexwire.schema.importer import ImportReport


@click.command("import")
@click.argument("sources", metavar="SOURCE...", nargs=-1)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="The catalog directory. The default is the catalog in flexwire's own package.",
)
@click.option(
    "--release", help="The release of the sources, if the sources do not state their release."
)
@click.option(
    "--drop",
    multiple=True,
    metavar="RELEASE",
    help="Remove this release from the catalog. Can be given multiple times.",
)
@click.option(
    "--fresh",
    is_flag=True,
    help="Create a catalog from the sources alone, without the releases of an existing catalog.",
)
@click.option(
    "--preview",
    is_flag=True,
    help="Mark the sources as not yet released: -preview is added to the name of a final release.",
)
@format_option
@takes_standard_input(sources=spec_name)
def schema_import(
    *,
    sources: tuple[str, ...],
    out: Path | None,
    release: str | None,
    drop: tuple[str, ...],
    fresh: bool,
    preview: bool,
    output: Format,
) -> None:
    """Add Kafka releases to a catalog of message specs.

    A catalog contains the fields and versions of specs, but not their comments. Every released
    version keeps its layout. The command adds the releases to the catalog in --out, or to a copy of
    the current catalog if --out does not contain a catalog yet. To use the result, pass --catalog
    DIR to a command, or set FLEXWIRE_CATALOG=DIR for all commands.

    SOURCE is a jar (kafka-clients contains the specs of requests and responses; other jars contain
    other specs), a directory of jars such as libs/ in a distribution, a source tree, REV: for a git
    revision of a source tree, a directory of releases (<release>/<module>/*.json), or - for a jar
    from standard input.

    A release whose name is not that of a final release, such as 4.5.0-SNAPSHOT, 4.5.0-rc1 or
    4.5.0-preview, is a preview. All commands can read a preview's messages, but the audit ignores
    previews.
    """
    import flexwire.schema
    from flexwire.schema.catalog import INDEX, Catalog, catalog
    from flexwire.schema.importer import import_specs

    if not sources and not drop:
        raise click.UsageError("give jars, source trees or directories, or a release to --drop")
    target = out or Path(flexwire.schema.__file__).with_name("bundled")
    base = None
    if not fresh:
        base = Catalog(target) if (target / INDEX).is_file() else catalog()
    report = import_specs(sources, target, base=base, release=release, drop=drop, preview=preview)
    if output is Format.JSON:
        _print_json(report, target)
    else:
        _print_text(report, target)


def _print_json(report: ImportReport, target: Path) -> None:
    form = {
        "read": list(report.read),
        "files": report.files,
        "messages": report.messages,
        "pairs": report.pairs,
        "specs": report.specs,
        "bytes": report.written_bytes,
        "releases": list(report.releases),
        "changed": [{"message": name, "version": version} for name, version in report.changed],
        "written": str(target),
    }
    print(json.dumps(form, ensure_ascii=False, indent=2))


def _print_text(report: ImportReport, target: Path) -> None:
    files = "1 file" if report.files == 1 else f"{report.files} files"
    print_line(f"read     {files} of {', '.join(report.read) or 'no release'}")
    messages = "1 message" if report.messages == 1 else f"{report.messages} messages"
    print(f"wrote    {messages}, {report.pairs} (message, version) pairs,")
    print_line(
        f"         in {report.specs} specs, {report.written_bytes / 1e6:.2f} MB, to {target}"
    )
    print_line(f"releases {', '.join(report.releases)}")
    if report.changed:
        print(
            f"changed  {len(report.changed)} pairs are laid out differently in different releases. "
            "The newest layout is the default; specify a release to use its layout"
        )
        for name, version in report.changed:
            print(f"         {name} v{version}")
