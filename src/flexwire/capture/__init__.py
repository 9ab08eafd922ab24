"""Captures: the TCP connections in pcap and pcapng files, and the Kafka frames in those.

A capture is what somebody else saw of a connection. Packets may be missing, cut off, repeated or
out of order, the beginning may be missing, and the connection may not be Kafka. Each step undoes
one of these and accounts for every byte:

- `files` reads packets, and the TCP segments in them.
- `reassembly` decides which connection a segment belongs to, puts each direction in order, cuts it
  into frames, and decides whether the connection is Kafka at all.
- `pairing` finds the request that each response answers.
- `tls` opens TLS where a key log has the secrets.

Nothing is dropped silently, and memory is bounded whatever a file holds. What a frame says is read
by `flexwire.protocol`.
"""
