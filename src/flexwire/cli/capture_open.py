"""`flexwire capture open`: captures of TLS, written anew as key logs open them."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("open")
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--keys",
    "keys",
    metavar="FILE",
    multiple=True,
    required=True,
    help='A key log, as SSLKEYLOGFILE has it; or "embedded", where pcapng files hold theirs. Can '
    "be given several times.",
)
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="An empty directory, or a new one, for the captures that are written.",
)
def capture_open(*, paths: tuple[str, ...], keys: tuple[str, ...], out: Path) -> None:
    """Open the TLS connections in captures.

    PATHS are captures (pcap or pcapng, also gzipped), directories of them, and patterns. What was
    sent in TLS connections whose secrets are in the key logs is written as if it had been sent
    without TLS: same ends, same times. All else is written as it is.

    The connections must have been captured from their handshake on. TLS 1.2 and 1.3 are opened, of
    cipher suites those with AES-GCM and ChaCha20-Poly1305. Others are counted with the reason.

    What is written is plain, so only you may read it. docs/tls-captures.md says how to log secrets.
    """
    from flexwire.capture.tls.sources import open_sources, read_key_logs
    from flexwire.storage.listing import list_sources

    done = open_sources(list_sources(paths), out, read_key_logs(keys))
    print(*done.counts.lines(), sep="\n")
    print(f"Written: {', '.join(map(str, done.paths)) or 'nothing, as there was no packet'}")
