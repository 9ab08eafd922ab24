"""The tap: a proxy that captures what clients and brokers say to each other."""

from __future__ import annotations

from flexwire.net.host_port import HostPort, parse_host_port
from flexwire.net.statistics import TapStatistics
from flexwire.net.tap import Tap, run_tap

__all__ = ["HostPort", "Tap", "TapStatistics", "parse_host_port", "run_tap"]
