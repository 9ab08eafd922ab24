"""Captures: the TCP connections in pcap and pcapng files, and the Kafka frames in them.

A capture shows a connection from the outside. Packets may be missing, truncated, repeated or out of
order. The beginning may be missing, and the connection may not be Kafka. Each step handles one of
these problems and accounts for every byte:

- `files` reads packets and extracts their TCP segments.
- `reassembly` finds the connection that each segment belongs to, restores the order of each
  direction, splits it into frames, and decides whether the connection is Kafka.
- `pairing` finds the request that each response answers.
- `tls` decrypts TLS if a key log contains the secrets.

No byte of a file is dropped silently, and memory is bounded. `flexwire.protocol` reads the content
of a frame.

The laws of this package (tests below `tests/`):

- Every byte of every segment is in a frame or is counted, so a missing row means that traffic is
  missing (`capture/test_accounts.py`).
- Segments keep the order that they have in their file, and files are merged by the latest time read
  so far. Segments that are out of order by at most 64 places never split a connection
  (`capture/columns/test_merging.py`, `capture/test_permuted.py`).
- A fast path returns a connection before the assembler gets the connection's next segment. If the
  fast path kept the connection, two copies of its state would differ
  (`capture/columns/test_flows.py`).
- A kernel stops before any packet or header that it cannot read with certainty, and Python objects
  continue at the same place (`capture/columns/test_segments.py`, `capture/columns/test_turns.py`).
- Whether a connection is Kafka is decided when it has ended, because later frames may disprove an
  earlier verdict (`spark/test_connections.py`).
"""
