"""The tap: a proxy that captures the traffic between clients and brokers.

The cluster needs no changes. Clients bootstrap at the tap. If a response advertises a broker's
address, the tap replaces it with one of its own addresses, so that the next connection also goes to
the tap. All other bytes pass unchanged and without delay, and the capture contains the bytes that
were actually sent. `flexwire.protocol` decides which bytes are frames, and which response answers
which request. `flexwire.capture.files.pcapng` writes captures.

`flexwire.client` sends the tap's own requests to brokers. Both packages use `flexwire.client.tls`
for TLS.

The laws of this package (tests below `tests/`):

- The capture contains the bytes that were sent, before the tap rewrites them. The tap adds its own
  remarks only as comments. Otherwise the capture would not be evidence (`net/test_rewriting.py`,
  `net/test_stamping.py`).
- A rehearsal removes versions and never adds one, and responses keep the order of requests, so that
  a client sees the behavior of a broker of the rehearsed release (`net/test_rehearsal_rules.py`,
  `net/test_rehearsing.py`).
- A fault affects only the frames that match it. A broker gets each request complete and unchanged,
  or only its beginning if the fault cuts requests. Responses keep their order
  (`net/test_faults.py`).
- Under TLS, credentials are replaced by asterisks in the capture, because other people read the
  file (`net/test_withholding.py`).
- Every frame is stored completely in one of the tap's capture files
  (`capture/test_capture_directory.py`).
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
    # Code that only calls brokers does not need the tap, which would load the capture writer.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'flexwire.tap' has no attribute {name!r}")
