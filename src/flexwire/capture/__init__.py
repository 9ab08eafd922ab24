"""Captures: pcap and pcapng files, the TCP streams in them, and the frames in those.

A capture is what somebody else saw of a connection: packets may be missing, cut off, repeated or
out of order, the start may be missing, and it may not be Kafka. So each step undoes one of these
and accounts for every byte: files give packets (`files`), packets give segments (`links`,
`segments`), the segments of a connection (`course`, `roles`) become two streams (`streams`), and
streams become frames (`framing`, `assembly`), errors among them. What the frames hold decides
whether the connection is Kafka at all (`evidence`). Nothing is dropped silently, and memory is
bounded whatever the file holds. What a frame says is `flexwire.protocol`'s to read.

Beside captures stand the files that a broker keeps: log segments, their indexes and their state.
"""
