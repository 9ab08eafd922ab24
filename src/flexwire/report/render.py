"""Facts to one HTML file that needs nothing else: no network, no fonts, no other file."""

from __future__ import annotations

import re
from collections import Counter
from importlib import resources
from typing import TYPE_CHECKING, Any

from flexwire.report import answers, audit, charts, connections, matrix, tables, units
from flexwire.report.facts import Facts

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_TEMPLATES = "templates"


def render(facts: Facts) -> str:
    """The report as one HTML document.

    The same facts give the same text on the same machine. Every string in the facts is taken for
    hostile: it is escaped, cut where it is too long, and characters that do not print are shown.
    """
    facts = Facts.from_json(units.safe(facts.to_json()))
    page = _environment().get_template("report.html.j2").render(_view(facts))
    return page.strip() + "\n"


def _environment() -> Environment:
    # Imported here: reading facts needs no template engine, which is an optional dependency.
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  see above

    environment = Environment(
        loader=PackageLoader("flexwire.report", _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        breakable=_breakable,
        dashed=_dashed,
        count=units.count,
        human_bytes=units.human_bytes,
        exact_bytes=units.exact_bytes,
        moment=units.moment,
        plural=units.plural,
        share=units.share,
        span=units.span,
    )
    return environment


def _breakable(text: str) -> Markup:
    """The text, escaped, with the places where a narrow column may break a name in two."""
    from markupsafe import Markup, escape  # noqa: PLC0415  comes with the template engine

    pieces = re.split(r"(?<=[a-z])(?=[A-Z])|(?<=[./])(?=[A-Za-z_])", text)
    return Markup("<wbr>").join(escape(piece) for piece in pieces)


def _dashed(verdict: str) -> str:
    """The verdict as the name of a class of the style sheet."""
    return verdict.replace(" ", "-")


def _view(facts: Facts) -> dict[str, Any]:
    return {
        "facts": facts,
        "totals": facts.totals,
        "style": _inlined("report.css"),
        "script": _inlined("report.js"),
        "question": audit.title(facts),
        "chosen": audit.chosen(facts.audit),
        "sentences": audit.sentences(facts),
        "newest": [audit.newest_sentence(one) for one in facts.audit.newest],
        "matrix": matrix.build_matrix(facts),
        "symbols": matrix.SYMBOLS,
        "verdicts": _verdict_shares(facts),
        "api_label": matrix.api_label,
        "client_label": matrix.client_label,
        "decision": connections.decision(facts.connections),
        "charts": _charts(facts),
        "tables": _tables(facts),
        "answers": answers.parts(facts),
        "unseen": answers.unseen(facts),
        "exact_moment": lambda time: units.moment(time, exact=True),
    }


def _charts(facts: Facts) -> dict[str, charts.Chart | None]:
    return {
        "timeline": charts.timeline_chart(facts),
        "api_bytes": charts.api_chart(facts),
        "api_messages": charts.api_message_chart(facts),
        "clients": charts.client_chart(facts),
        "latencies": charts.latency_chart(facts),
        "compression": charts.compression_chart(facts),
    }


def _tables(facts: Facts) -> dict[str, tables.Table]:
    return {
        "findings": audit.finding_table(facts),
        "audited": audit.client_table(facts),
        "pins": audit.pin_table(facts),
        "apis": tables.api_table(facts),
        "clients": tables.client_table(facts),
        "latencies": tables.latency_table(facts),
        "topics": tables.topic_table(facts),
        "record_headers": tables.record_header_table(facts),
        "tagged_fields": tables.tagged_field_table(facts),
        "failure_counts": tables.failure_count_table(facts),
        "failures": tables.failure_table(facts),
        "lenient": tables.lenient_table(facts),
        "others": connections.other_table(facts.connections),
        "sources": tables.source_table(facts),
    }


def _verdict_shares(facts: Facts) -> list[tuple[str, int, float]]:
    """The verdicts that were given, each with its requests and their part of all requests."""
    requests: Counter[str] = Counter()
    for use in facts.version_uses:
        requests[use.verdict] += use.requests
    whole = requests.total()
    return [
        (verdict, requests[verdict], requests[verdict] / whole)
        for verdict in matrix.VERDICTS
        if requests[verdict]
    ]


def _inlined(name: str) -> str:
    """A style sheet or script of this package, to stand inside the page."""
    place = resources.files("flexwire.report") / _TEMPLATES / name
    return place.read_text(encoding="utf-8")
