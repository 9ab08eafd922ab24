"""The list of connections: its order, the selection of rows, and the format of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.capture.files.comments import CaptureFilter
from flexwire.facts.units import human_bytes, shorten
from flexwire.parties import Client
from flexwire.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flexwire.activity.connections import ConnectionActivity

_MOST_SHOWN: Final = 30
_TOPICS_SHOWN: Final = 3
_MILLION: Final = 1_000_000


class ActivityColumn(NamedTuple):
    """A column of the list and its sort key.

    If ``is_number`` is true, the highest value comes first.
    """

    key: Callable[[ConnectionActivity], Any]
    is_number: bool
    cell: Callable[[ConnectionActivity, int], str]


def find_rows(
    rows: Iterable[ConnectionActivity], filters: Iterable[str], order_by: str
) -> list[ConnectionActivity]:
    """Return the rows that match all ``filters``, sorted by a column of `COLUMNS`.

    A row matches a filter if the filter's string equals the row's client id, principal, instance
    id, client, broker or software, or one of the row's topics or APIs. In the filter, ``*`` stands
    for any text.
    """
    patterns = [CaptureFilter(client_ids=(text,)) for text in filters]
    column = COLUMNS[order_by]
    taken = [row for row in rows if all(_takes(pattern, row) for pattern in patterns)]
    taken.sort(key=lambda row: row.connection)
    taken.sort(key=column.key, reverse=column.is_number)
    return taken


def to_form(row: ConnectionActivity) -> dict[str, Any]:
    """Return a row as JSON, with times in microseconds since 1970."""
    error, oldest = row.last_error, row.oldest
    return {
        "connection": row.connection,
        "client": row.client,
        "broker": row.broker,
        "clientId": row.client_id,
        "softwareName": row.software_name,
        "softwareVersion": row.software_version,
        "principal": row.principal,
        "clientInstanceId": row.instance_id,
        "topics": list(row.topics),
        "moreTopics": row.more_topics,
        "apis": [{"api": api, "requests": requests} for api, requests in row.apis.most_common()],
        "requests": row.requests,
        "responses": row.responses,
        "requestBytes": row.request_bytes,
        "responseBytes": row.response_bytes,
        "damagedFrames": row.damaged_frames,
        "errors": row.errors,
        "lastError": error and {"error": error.name, "api": error.api, "timestampUs": error.at_us},
        "waiting": row.waiting,
        "oldestWaiting": oldest and {"api": oldest.api, "timestampUs": oldest.since_us},
        "firstUs": row.first_us,
        "lastUs": row.last_us,
        "isOpen": row.is_open,
        "closedBy": row.closed_by,
        "isReset": row.is_reset,
    }


def to_cells(row: ConnectionActivity, now_us: int) -> dict[str, str]:
    """Return a row as strings without control characters, keyed by the names in `COLUMNS`."""
    return {name: printable(column.cell(row, now_us)) for name, column in COLUMNS.items()}


def _takes(pattern: CaptureFilter, row: ConnectionActivity) -> bool:
    names = (row.client_id, row.principal, row.instance_id, row.software_name)
    texts = (*names, _software(row), row.client, row.broker, *row.topics, *row.apis)
    return any(pattern.takes_client(text) for text in texts if text is not None)


def _software(row: ConnectionActivity) -> str:
    return Client(None, row.software_name, row.software_version).software or ""


def _short(text: str) -> str:
    return shorten(text, _MOST_SHOWN)


def _topics(row: ConnectionActivity) -> str:
    shown = [_short(name) for name in list(row.topics)[:_TOPICS_SHOWN]]
    more = len(row.topics) - len(shown) + row.more_topics
    return ", ".join(shown) + (f" +{more}" if more else "")


def _last_error(row: ConnectionActivity, now_us: int) -> str:
    error = row.last_error
    return "" if error is None else f"{error.name} ({error.api}, {_ago(now_us, error.at_us)})"


def _waiting(row: ConnectionActivity, now_us: int) -> str:
    oldest = row.oldest
    if oldest is None:
        return ""
    return f"{row.waiting}: {oldest.api}, {_ago(now_us, oldest.since_us)}"


def _ago(now_us: int, at_us: int) -> str:
    return f"{max(0, now_us - at_us) / _MILLION:,.1f} s"


def _state(row: ConnectionActivity) -> str:
    if row.closed_by is None:
        return "" if row.is_open is None else "open" if row.is_open else "over"
    return "reset" if row.is_reset else "closed"


def _bytes(row: ConnectionActivity) -> int:
    return (row.request_bytes or 0) + (row.response_bytes or 0)


def _size(row: ConnectionActivity, _: int) -> str:
    return "" if row.request_bytes is None else human_bytes(_bytes(row))


COLUMNS: Final = {
    "client": ActivityColumn(lambda row: row.client, False, lambda row, _: row.client),
    "broker": ActivityColumn(lambda row: row.broker, False, lambda row, _: row.broker),
    "client-id": ActivityColumn(
        lambda row: row.client_id or "", False, lambda row, _: _short(row.client_id or "")
    ),
    "software": ActivityColumn(_software, False, lambda row, _: _short(_software(row))),
    "principal": ActivityColumn(
        lambda row: row.principal or "", False, lambda row, _: _short(row.principal or "")
    ),
    "instance-id": ActivityColumn(
        lambda row: row.instance_id or "", False, lambda row, _: row.instance_id or ""
    ),
    "topics": ActivityColumn(
        lambda row: len(row.topics) + row.more_topics, True, lambda row, _: _topics(row)
    ),
    "requests": ActivityColumn(lambda row: row.requests, True, lambda row, _: f"{row.requests:,}"),
    "bytes": ActivityColumn(_bytes, True, _size),
    "errors": ActivityColumn(lambda row: row.errors, True, lambda row, _: f"{row.errors:,}"),
    "last-error": ActivityColumn(
        lambda row: 0 if row.last_error is None else row.last_error.at_us, True, _last_error
    ),
    "waiting": ActivityColumn(lambda row: row.waiting, True, _waiting),
    "state": ActivityColumn(_state, False, lambda row, _: _state(row)),
}
"""The columns of the list, keyed by name."""
