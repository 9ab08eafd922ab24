"""What the site holds and in which order: every page of docs/, and the pages about the project."""

from __future__ import annotations

from typing import Final

# Section → pages, by their paths in the repository without ".md". A page stands in one section.
SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "Begin": (
        "docs/tutorial",
        "docs/cookbook",
        "docs/glossary",
        "docs/cli",
        "docs/json",
        "docs/formats",
        "docs/containers",
        "docs/platforms",
        "docs/comparison",
    ),
    "Messages and records": (
        "docs/reference/README",
        "docs/error-codes",
        "docs/sizes",
        "docs/headers",
        "docs/header-conventions",
        "docs/columnar",
        "docs/limits",
        "docs/performance",
    ),
    "Message specs": (
        "docs/lint",
        "docs/breaking",
        "docs/bench",
        "docs/cost",
        "docs/guide",
        "docs/test-data",
        "docs/releases",
        "docs/vendor",
    ),
    "Clusters": (
        "docs/three-ways",
        "docs/tap",
        "docs/rehearse",
        "docs/request-logs",
        "docs/tls-captures",
        "docs/call",
        "docs/audit",
        "docs/real-brokers",
    ),
    "Analyses": (
        "docs/answers",
        "docs/tables",
        "docs/internal-topics",
        "docs/cluster-metadata",
        "docs/storage",
        "docs/every-hour",
        "docs/delta",
        "docs/cluster",
        "docs/scale",
    ),
    "Spark": (
        "docs/spark",
        "docs/spark-captures",
        "docs/spark-functions",
        "docs/headers-jobs",
        "docs/spark-delta",
        "docs/spark-platforms",
    ),
    "Project": (
        "CONTRIBUTING",
        "ARCHITECTURE",
        "docs/survey",
        "docs/decisions",
        "docs/notes/performance",
        "CHANGELOG",
        "docs/roadmap",
        "SECURITY",
        "CODE_OF_CONDUCT",
    ),
}
# Public modules whose docstrings are the API reference, in the order of their pages.
MODULES: Final[tuple[str, ...]] = (
    "flexwire",
    "flexwire.codec",
    "flexwire.records",
    "flexwire.records.conventions",
    "flexwire.records.kip82",
    "flexwire.columnar",
    "flexwire.protocol",
    "flexwire.protocol.audit",
    "flexwire.logs",
    "flexwire.logs.request_log",
    "flexwire.capture.tls",
    "flexwire.tap",
    "flexwire.client",
    "flexwire.specs.bench",
    "flexwire.specs.guide",
    "flexwire.testing",
    "flexwire.report",
    "flexwire.answers",
    "flexwire.answers.state",
    "flexwire.spark",
    "flexwire.spark.answers",
    "flexwire.spark.functions",
    "flexwire.wire",
    "flexwire.errors",
)
# Rooms with public names of their own that only other rooms call.
NOT_PUBLIC: Final[frozenset[str]] = frozenset()
