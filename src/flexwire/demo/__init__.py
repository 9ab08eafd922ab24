"""The demo: an embedded cluster, real clients, and what they must not lose."""
