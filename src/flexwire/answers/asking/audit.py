"""The audit of clients and of a cluster: verdicts, and evidence from finished tables.

The audit uses the same measure as a running analysis: each task sums its rows, and the driver
merges the sums one by one. An audit of finished tables therefore agrees with the audit of a running
analysis, and both have the same limits.
"""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.types import ArrayType, StructType

from flexwire.answers.asking.labels import team_of
from flexwire.errors import UnknownMessageError
from flexwire.facts.audit import (
    Audit,
    AuditFinding,
    AuditOmissions,
    ClusterGate,
    FirstRelease,
    NewestShare,
    PinningSetting,
)
from flexwire.measures.audit import AuditSums
from flexwire.measures.audit_rows import COLUMNS, CONNECTIONS, EVIDENT, NAMES
from flexwire.measures.evidence import NamedEntities, key_of
from flexwire.protocol import api_name
from flexwire.protocol.audit import (
    LIBRARIES,
    OPENING_APIS,
    PINS,
    VERDICTS,
    audited_releases,
    judge,
    judge_cluster,
    libraries_are_about,
    newest_version,
    to_audited_releases,
)
from flexwire.report.audit_files import audit_row
from flexwire.tables.keys import connection_key
from flexwire.tables.row_filter import FRAMES, MESSAGES
from flexwire.tables.schema import AUDIT_TABLE
from flexwire.tables.spec_places import entity_paths
from flexwire.tasks import begin_task, map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column

    from flexwire.answers.asking.labels import Labels
    from flexwire.measures.evidence import AuditEvidence, AuditSource, Key
    from flexwire.protocol.audit import ClientFinding, ClusterSeen, Conduct, Party

    Tables = Callable[[str], DataFrame | None]


_NAMES = "array<struct<kind: string, name: string>>"


def names_in(table_of: Tables, message: str) -> DataFrame | None:
    """Return a row for each name in a message's table, with its ``kind`` and the connection key.

    ``table_of`` returns the table for a message. The result is None for a response and for a
    message without names.
    """
    table = table_of(message) if message.endswith("Request") else None
    if table is None:
        return None
    of_kinds = [
        _of_kind(values, kind)
        for path, kind in entity_paths(message)
        if (values := _values(table, path)) is not None
    ]
    if not of_kinds:
        return None
    nothing = F.array().cast(_NAMES)
    every = F.concat(*[F.coalesce(values, nothing) for values in of_kinds])
    return table.select(*connection_key(table.columns), F.inline(every))


def _of_kind(values: Column, kind: str) -> Column:
    # If a function takes two arguments, Spark also passes the index, so this function takes only
    # one argument.
    return F.transform(values, lambda name: F.struct(F.lit(kind), name)).cast(_NAMES)


def _values(table: DataFrame, path: tuple[str, ...]) -> Column | None:
    """Return the strings at a path, even inside arrays, or None if the column does not exist."""
    column, kind = F.col("body"), table.schema["body"].dataType
    in_array = False
    for name in path:
        if not isinstance(kind, StructType) or name not in kind.names:
            return None
        column, kind = column.getField(name), kind[name].dataType
        if isinstance(kind, ArrayType):
            if in_array:
                column = F.flatten(F.filter(column, lambda element: element.isNotNull()))
            in_array, kind = True, kind.elementType
    return column if in_array else F.array(column)


# Each client with one of these verdicts must be examined by a person.
_NAMED = VERDICTS[: VERDICTS.index("documented as unsupported") + 1]
_BREAKS = VERDICTS[: VERDICTS.index("cannot say")]
MOST_FINDINGS: Final = 100_000
"""The maximum number of findings in an audit. Additional findings are only counted, by verdict."""
_Judged = list[tuple["Party", "Conduct", "ClientFinding"]]


