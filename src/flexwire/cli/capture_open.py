"""`flexwire capture open`: decrypt TLS captures with key logs, and write the decrypted captures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import Format, format_option
from flexwire.cli.standard_input import capture_name, plain_name, takes_standard_input
from flexwire.cli.terminal import print_line

if TYPE_CHECKING:
    from flexwire.capture.tls import OpenedCaptures


@click.command("open")
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--keys",
    "keys",
    metavar="FILE",
    multiple=True,
    required=True,
    help='A key log in SSLKEYLOGFILE format, or "embedded" if the pcapng files contain the '
    "secrets. Can be given multiple times.",
)
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The output directory for the captures; it must be empty or new.",
)
@format_option
@takes_standard_input(paths=capture_name, keys=plain_name)
def capture_open(
    *, paths: tuple[str, ...], keys: tuple[str, ...], out: Path, output: Format
) -> None:
    """Decrypt the TLS connections in captures.

    PATHS can be captures (pcap or pcapng, optionally gzipped), directories of captures, patterns,
    or - for standard input. If the key logs contain the secrets of a TLS connection, the command
    writes the connection's data as if the client had not used TLS, with the same addresses and
    times. All other packets are written unchanged.

    The capture must include the handshake of each connection. flexwire decrypts TLS 1.2 and 1.3
    with AES-GCM and ChaCha20-Poly1305. The command counts the connections that it cannot decrypt,
    and prints the reasons.

    The written captures are not encrypted, so the files are readable only by you.
    docs/tls-captures.md describes how to log secrets.
    """
    from flexwire.capture.tls.captures import open_sources, read_key_logs
    from flexwire.storage.file_search import list_captures

    opened = open_sources(list_captures(paths), out, read_key_logs(keys))
    if output is Format.JSON:
        print(json.dumps(_as_json(opened), ensure_ascii=False, indent=2))
        return
    for line in opened.counts.lines():
        print_line(line)
    print_line(f"Written: {', '.join(map(str, opened.paths)) or 'nothing, as there was no packet'}")


def _as_json(opened: OpenedCaptures) -> dict[str, Any]:
    counts = opened.counts
    return {
        "opened": counts.opened,
        "openedInPart": dict(counts.partly.most_common()),
        "notOpened": dict(counts.unopened.most_common()),
        "plainBytes": counts.plain_bytes,
        "lostBytes": counts.lost_bytes,
        "unreadBytes": counts.unread_bytes,
        "strayPackets": counts.stray_packets,
        "packets": counts.packets,
        "damaged": [
            {"source": str(damage.source), "offset": damage.offset, "reason": damage.reason}
            for damage in counts.damaged
        ],
        "written": [str(path) for path in opened.paths],
    }
