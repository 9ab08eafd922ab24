"""Captures: pcap and pcapng files, the TCP streams in them, and the frames in those."""