def gather_audit(
    gathered: AuditSource,
    releases: Sequence[str] = (),
    brokers: Sequence[str] = (),
    *,
    labels: Labels | None = None,
) -> Audit:
    """Audit the gathered evidence.

    ``releases`` are names that `Catalog.release` accepts. If none are given, the audit covers every
    major release, starting with the release of the captured brokers. ``brokers`` are the releases
    of the captured brokers, if they are known. Otherwise, they are inferred from the versions that
    the brokers offer in ApiVersions. ``labels`` map clients to teams. Raises `UnknownMessageError`
    for an unknown release.
    """
    named = to_audited_releases(releases)
    evidence = gathered.evidence()
    running = tuple(brokers) or evidence.brokers
    chosen = named or audited_releases(running)
    judged, left_out = _judge_all(evidence, chosen, running)
    flagged = {party for party, _, finding in judged if finding.verdict in _NAMED}
    touched = gathered.touched(flagged) if flagged else {}
    findings = [_finding(*finding, touched, labels or {}) for finding in judged]
    # The same captures must always produce the same file.
    findings.sort(
        key=lambda finding: (
            chosen.index(finding.release),
            VERDICTS.index(finding.verdict),
            -finding.requests,
            repr(finding),
        )
    )
    return Audit(
        releases=chosen,
        asked=bool(named),
        brokers=running,
        findings=tuple(findings),
        newest=tuple(_newest(evidence, release) for release in chosen),
        pins=_pins(judged),
        libraries=_libraries(judged),
        left_out=AuditOmissions(
            evidence.clients_left_out,
            evidence.requests_left_out,
            evidence.brokers_left_out,
            tuple((verdict, left_out[verdict]) for verdict in VERDICTS if left_out[verdict]),
        ),
        cluster=cluster_gates(evidence.cluster, chosen),
    )


def cluster_gates(seen: ClusterSeen, releases: Sequence[str]) -> tuple[ClusterGate, ...]:
    """Return a cluster's gates for these releases, with the most serious ones first."""
    return tuple(gate for release in releases for gate in judge_cluster(seen, release))


def _judge_all(
    evidence: AuditEvidence, releases: Sequence[str], brokers: Sequence[str]
) -> tuple[_Judged, Counter[str]]:
    """Return the findings, and the number of omitted findings for each verdict.

    If there are too many findings, the most serious findings are kept. Among equally serious
    findings, those about the most requests are kept.
    """
    judged: _Judged = []
    left_out = Counter[str]()

    def keep_gravest() -> None:
        judged.sort(key=_gravest_first)
        left_out.update(finding.verdict for _, _, finding in judged[MOST_FINDINGS:])
        del judged[MOST_FINDINGS:]

    for party, conduct in evidence.conducts.items():
        for release in releases:
            findings = judge(party, conduct, release, brokers=brokers)
            judged.extend((party, conduct, finding) for finding in findings)
        if len(judged) > 2 * MOST_FINDINGS:
            keep_gravest()
    if len(judged) > MOST_FINDINGS:
        keep_gravest()
    return judged, left_out


def _gravest_first(judged: tuple[Party, Conduct, ClientFinding]) -> tuple[int, int]:
    # Sorting is stable, and the order of clients does not depend on the order in which they were
    # seen.
    return VERDICTS.index(judged[2].verdict), -judged[2].requests


def _finding(
    party: Party,
    conduct: Conduct,
    finding: ClientFinding,
    touched: Mapping[Key, NamedEntities],
    labels: Labels,
) -> AuditFinding:
    own = touched.get(key_of(party), NamedEntities())
    return AuditFinding(
        finding.release,
        finding.verdict,
        finding.evidence,
        finding.reason,
        conduct.role,
        party,
        finding.requests,
        finding.first_us,
        finding.last_us,
        conduct.connections,
        len(conduct.api_keys),
        api_key=finding.api_key,
        api_name=None if finding.api_key is None else _name(finding.api_key),
        version=finding.version,
        offered=None if finding.offered is None else str(finding.offered),
        last_accepting_release=finding.last_accepting,
        first_refusing_release=finding.first_refusing,
        groups=own.groups,
        group_count=own.group_count,
        topics=own.topics,
        topic_count=own.topic_count,
        remedy=finding.remedy,
        source=finding.source,
        team=team_of(labels, party.client_id),
    )


def _name(api_key: int) -> str | None:
    try:
        return api_name(api_key)
    except UnknownMessageError:
        return None


def _newest(evidence: AuditEvidence, release: str) -> NewestShare:
    """Count the clients that use the newest versions of a release.

    Only these clients would also use later versions.
    """
    requests, newest, clients, up_to_date = 0, 0, 0, 0
    for conduct in evidence.clients.values():
        at = Counter[bool]()
        for use in conduct.uses:
            highest = newest_version(use.api_key, release)
            if use.api_key not in OPENING_APIS and highest is not None:
                at[use.version >= highest] += use.requests
        requests += at.total()
        newest += at[True]
        clients += bool(at)
        up_to_date += bool(at[True]) and not at[False]
    return NewestShare(release, requests, newest, clients, up_to_date)


