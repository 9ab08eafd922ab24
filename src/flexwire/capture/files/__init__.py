"""Capture files: pcap and pcapng files, their blocks and comments, and the TCP segments in them."""
