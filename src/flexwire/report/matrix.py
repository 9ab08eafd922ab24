"""A matrix of clients and APIs that shows the versions in use, each with the audit's verdict."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.facts.units import plural, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.facts.facts import Facts, Verdict, VersionUse
    from flexwire.parties import Client

# The maximum number of clients that a page shows at the same time. Additional clients are counted
# below the matrix.
CLIENT_LIMIT = 60
API_LIMIT = 40
VERSION_LIMIT = 8
# The verdicts on a version in use, with the worst first.
VERDICTS: tuple[Verdict, ...] = ("broke", "will break", "cannot say", "read", "not judged")
_SEVERITY = {verdict: len(VERDICTS) - place for place, verdict in enumerate(VERDICTS)}
SYMBOLS: dict[str, str] = {
    "broke": "\u2715",
    "will break": "\u2715",
    "known to break": "\u2715",
    "cannot say": "?",
    "will do nothing": "!",
    "documented as unsupported": "!",
    "nothing seen against it": "\u25cb",
    "not judged": "\u2013",
    "read": "\u25cb",
    "unknown": "?",
}


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """The versions of one API that a client used, lowest first.

    If there are too many versions, only those with the worst verdicts are listed.
    """

    uses: tuple[VersionUse, ...]
    more: int


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A client.

    ``cells`` contains the versions that the client used, for each API in the matrix.
    """

    client: Client
    worst: Verdict
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """The matrix of clients and APIs. Clients that break come first. ``rest`` counts omissions."""

    apis: tuple[tuple[int, str], ...]
    rows: tuple[MatrixRow, ...]
    rest: tuple[str, ...]


def api_label(api_key: int, name: str | None) -> str:
    """Return the name of an API, or its key if the catalog has no name for it."""
    return name or f"api key {api_key}"


def client_label(client: Client, limit: int = 60) -> str:
    """Return the client id, or a substitute if it is empty or null."""
    if client.client_id:
        return shorten(client.client_id, limit)
    return "(null client id)" if client.client_id is None else "(empty client id)"


def client_name(client: Client, limit: int = 40) -> str:
    """Return a client's name for a sentence: its id, or its software if it has no id."""
    if client.client_id or not client.software:
        return client_label(client, limit)
    return f"{client_label(client)} {shorten(client.software, limit)}"


def worst(uses: Iterable[VersionUse]) -> Verdict:
    """Return the worst verdict on these uses, or "read" if there are none."""
    return max((use.verdict for use in uses), key=_SEVERITY.__getitem__, default="read")


def use_order(use: VersionUse) -> tuple[int, int, str, int, int]:
    """Return a sort key: worst verdicts first, then most requests, then all other fields."""
    return (
        -_SEVERITY[use.verdict],
        -use.requests,
        repr(use.client),
        use.api_key,
        use.version,
    )


def by_client(facts: Facts) -> dict[Client, list[VersionUse]]:
    """Return the versions that each client used.

    Clients without readable requests have no versions.
    """
    uses: dict[Client, list[VersionUse]] = {entry.client: [] for entry in facts.clients}
    for use in facts.version_uses:
        uses.setdefault(use.client, []).append(use)
    return uses


def build_matrix(facts: Facts, part: float = 1) -> Matrix:
    """Return the matrix within the limits of a page. ``part`` is a fraction of these limits."""
    most_clients, most_apis = (math.ceil(part * limit) for limit in (CLIENT_LIMIT, API_LIMIT))
    uses = {client: own for client, own in by_client(facts).items() if own}
    columns: defaultdict[tuple[int, str], list[VersionUse]] = defaultdict(list)
    for use in facts.version_uses:
        columns[use.api_key, api_label(use.api_key, use.api_name)].append(use)
    apis = sorted(columns, key=lambda api: (*_weight(columns[api]), api))
    clients = sorted(uses, key=lambda client: (*_weight(uses[client]), repr(client)))
    shown = tuple(apis[:most_apis])
    rows = tuple(_row(client, uses[client], shown) for client in clients[:most_clients])
    rest = tuple(
        text
        for text in (
            _left_out([worst(uses[client]) for client in clients[most_clients:]], "client"),
            _left_out([worst(columns[api]) for api in apis[most_apis:]], "API"),
        )
        if text
    )
    return Matrix(shown, rows, rest)


def _weight(uses: list[VersionUse]) -> tuple[int, int]:
    return -_SEVERITY[worst(uses)], -sum(use.requests for use in uses)


def _row(client: Client, uses: list[VersionUse], apis: Sequence[tuple[int, str]]) -> MatrixRow:
    cells: defaultdict[tuple[int, str], list[VersionUse]] = defaultdict(list)
    for use in uses:
        cells[use.api_key, api_label(use.api_key, use.api_name)].append(use)
    return MatrixRow(
        client,
        worst(uses),
        tuple(_cell(cells[api]) for api in apis),
    )


def _cell(uses: list[VersionUse]) -> MatrixCell:
    shown = sorted(uses, key=use_order)[:VERSION_LIMIT]
    return MatrixCell(tuple(sorted(shown, key=lambda use: use.version)), len(uses) - len(shown))


def _left_out(verdicts: list[Verdict], noun: str) -> str:
    if not verdicts:
        return ""
    kinds = ", ".join(f"{verdicts.count(kind):,} {kind}" for kind in VERDICTS if kind in verdicts)
    return f"and {plural(len(verdicts), 'more ' + noun)} not shown here: {kinds}"