def _pins(judged: _Judged) -> tuple[PinningSetting, ...]:
    if not any(
        finding.verdict in _BREAKS and finding.api_key is not None for _, _, finding in judged
    ):
        return ()
    return tuple(
        PinningSetting(pin.client, pin.setting, pin.effect, pin.remedy, pin.sources) for pin in PINS
    )


def _libraries(judged: _Judged) -> tuple[FirstRelease, ...]:
    if not any(
        finding.verdict in _BREAKS
        and finding.api_key is not None
        and libraries_are_about(finding.release)
        for _, _, finding in judged
    ):
        return ()
    return tuple(
        FirstRelease(
            library.library,
            library.works_from or "",
            library.remedy or library.note,
            library.citation,
        )
        for library in LIBRARIES
    )


def audit_rows(audit: Audit) -> pa.RecordBatch:
    """Return the findings as rows of the audit table."""
    rows = [audit_row(finding) for finding in audit.findings]
    return pa.RecordBatch.from_pylist(rows, AUDIT_TABLE)


# The maximum size of the sums that the driver collects at once, in bytes.
_COLLECTED: Final = 64 << 20
_SUMS: Final = pa.schema([("sums", pa.binary())])


@dataclass(frozen=True, slots=True)
class AuditTables:
    """The tables to audit; ``message`` returns a message's table, or None if there is no table."""

    frames: DataFrame
    connections: DataFrame
    message: Callable[[str], DataFrame | None]


class TableEvidence:
    """The evidence for an audit, summed from tables. Each of ``messages`` has a table."""

    def __init__(self, tables: AuditTables, messages: Collection[str]) -> None:
        self._tables = tables
        self._messages = messages
        self._sums = AuditSums(spills=True)

    def evidence(self) -> AuditEvidence:
        """Return the evidence about every client. The tables are read once."""
        tables = self._tables
        sums = [
            _summed(FRAMES, _columns(tables.frames, COLUMNS[FRAMES])),
            _summed(CONNECTIONS, _columns(tables.connections, COLUMNS[CONNECTIONS])),
        ]
        for name, fields in EVIDENT.items():
            if (table := tables.message(name)) is not None:
                sums.append(_summed(f"{MESSAGES}/{name}", _message(table, fields)))
        self._sums = AuditSums(spills=True)
        self._merge(sums)
        return self._sums.evidence()

    def touched(self, parties: Collection[Party]) -> dict[Key, NamedEntities]:
        """Return the groups and topics in the requests of these clients. Call `evidence` first."""
        named = (names_in(self._tables.message, message) for message in self._messages)
        self._merge([_summed(NAMES, rows) for rows in named if rows is not None])
        return self._sums.touched(parties)

    def _merge(self, sums: list[DataFrame]) -> None:
        """Add the sums from tasks.

        If the sums are large, the driver holds those of only one task at a time.
        """
        if not sums:
            return
        every = reduce(DataFrame.unionByName, sums).persist()
        try:
            size = every.agg(F.sum(F.octet_length("sums"))).collect()[0][0] or 0
            # An iterator runs one job per part, so it is used only if the sums are too large to be
            # collected at once.
            rows = every.collect() if size <= _COLLECTED else every.toLocalIterator()
            for row in rows:
                # The tasks of this job wrote these bytes.
                self._sums.merge(pickle.loads(row.sums))  # noqa: S301 - we wrote these bytes ourselves
        finally:
            every.unpersist()


def _columns(table: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return these columns of a table, together with its key columns.

    A column that older tables lack becomes null.
    """
    there = {*table.columns}
    lacking = F.lit(None).cast("string")
    others = [name for name in names if name not in (key := connection_key(table.columns))]
    return table.select(
        *key, *(F.col(name) if name in there else lacking.alias(name) for name in others)
    )


def _message(table: DataFrame, fields: Collection[str]) -> DataFrame:
    """Return the columns of a message's table; if ``fields`` are given, only those of its body."""
    body: Column = F.col("body")
    if fields:
        # This prevents Spark from reading other columns of the file.
        body = F.struct(*(F.col(f"body.{field}") for field in fields)).alias("body")
    return table.select(*connection_key(table.columns), "body_version", body)


def _summed(table: str, rows: DataFrame) -> DataFrame:
    """Return one row per task, with the sums over the rows that the task read."""
    return map_in_arrow(rows, partial(_sum, table), _SUMS)


def _sum(table: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    begin_task()
    sums = AuditSums()
    for rows in batches:
        sums.add(table, rows)
    yield pa.RecordBatch.from_pylist([{"sums": pickle.dumps(sums)}], _SUMS)
