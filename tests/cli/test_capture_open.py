"""`flexwire capture open` reports what happened to the connections, and shows no secrets."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.errors import CaptureError
from tests.capture.traffic import request, response
from tests.tls import Authority
from tests.tls_streams import capture, contexts, converse, packets

if TYPE_CHECKING:
    from pathlib import Path


def test_it_counts_what_opened_and_why_others_did_not(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    said = [("request", request(1)), ("response", response(1))]
    keys = tmp_path / "keys.log"
    one, _ = converse(*contexts(authority, keys, ssl.TLSVersion.TLSv1_3), said)
    other, _ = converse(*contexts(authority, None, ssl.TLSVersion.TLSv1_3), said)
    found = packets(one.flights) + packets(other.flights, start=500_000)
    path = capture(tmp_path / "tls.pcapng", found)
    given = ["capture", "open", str(path), "--keys", str(keys), "--out", str(tmp_path / "out")]
    told = CliRunner().invoke(app, given)
    size = sum(len(data) for _, data in said)
    assert told.output.splitlines() == [
        f"TLS connections: 1 opened, 0 in part, 1 not; {size} bytes of data were decrypted",
        "  1 not opened: the key logs contain no secret for the connection",
        f"Written: {tmp_path}/out/opened-00001.pcapng, {tmp_path}/out/others.pcapng",
    ]
    again = CliRunner().invoke(app, given)
    assert isinstance(again.exception, CaptureError)
    keys.unlink()
    assert isinstance(CliRunner().invoke(app, given).exception, CaptureError)
