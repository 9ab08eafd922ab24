"""The options of an analysis, each checked once, grouped by the parts of the code that use them.

`flexwire.spark.analyze.analyze` declares them, with their names, types, defaults and meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.answers import ANSWERS_BY_NAME
from flexwire.answers.asking.results import choose_answers, in_order
from flexwire.arguments import to_flag, to_int, to_list, to_text
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.capture.reassembly.segments import CHUNK_BYTES
from flexwire.protocol.audit import to_audited_releases
from flexwire.schema.catalog import catalog
from flexwire.survey.survey import AnalysisRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from flexwire.answers.asking.answer import Answer
    from flexwire.answers.asking.labels import Labels
    from flexwire.answers.state.log import AsOf
    from flexwire.logs.request_log import Zone
    from flexwire.records.inflation import Inflation
    from flexwire.spark.publishing.output import OutputOptions


class ReadingOptions(NamedTuple):
    """Options for reading the input that are not sent to tasks.

    One task decodes ``range_bytes`` of a capture, or as much as the session decides if it is None.
    """

    zone: Zone
    keys: tuple[str, ...]
    range_bytes: int | None = None


class ReportOptions(NamedTuple):
    """Options of the report and its audit."""

    title: str
    releases: tuple[str, ...]
    labels: Labels


class AnswerOptions(NamedTuple):
    """The answers to compute (None stands for those about logs), and the time that they cover."""

    asked: tuple[Answer, ...] | None
    are_named: bool
    as_of: AsOf


class AnalysisOptions(NamedTuple):
    """The checked arguments of `analyze`. ``asked`` is the request for the tasks, without files."""

    asked: AnalysisRequest
    reading: ReadingOptions
    report: ReportOptions
    answering: AnswerOptions
    output: OutputOptions


def to_flags(*flags: object) -> dict[str, bool]:
    """Return flags by name. Raises `ArgumentError` for a value that is neither true nor false."""
    names = ("show_credentials", "record_bytes", "skip_unreadable")
    return dict(zip(names, map(to_flag, flags, names), strict=True))


def to_asked(
    flags: Mapping[str, bool],
    ports: Iterable[int],
    brokers: Iterable[str],
    captured_release: object,
    inflation: Inflation,
) -> AnalysisRequest:
    """Return the request for the tasks, without files."""
    return AnalysisRequest(
        (),
        BrokerEnds.parse(
            [to_int(port, "ports") for port in to_list(ports, "ports", "a list of ports")],
            [
                to_text(address, "brokers")
                for address in to_list(brokers, "brokers", "a list of addresses")
            ],
        ),
        None if captured_release is None else _release(captured_release),
        show_credentials=flags["show_credentials"],
        record_bytes=flags["record_bytes"],
        skip_unreadable=flags["skip_unreadable"],
        inflation=inflation,
    )


LEAST_GIVEN_RANGE: Final = CHUNK_BYTES
"""The smallest range that can be requested. A range ends where a chunk ends."""


def to_range_bytes(size: object) -> int | None:
    """Return how many bytes of a capture one task decodes. If None, the session decides."""
    return None if size is None else to_int(size, "range_bytes", least=LEAST_GIVEN_RANGE)


def to_releases(releases: object) -> tuple[str, ...]:
    """Return the full version numbers of the releases for the audit. Previews are refused."""
    names = to_list(releases, "releases", "a list of releases")
    return to_audited_releases([to_text(name, "a release") for name in names])


def to_answers(
    answers: str | Iterable[str | Answer] | None, labels: str | Path | None
) -> tuple[Answer, ...] | None:
    """Return the requested answers, or None for the answers about logs."""
    if answers is None and labels is None:
        return None
    labelled = [answer for answer in in_order(ANSWERS_BY_NAME) if answer.labelled is not None]
    selected = labelled if answers is None else answers
    # The audit uses the labels too.
    return choose_answers(selected, ANSWERS_BY_NAME, labels, needs_taker=False)


def _release(release: object) -> str:
    return catalog().release(to_text(release, "a release"))
