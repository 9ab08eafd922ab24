"""Key logs: TLS connections of a capture opened by secrets that a client or a broker logged.

A capture of TLS shows when who sent how much, and nothing else. Where one end wrote its secrets to
a key log, and the capture has the connection from its handshake on, what was sent can be read.

```
packets ─▶ connections ─▶ streams ─▶ records ─▶ opened ─▶ a plain capture
                              key log ─▶ keys ─┘
```
The captures are written anew before anything else reads them: what opens as plain connections, all
else as it is. So nothing above knows of TLS. A record is authenticated: what opens is what was
sent. A connection that is not decrypted is counted with its reason. No secret is ever shown.
"""

from __future__ import annotations

from flexwire.capture.tls.captures import OpenedCaptures, open_captures
from flexwire.capture.tls.connections import TlsCounts
from flexwire.capture.tls.keylog import KeyLog

__all__ = ["KeyLog", "OpenedCaptures", "TlsCounts", "open_captures"]
