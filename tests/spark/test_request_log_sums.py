"""All lines of request logs become rows that the sums accept."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest

from flexwire.logs.request_log import LoggedRequest, RefusedRequest, RequestLogReader, Zone
from flexwire.logs.request_log.lines import Line, RequestLogFile
from flexwire.measures.analysis import AnalysisSums
from flexwire.storage.input_file import InputFile
from flexwire.survey.ranges import FRAMES
from flexwire.tables.request_logs import FileItem, RequestLogRows
from tests.capture.request_lines import RELEASES, line, real_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE = RequestLogFile(InputFile("kafka-request.log", 0, ""), 0)
VALUE = re.compile(rb'(?<=[:\[,=])("[^"]*"|-?[\d.]+|null|true|false|\[\]|\w+)(?=[,\]}])')
WORDS = (
    *(b"null", b"-1", b"[]", b"{}", b'"\\ud800"', b'"\xff"', b"1e999", b"NaN", b"true", b'"x"'),
    *(b"99999999999999999999", b"[[[[", b'"\\u0000"', b",", b'":', b'{"a":1,"a":2}', b"1.5"),
)


def summed(lines: Sequence[bytes], sending: set[str] | None = None) -> AnalysisSums:
    """Return the sums of lines. ``sending`` gets the connections whose requests name a software."""
    items = RequestLogReader(Zone()).read(Line(at * 100_000, text) for at, text in enumerate(lines))
    placed = [
        FileItem(FILE, one) for one in items if isinstance(one, LoggedRequest | RefusedRequest)
    ]
    sums = AnalysisSums(0)
    for table, batch in RequestLogRows().of(placed):
        batch.validate(full=True)
        rows = batch.to_pylist()
        if table == FRAMES and sending is not None:
            said = (one for one in rows if one["direction"] == "request")
            sending |= {one["connection"] for one in said if one["api_key"] is not None}
        if table:
            sums.add(table, batch)
        else:
            sums.audit.add_logged(batch)
    return sums


def altered(chosen: random.Random, text: bytes) -> bytes:
    data = bytearray(text)
    for _ in range(chosen.choice([1, 1, 2, 5])):
        found = [*VALUE.finditer(data)]
        at = chosen.randrange(len(data))
        if found and chosen.random() < 0.7:
            begin, end = chosen.choice(found).span()
            data[begin:end] = chosen.choice(WORDS)
        elif chosen.random() < 0.5:
            del data[at : at + chosen.choice([1, 5, 100])]
        else:
            data[at:at] = chosen.choice(WORDS)
    return bytes(data)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_stands_in_lines_the_sums_take_their_rows(seed: int) -> None:
    chosen = random.Random(seed)
    lines = [one for release in RELEASES for one in real_lines(release)]
    for _ in range(8):
        some = [altered(chosen, chosen.choice(lines)) for _ in range(chosen.choice([1, 6, 30]))]
        sending: set[str] = set()
        sums = summed(some, sending)
        conducts = sums.audit.evidence().conducts
        assert sum(one.connections for one in conducts.values()) == len(sending)
        assert sum(len(one) for one in sums.audit.logged()) <= len(some)


def test_an_offer_that_a_broker_left_out_is_no_offer() -> None:
    header = {"requestApiKey": 18, "requestApiVersion": 3, "correlationId": 1, "clientId": "c"}
    keys = [{"apiKey": 1, "minVersion": 4}, {"apiKey": 3, "minVersion": 0, "maxVersion": 9}]
    asked = {"clientSoftwareName": "a", "clientSoftwareVersion": "1"}
    said = {"errorCode": 0, "apiKeys": keys, "throttleTimeMs": 0}
    sums = summed([line(requestHeader=header, request=asked, response=said)])
    assert sums.audit._offers == {"10.0.0.1:9092": {3: (0, 9)}}
