"""The tap: a proxy that captures what clients and brokers say to each other.

It stands before a cluster without the cluster's help: clients bootstrap at the tap, and wherever a
response advertises a broker's address the tap puts one of its own in its place, so that the next
connection comes to it too. All else passes byte for byte, as fast as it comes, and the capture gets
what was really sent. Which bytes are frames, and which response answers which request, is
`flexwire.protocol`'s to say; how a capture is written is `flexwire.capture.files.pcapng`'s.

`flexwire.client` sends requests of its own to brokers. Both begin TLS by `flexwire.client.tls`.

The laws of this room (tests below `tests/`):

- The capture has what was sent, before the tap rewrites it, and the tap's own remarks stand in
  comments, or it would be no evidence (`net/test_rewriting.py`, `net/test_stamping.py`).
- A rehearsal takes versions away and adds none, and answers keep the order of requests, so that a
  client meets what a broker of that release would do (`net/test_rehearsal_rules.py`,
  `net/test_rehearsing.py`).
- A fault is done to what it fits and to nothing else. A broker gets whole requests that a client
  sent, or the beginning of one that was cut; responses keep their order (`net/test_faults.py`).
- Under TLS credentials are asterisks in the capture, because a file is read by others
  (`net/test_withholding.py`).
- Frames are whole within a file of the tap (`capture/test_capture_directory.py`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexwire.client.notation import HostPort, parse_host_port
    from flexwire.tap.metrics import MetricsPort, TapStatistics
    from flexwire.tap.security import ListenTls, TapSecurity, UpstreamTls
    from flexwire.tap.tap import Tap, run_tap

__all__ = [
    "HostPort",
    "ListenTls",
    "MetricsPort",
    "Tap",
    "TapSecurity",
    "TapStatistics",
    "UpstreamTls",
    "parse_host_port",
    "run_tap",
]

_HOMES = {
    "HostPort": "flexwire.client.notation",
    "ListenTls": "flexwire.tap.security",
    "MetricsPort": "flexwire.tap.metrics",
    "Tap": "flexwire.tap.tap",
    "TapSecurity": "flexwire.tap.security",
    "TapStatistics": "flexwire.tap.metrics",
    "UpstreamTls": "flexwire.tap.security",
    "parse_host_port": "flexwire.client.notation",
    "run_tap": "flexwire.tap.tap",
}


def __getattr__(name: str) -> object:
    # Callers of brokers do not need the tap, which loads the writer of captures.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'flexwire.tap' has no attribute {name!r}")
