"""Who breaks on the newest release: the sentence, and clients by APIs with the versions in use."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.report.units import plural, ranges, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.report.facts import Client, Facts, Verdict, VersionUse

# What a page can show at once; the rest is counted under the matrix.
CLIENT_LIMIT = 60
API_LIMIT = 40
_NAME_LIMIT = 3
_SEVERITY: dict[Verdict, int] = {"removed": 3, "unknown": 2, "deprecated": 1, "accepted": 0}
VERDICTS: tuple[Verdict, ...] = ("removed", "deprecated", "unknown", "accepted")
SYMBOLS: dict[Verdict, str] = {
    "accepted": "\u2713",
    "deprecated": "!",
    "removed": "\u2715",
    "unknown": "?",
}


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One client; ``cells`` has the versions it used of each API of the matrix, lowest first."""

    client: Client
    worst: Verdict
    cells: tuple[tuple[VersionUse, ...], ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Clients by APIs, what breaks first; ``rest`` says what the limits left out."""

    apis: tuple[tuple[int, str], ...]
    rows: tuple[MatrixRow, ...]
    rest: tuple[str, ...]


def api_label(api_key: int, name: str | None) -> str:
    """The API's name, or its key where the catalog has none."""
    return name or f"api key {api_key}"


def client_label(client: Client, limit: int = 60) -> str:
    """The client id, or which kind of nothing stands in its place."""
    if client.client_id:
        return shorten(client.client_id, limit)
    return "(null client id)" if client.client_id is None else "(empty client id)"


def client_name(client: Client, limit: int = 40) -> str:
    """What to call a client in a sentence: its id, or its software where it has none."""
    if client.client_id or not client.software:
        return client_label(client, limit)
    return f"{client_label(client)} {shorten(client.software, limit)}"


def worst(uses: Iterable[VersionUse]) -> Verdict:
    """The gravest verdict among them; "accepted" when there is none."""
    return max((use.verdict for use in uses), key=_SEVERITY.__getitem__, default="accepted")


def use_order(use: VersionUse) -> tuple[int, int, str, int, int]:
    """What breaks first, then by traffic; the rest of the key makes the order total."""
    return (
        -_SEVERITY[use.verdict],
        -use.requests,
        repr(use.client),
        use.api_key,
        use.version,
    )


def by_client(facts: Facts) -> dict[Client, list[VersionUse]]:
    """The versions each client used; clients that sent nothing readable have none."""
    uses: dict[Client, list[VersionUse]] = {entry.client: [] for entry in facts.clients}
    for use in facts.version_uses:
        uses.setdefault(use.client, []).append(use)
    return uses


def build_matrix(facts: Facts) -> Matrix:
    """The matrix, within the limits of a page."""
    uses = {client: own for client, own in by_client(facts).items() if own}
    columns: defaultdict[tuple[int, str], list[VersionUse]] = defaultdict(list)
    for use in facts.version_uses:
        columns[use.api_key, api_label(use.api_key, use.api_name)].append(use)
    apis = sorted(columns, key=lambda api: (*_weight(columns[api]), api))
    clients = sorted(uses, key=lambda client: (*_weight(uses[client]), repr(client)))
    shown = tuple(apis[:API_LIMIT])
    rows = tuple(_row(client, uses[client], shown) for client in clients[:CLIENT_LIMIT])
    rest = tuple(
        text
        for text in (
            _left_out([worst(uses[client]) for client in clients[CLIENT_LIMIT:]], "client"),
            _left_out([worst(columns[api]) for api in apis[API_LIMIT:]], "API"),
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
        tuple(tuple(sorted(cells[api], key=lambda use: use.version)) for api in apis),
    )


def _left_out(verdicts: list[Verdict], noun: str) -> str:
    if not verdicts:
        return ""
    kinds = ", ".join(
        f"{verdicts.count(kind):,} with {kind} versions{' only' if kind == 'accepted' else ''}"
        for kind in VERDICTS
        if kind in verdicts
    )
    return f"and {plural(len(verdicts), 'more ' + noun)} not drawn here: {kinds}"


def verdict_sentences(facts: Facts) -> list[tuple[Verdict, str]]:
    """The answer to "who breaks?", gravest first, one sentence per verdict that needs one."""
    uses = by_client(facts)
    if not facts.version_uses:
        return [("unknown", "No request was decoded, so nothing can be said about versions.")]
    release = f"Kafka {facts.newest_release}"
    remarks: dict[Verdict, str] = {
        "removed": f"versions that {release} no longer accepts",
        "unknown": f"versions that are not in the catalog, which ends with {release}",
        "deprecated": f"versions that {release} still accepts but that are deprecated",
    }
    answers: list[tuple[Verdict, str]] = []
    for kind, remark in remarks.items():
        found = {
            client: hits
            for client, own in uses.items()
            if (hits := [use for use in own if use.verdict == kind])
        }
        if found:
            who = f"{len(found):,} of {plural(len(uses), 'client')}"
            verb = "uses" if len(found) == 1 else "use"
            answers.append((kind, f"{who} {verb} {remark}: {_named(found)}."))
    given = {kind for kind, _ in answers}
    if "removed" not in given:
        certain = "unknown" not in given and all(uses.values())
        answers.insert(0, ("accepted", _nothing_breaks(len(uses), release, certain=certain)))
    return answers


def _nothing_breaks(clients: int, release: str, *, certain: bool) -> str:
    if not certain:
        return f"No client is known to use a version that {release} no longer accepts."
    who = "The one client uses" if clients == 1 else f"All {clients:,} clients use"
    return f"{who} only versions that {release} accepts."


def _named(found: dict[Client, list[VersionUse]]) -> str:
    order = sorted(found, key=lambda client: (*_weight(found[client]), repr(client)))
    # A sentence that names many clients has no room for all that each of them uses.
    limit = _NAME_LIMIT if len(order) <= _NAME_LIMIT else 1
    names = [
        f"{client_name(client)} ({_versions(found[client], limit)})"
        for client in order[:_NAME_LIMIT]
    ]
    if len(order) > _NAME_LIMIT:
        names.append(f"and {len(order) - _NAME_LIMIT:,} more")
    return "; ".join(names)


def _versions(uses: list[VersionUse], limit: int) -> str:
    versions: defaultdict[str, list[int]] = defaultdict(list)
    for use in sorted(uses, key=lambda use: (-use.requests, use.api_key, use.version)):
        versions[api_label(use.api_key, use.api_name)].append(use.version)
    parts = [f"{name} v{ranges(tuple(numbers))}" for name, numbers in versions.items()]
    more = len(parts) - limit
    return ", ".join(parts[:limit]) + (f" and {plural(more, 'more API')}" if more > 0 else "")
