"""Which connections are Kafka, how that was decided, and what the others carried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.report import units
from flexwire.report.tables import Cell, Column, Table, build, size, text

if TYPE_CHECKING:
    from flexwire.report.facts import ConnectionFacts, OtherConnection


def decision(connections: ConnectionFacts) -> str:
    """How it was decided which connections are Kafka, in a sentence or two.

    >>> from flexwire.report.facts import ConnectionFacts
    >>> decision(ConnectionFacts(given=("port 9092",)))
    'A connection counts as Kafka when an end of it was given as a broker: port 9092.'
    """
    if connections.given:
        ends = ", ".join(connections.given)
        return f"A connection counts as Kafka when an end of it was given as a broker: {ends}."
    return (
        "No end was given as a broker, so a connection counts as Kafka when something on it reads"
        " as Kafka: a request that decodes by its spec, for instance."
    )


def other_table(connections: ConnectionFacts) -> Table:
    """Connections that are not Kafka, those with most bytes first."""

    def row(other: OtherConnection) -> list[Cell]:
        when = units.moment(other.first_time_us)
        return [
            text(f"{other.client} > {other.broker}"),
            Cell(when, units.moment(other.first_time_us, exact=True), other.first_time_us),
            Cell(other.looks_like or "unknown", note=other.evidence),
            size(other.request_bytes),
            size(other.response_bytes),
        ]

    columns = (
        Column("Connection", "text", "the end taken for the client's, and the other one"),
        Column("Since (UTC)", "text"),
        Column("Looks like", "reason"),
        Column("Sent"),
        Column("Received"),
    )
    order = sorted(
        connections.others,
        key=lambda other: (-other.request_bytes - other.response_bytes, repr(other)),
    )
    caption = "Connections that are not Kafka, most bytes first"
    return build(caption, columns, order, row, total=connections.not_kafka)
