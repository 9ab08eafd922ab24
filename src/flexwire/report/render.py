"""Render facts as a single HTML file that requires no network, no fonts and no other file."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from flexwire.facts import units
from flexwire.facts.facts import Facts
from flexwire.report import answers, audit, charts, cluster, footnotes, matrix, tables
from flexwire.report.limits import FINDINGS
from flexwire.report.page_environment import page_environment, read_template_file
from flexwire.report.tables import ReportCell, ReportColumn, ReportTable, build, size, text

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from flexwire.facts.facts import ConnectionFacts, OtherConnection


LARGEST_BYTES: Final = 2_000_000
"""The maximum size of a page in bytes, whatever the facts contain."""


@dataclass(frozen=True, slots=True)
class _PageRoom:
    """The limits of a page: rows per table, characters per string, and the part of the matrix."""

    rows: int
    letters: int
    matrix: float


# Honest facts fit within the first limits. Hostile names may take up ten times as much room.
_ROOMS: Final = (
    _PageRoom(tables.ROW_LIMIT, units.FACT_LIMIT, 1),
    _PageRoom(100, 600, 0.6),
    _PageRoom(40, 300, 0.3),
    _PageRoom(15, 120, 0.2),
    _PageRoom(3, 60, 0.1),
)


def render(facts: Facts) -> str:
    """Return the report as one HTML document of at most `LARGEST_BYTES`.

    On the same machine, the same facts always result in the same text. Every string in the facts is
    treated as hostile: it is escaped, it is truncated if it is too long, and non-printing
    characters are made visible. If the page is too large, its tables are limited to fewer rows and
    state how many are missing.
    """
    plain = facts.to_json()
    template = _environment().get_template("report.html.j2")
    pictures: _PictureCache | None = None
    page = ""
    for room in _ROOMS:
        shown_facts = Facts.from_json(units.safe(plain, room.letters))
        pictures = pictures or _pictures(shown_facts)
        page = template.render(_view(shown_facts, room, pictures)).strip() + "\n"
        if len(page.encode()) <= LARGEST_BYTES:
            break
    return page


@cache
def _environment() -> Environment:
    # A process that renders several reports compiles the templates only once.
    environment = page_environment("flexwire.report", "the report", "spark")
    environment.filters.update(
        breakable=breakable,
        dashed=_dashed,
        folded=folded,
        count=units.count,
        share_text=units.share_text,
        human_bytes=units.human_bytes,
        exact_bytes=units.exact_bytes,
        moment=units.moment,
        plural=units.plural,
        share=units.share,
        span=units.span,
    )
    return environment


# The maximum number of characters in a cell, by kind of column: four lines in the narrowest column.
_MOST_SHOWN = {"text": 80, "reason": 150, "hex": 160}


def breakable(text: str) -> Markup:
    """Return the escaped text, with marks where a narrow column may break a name."""
    from markupsafe import Markup, escape  # noqa: PLC0415  comes with the template engine

    pieces = re.split(r"(?<=[a-z])(?=[A-Z])|(?<=[./_])(?=[A-Za-z])|(?<=>)", text)
    return Markup("<wbr>").join(escape(piece) for piece in pieces)


def folded(text: str, kind: str) -> tuple[str, str]:
    """Split a long text into the part that a cell shows and the part that is revealed on request.

    For a short text, the rest is empty.

    >>> folded("orders, payments", "text")
    ('orders, payments', '')
    """
    most = _MOST_SHOWN.get(kind, 0)
    # Hiding just a word or two takes up more room than it saves.
    if not most or len(text) <= most * 3 // 2:
        return text, ""
    end = text.rfind(" ", 0, most)
    return (text[:end], text[end + 1 :]) if end > 0 else (text, "")


def _dashed(verdict: str) -> str:
    """Return the style sheet class for a verdict."""
    return verdict.replace(" ", "-")


def _view(facts: Facts, room: _PageRoom, pictures: _PictureCache) -> dict[str, Any]:
    return {
        "facts": facts,
        "totals": facts.totals,
        "of": tables.of,
        "style": read_template_file("flexwire.report", "report.css"),
        "script": read_template_file("flexwire.report", "report.js"),
        "question": audit.title(facts),
        "further_findings": facts.left_out.get(FINDINGS, 0),
        "chosen": audit.chosen(facts),
        "sentences": audit.sentences(facts),
        "newest": [
            footnotes.newest_sentence(share, facts.totals.requests) for share in facts.audit.newest
        ],
        "clients": footnotes.clients(facts),
        "about_clients": footnotes.about_clients(facts),
        "about_connections": footnotes.about_connections(facts),
        "about_versions": footnotes.about_versions(facts),
        "matrix": matrix.build_matrix(facts, room.matrix),
        "symbols": matrix.SYMBOLS,
        "verdicts": _verdict_shares(facts),
        "api_label": matrix.api_label,
        "client_label": matrix.client_label,
        "decision": decision(facts.connections),
        "charts": pictures.drawn,
        "has_sizes": charts.has_sizes(facts),
        "tables": {name: table.first(room.rows) for name, table in _tables(facts).items()},
        "answers": answers.parts(facts, pictures.answers, room.rows),
        "unseen": answers.unseen(facts),
        "exact_moment": lambda time: units.moment(time, exact=True),
    }


@dataclass(frozen=True, slots=True)
class _PictureCache:
    """The pictures. Each picture is drawn only once, because drawing takes the most time."""

    drawn: dict[str, charts.Chart | None]
    answers: dict[str, charts.Chart | None]


def _pictures(facts: Facts) -> _PictureCache:
    return _PictureCache(
        _charts(facts), {answer.name: answers.chart(answer) for answer in facts.answers}
    )


def _charts(facts: Facts) -> dict[str, charts.Chart | None]:
    return {
        "timeline": charts.timeline_chart(facts),
        "api_bytes": charts.api_chart(facts),
        "api_messages": charts.api_message_chart(facts),
        "clients": charts.client_chart(facts),
        "latencies": charts.latency_chart(facts),
        "compression": charts.compression_chart(facts),
    }


def _tables(facts: Facts) -> dict[str, tables.ReportTable]:
    return {
        "findings": audit.finding_table(facts),
        "audited": audit.client_table(facts),
        "pins": audit.pin_table(facts),
        "libraries": audit.library_table(facts),
        "cluster": cluster.cluster_table(facts),
        "apis": tables.api_table(facts),
        "clients": tables.client_table(facts),
        "latencies": tables.latency_table(facts),
        "topics": tables.topic_table(facts),
        "record_headers": tables.record_header_table(facts),
        "tagged_fields": tables.tagged_field_table(facts),
        "failure_counts": tables.failure_count_table(facts),
        "refused": tables.refused_table(facts),
        "failures": tables.failure_table(facts),
        "lenient": tables.lenient_table(facts),
        "others": other_table(facts.connections),
        "sources": tables.source_table(facts),
    }


def _verdict_shares(facts: Facts) -> list[tuple[str, int, float]]:
    """Return each verdict with its number of requests and their share of all requests."""
    requests: Counter[str] = Counter()
    for use in facts.version_uses:
        requests[use.verdict] += use.requests
    whole = requests.total()
    return [
        (verdict, requests[verdict], requests[verdict] / whole)
        for verdict in matrix.VERDICTS
        if requests[verdict]
    ]


def decision(connections: ConnectionFacts) -> str:
    """Return one or two sentences about how Kafka connections were recognized.

    >>> from flexwire.facts.facts import ConnectionFacts
    >>> decision(ConnectionFacts(given=("port 9092",)))
    'A connection counts as Kafka if one of its endpoints was specified as a broker: port 9092.'
    """
    if connections.given:
        ends = ", ".join(connections.given)
        return (
            "A connection counts as Kafka if one of its endpoints was specified as a broker: "
            f"{ends}."
        )
    return (
        "No broker was specified, so a connection counts as Kafka if some of its bytes are valid "
        "in the Kafka protocol, for example if they decode as a request."
    )


def other_table(connections: ConnectionFacts) -> ReportTable:
    """Return the table of connections that are not Kafka, with the largest first."""

    def row(other: OtherConnection) -> list[ReportCell]:
        when = units.moment(other.first_time_us)
        return [
            text(f"{other.client} > {other.broker}"),
            ReportCell(when, units.moment(other.first_time_us, exact=True), other.first_time_us),
            ReportCell(other.looks_like or "unknown", note=other.evidence),
            size(other.request_bytes),
            size(other.response_bytes),
        ]

    columns = (
        ReportColumn(
            "Connection",
            "text",
            ("the endpoint that is probably the client, and the other endpoint"),
        ),
        ReportColumn("Since (UTC)", "text"),
        ReportColumn("Looks like", "reason"),
        ReportColumn("Sent"),
        ReportColumn("Received"),
    )
    order = sorted(
        connections.others,
        key=lambda other: (-other.request_bytes - other.response_bytes, repr(other)),
    )
    caption = "Connections that do not use Kafka's protocol, most bytes first"
    return build(caption, columns, order, row, total=connections.not_kafka)
