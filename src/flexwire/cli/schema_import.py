"""`flexwire schema import`: Kafka's releases into a catalog."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("import")
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write the catalog; by default the bundled one.",
)
def schema_import(*, source: Path, out: Path | None) -> None:
    """Write the catalog from Kafka's message specs.

    Facts only, and every released version keeps its layout.

    SOURCE is a directory of releases (<release>/<module>/*.json), or one release.
    """
    import flexwire.schema
    from flexwire.schema.importer import import_specs

    target = out or Path(flexwire.schema.__file__).with_name("bundled")
    report = import_specs(source, target)
    print(f"read     {report.files} files of {len(report.releases)} releases")
    print(f"wrote    {report.messages} messages, {report.pairs} (message, version) pairs,")
    print(f"         in {report.specs} specs, {report.written_bytes / 1e6:.2f} MB, to {target}")
    print(
        f"changed  {len(report.changed)} pairs changed their layout from release to release;"
        " the newest wins, the others are reached by naming the release"
    )
    for name, version in report.changed:
        print(f"         {name} v{version}")
