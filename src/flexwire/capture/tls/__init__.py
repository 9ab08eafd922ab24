"""Decrypt TLS connections in a capture, with secrets that a client or a broker has logged.

Without secrets, a capture of TLS shows only who sent how many bytes, and when. The data of a
connection can be decrypted if one end wrote its secrets to a key log, and if the capture contains
the connection from the handshake.

```
packets ─▶ connections ─▶ streams ─▶ records ─▶ opened ─▶ a plain capture
                              key log ─▶ keys ─┘
```
The captures are rewritten before any other code reads them: connections that can be decrypted
become plain TCP, and everything else is copied. No other package therefore needs to know about TLS.
A record is authenticated, so decrypted data is exactly the data that was sent. A connection that is
not decrypted is counted by the reason. No secret is ever shown.
"""

from __future__ import annotations

from flexwire.capture.tls.captures import OpenedCaptures, open_captures
from flexwire.capture.tls.connections import TlsCounts
from flexwire.capture.tls.keylog import KeyLog

__all__ = ["KeyLog", "OpenedCaptures", "TlsCounts", "open_captures"]
