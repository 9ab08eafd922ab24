"""Who breaks, on the terminal: the sentences of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.printable import printable

if TYPE_CHECKING:
    from flexwire.report import Facts


def print_audit(facts: Facts) -> None:
    """Print what the audit says of each release, the gravest first."""
    from flexwire.report.audit import sentences
    from flexwire.report.cluster import cluster_sentences

    for release, told in sentences(facts):
        print(f"Kafka {printable(release)}:")
        for _, sentence in (*told, *cluster_sentences(facts.audit, release)):
            # Client ids and topics may hold anything, even what a terminal obeys.
            print(f"  {printable(sentence)}")
