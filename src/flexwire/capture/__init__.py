"""Captures: the TCP connections in pcap and pcapng files, and the Kafka frames in those.

A capture is an outside view of a connection. Packets may be missing, truncated, repeated or out of
order, the beginning may be missing, and the connection may not be Kafka. Each step undoes one of
these and accounts for every byte:

- `files` reads packets, and the TCP segments in them.
- `reassembly` decides which connection a segment belongs to, puts each direction in order, cuts it
  into frames, and decides whether the connection is Kafka at all.
- `pairing` finds the request that each response answers.
- `tls` opens TLS if a key log has the secrets.

Nothing is dropped silently, and memory is bounded whatever a file holds. `flexwire.protocol` reads
the content of a frame.

The laws of this room (tests below `tests/`):

- Every byte of every segment is in a frame or counted, because a missing row has to mean missing
  traffic (`capture/test_accounts.py`).
- Segments keep the order of their file, and files are merged by the latest time read so far. Within
  64 segments no order splits a connection (`capture/columns/test_merging.py`,
  `capture/test_permuted.py`).
- A fast path hands a connection back before the assembler gets its next segment, or two copies of
  its state would differ (`capture/columns/test_flows.py`).
- A kernel stops before a packet or header that it is not sure of, and objects read that one from
  the same place (`capture/columns/test_segments.py`, `capture/columns/test_turns.py`).
- Whether a connection is Kafka is decided when it has ended, because later frames may disprove it
  (`spark/test_connections.py`).
"""
