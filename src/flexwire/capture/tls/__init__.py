"""Decrypt TLS connections in a capture, using secrets that a client or a broker has logged.

Without the secrets, a capture of TLS traffic shows only who sent how many bytes, and when. A
connection can be decrypted if one end has written its secrets to a key log, and if the capture
contains the connection from the handshake on.

```
packets ─▶ connections ─▶ streams ─▶ records ─▶ opened ─▶ a plain capture
                              key log ─▶ keys ─┘
```
Captures are rewritten before any other code reads them: connections that can be decrypted become
plain TCP, and everything else is copied. No other package therefore needs to know about TLS. Every
record is authenticated, so the decrypted data is exactly the data that was sent. A connection that
is not decrypted is counted under its reason. No secret is ever shown.
"""

from __future__ import annotations

from flexwire.capture.tls.captures import OpenedCaptures, open_captures
from flexwire.capture.tls.connections import TlsCounts
from flexwire.capture.tls.keylog import KeyLog

__all__ = ["KeyLog", "OpenedCaptures", "TlsCounts", "open_captures"]
