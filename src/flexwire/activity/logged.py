"""Convert the lines of request logs to the activity of connections.

A broker writes a line after it has sent the response, so there are no waiting requests. A line
contains the principal of the client, but no sizes. A request that a broker forwarded to the
controller appears in a line for another connection. Such a request is only counted, because the
client's own line already contains it.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from flexwire.activity.connections import MOST_CHARACTERS, MOST_CONNECTIONS, ActivityTable
from flexwire.codec import message
from flexwire.codec.structs import structs_at
from flexwire.facts.units import shorten
from flexwire.logs.request_log import LoggedRequest, RefusedRequest
from flexwire.tables.request_log_bodies import read_body
from flexwire.tables.request_logs import complete_request, logged_body, name_of
from flexwire.tables.spec_places import error_places
from flexwire.tap.frame_filter import topic_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.activity.connections import ConnectionActivity
    from flexwire.codec import Message
    from flexwire.tables.request_logs import JsonBody

_NO_ID: Final = UUID(int=0)


class LoggedActivity:
    """The activity of connections, collected in ``table`` from the lines of request logs.

    At most ``most`` connections are kept. When this limit is exceeded, the connection with the
    oldest traffic is forgotten. ``forwarded`` is the number of requests that brokers sent on behalf
    of their clients.
    """

    def __init__(self, most: int = MOST_CONNECTIONS) -> None:
        self.table = ActivityTable(most)
        self.forwarded = 0
        self._most = most
        # The connection with the latest line comes last.
        self._recent: OrderedDict[str, None] = OrderedDict()

    def read(self, items: Iterable[LoggedRequest | RefusedRequest]) -> int:
        """Process lines and return their number."""
        count = 0
        for item in items:
            self.push(item)
            count += 1
        return count

    def push(self, item: LoggedRequest | RefusedRequest) -> None:
        """Process a line."""
        if isinstance(item, RefusedRequest):
            row = self._row(item, (item.time_us, item.time_us))
            self._count(row, item.api_key, item.api_version)
            row.end("broker", is_reset=False)
            self.table.close(row.connection)
        elif item.is_forwarded:
            self.forwarded += 1
        else:
            self._see(item)

    def finish(self) -> None:
        """Do nothing, because every line that is processed is already complete."""

    def _row(
        self, item: LoggedRequest | RefusedRequest, times: tuple[int, int]
    ) -> ConnectionActivity:
        name = item.ends.name
        self._recent[name] = None
        self._recent.move_to_end(name)
        while len(self._recent) > self._most:
            self.table.drop(self._recent.popitem(last=False)[0])
        row = self.table.row(name, item.ends.client, item.ends.broker, times)
        if not row.is_kafka:
            row.is_kafka, row.is_open = True, None
            row.request_bytes = row.response_bytes = None
        return row

    @staticmethod
    def _count(row: ConnectionActivity, api_key: int, version: int) -> str:
        """Count a request and return the name of its API, or its api key as a string."""
        api = (name_of(api_key, version) or str(api_key)).removesuffix("Request")
        row.requests += 1
        row.apis[api] += 1
        return api

    def _see(self, item: LoggedRequest) -> None:
        complete_request(item)
        header = item.header
        row = self._row(item, (item.time_us - item.total_us, item.time_us))
        api = self._count(row, header.request_api_key, header.request_api_version)
        row.note_client(header.client_id, item.software_name, item.software_version)
        row.note_instance(item.client_instance_id)
        if item.principal is not None:
            row.principal = shorten(item.principal, MOST_CHARACTERS)
        name = name_of(header.request_api_key, header.request_api_version)
        request = _read(logged_body(item, name, is_request=True))
        if request is not None:
            row.note_topics(self.table.topics.of(*topic) for topic in _topics(request))
        if not item.has_response or item.error is not None:
            row.damaged_frames += item.error is not None
            return
        row.responses += 1
        response = _read(logged_body(item, name, is_request=False))
        if response is not None:
            row.note_errors(_error_codes(response), api, item.time_us)
            for topic in _topics(response):
                self.table.topics.note(*topic)


def _read(body: JsonBody | None) -> Message | None:
    """Return a body as a message, or None if the body is not needed or not valid."""
    if body is None or not (topic_fields(body.message) or error_places(body.message)):
        return None
    return read_body(body.text, message(body.message), body.version, show_credentials=False).message


def _topics(body: Message) -> Iterator[tuple[str | None, UUID | None]]:
    """Yield the topics in a message, each with its name, its id, or both."""
    for place in topic_fields(body.entry.name):
        for structure in _structures(body, place.path):
            name = getattr(structure, place.name, None)
            topic_id = getattr(structure, place.topic_id, _NO_ID)
            for element in name if isinstance(name, list) else [name]:
                if element or topic_id != _NO_ID:
                    yield element, topic_id


def _error_codes(body: Message) -> list[int]:
    """Return the error codes in a response, including those in inner structures, in order."""
    codes: list[Any] = []
    for place in error_places(body.entry.name):
        *outer, last = place.path
        codes += [getattr(structure, last, None) for structure in _structures(body, outer)]
    return [code for code in codes if code is not None]


def _structures(body: Message, path: Sequence[str]) -> Iterator[Any]:
    """Yield the structures at a path."""
    # Some paths come from older specs, but the class contains only the newest names.
    with suppress(AttributeError):
        for *_, structure in structs_at(body, path):
            yield structure
