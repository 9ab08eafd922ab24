"""Key logs: TLS connections of a capture opened by secrets that a client or a broker logged.

A capture of TLS shows only who sent how much and when. If one end wrote its secrets to a key log,
and the capture has the connection from its handshake on, the data can be decrypted.

```
packets ─▶ connections ─▶ streams ─▶ records ─▶ opened ─▶ a plain capture
                              key log ─▶ keys ─┘
```
The captures are rewritten before anything else reads them: connections that open become plain, and
everything else is copied. So no other room knows about TLS. A record is authenticated, so decrypted
data is exactly the data that was sent. A connection that is not decrypted is counted with its
reason. No secret is ever shown.
"""

from __future__ import annotations

from flexwire.capture.tls.captures import OpenedCaptures, open_captures
from flexwire.capture.tls.connections import TlsCounts
from flexwire.capture.tls.keylog import KeyLog

__all__ = ["KeyLog", "OpenedCaptures", "TlsCounts", "open_captures"]
