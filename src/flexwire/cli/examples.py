"""What each command's help shows as examples, but where its own text has them."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "analyze": (
        "flexwire analyze captures --out analysis",
        "flexwire analyze kafka-request.log* --out analysis --release 4.0",
        "flexwire analyze /var/kafka/data --out analysis --answers storage",
    ),
    "answers": (
        "flexwire answers analysis",
        "flexwire answers analysis chargeback errors --labels teams.csv",
    ),
    "capture open": ("flexwire capture open tls.pcapng --keys secrets.log --out opened",),
    "demo": ("flexwire demo --out out/demo",),
    "encode": (
        """flexwire encode MetadataRequest '{"topics": null}' --version 4 --defaults""",
        "flexwire encode MetadataRequest request.json --version latest --as base64",
    ),
    "records dump": (
        "flexwire records dump /var/kafka/data/orders-0 --deep",
        "flexwire records dump 00000000000000000000.log --offsets 100-120 --format json",
    ),
    "schema breaking": (
        "flexwire schema breaking specs --against main:specs",
        "flexwire schema breaking specs --against release:4.0",
        "flexwire schema breaking --explain TAG_REUSED",
    ),
    "schema cost": (
        "flexwire schema cost captures --specs specs",
        "flexwire schema cost captures --encoding flexible --format csv",
    ),
    "schema docs": ("flexwire schema docs --out site",),
    "schema error-tags": ("flexwire schema error-tags release:4.4 --out specs",),
    "schema errors": ("flexwire schema errors 16", "flexwire schema errors COORDINATOR"),
    "schema import": ("flexwire schema import kafka-clients-4.4.0.jar --out catalog",),
    "schema lint": ("flexwire schema lint specs", "flexwire schema lint --explain ALL"),
    "schema list": (
        "flexwire schema list Fetch",
        "flexwire schema list --module metadata --release 4.0",
    ),
    "schema resolve": (
        "flexwire schema resolve FetchRequest --version 12",
        "flexwire schema resolve PingRequest --specs specs --version latest",
    ),
    "tap": (
        "flexwire tap --upstream localhost:9092 --out captures",
        "flexwire tap --upstream ssl://b1:9093 --listen ssl://localhost:9193 --throwaway-ca try",
    ),
    "warmup": ("flexwire warmup",),
}


def epilog(name: str) -> str | None:
    """The examples of a command as click takes them, by the command's name after ``flexwire``."""
    if name not in EXAMPLES:
        return None
    return "\n".join(["\b", "Examples:", *(f"  {one}" for one in EXAMPLES[name])])
