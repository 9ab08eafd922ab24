"""Capture files: pcap and pcapng, their blocks and comments, and the TCP segments in them."""
