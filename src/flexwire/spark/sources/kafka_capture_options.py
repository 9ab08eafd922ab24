"""What the options of a read of captures say, and the columns that it has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from flexwire.arguments import refuse
from flexwire.capture.reassembly.connections import Brokers
from flexwire.errors import ArgumentError
from flexwire.logs.files import PIECE_BYTES
from flexwire.schema.catalog import Catalog, catalog, using_carried
from flexwire.spark.functions.variant import VARIANT
from flexwire.spark.sources.options import OF_INFLATION, Options
from flexwire.survey.request import Asked
from flexwire.tables import schema
from flexwire.tables.message_schema import table_schema
from flexwire.tables.wanted import FRAMES, MESSAGES, RECORDS, Wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.schema.catalog import Carried

CONNECTIONS, PACKETS = "connections", "packets"
KINDS: Final = (FRAMES, MESSAGES, RECORDS, CONNECTIONS, PACKETS)
ACCEPTED: Final = {
    "rows": "`frames`, `messages`, `records`; of a batch also `connections` and `packets`",
    "message": "names of messages, with commas between them; all by default",
    "clientId": "client ids, with commas between them; all by default",
    "topic": "of records: names of topics, with commas between them; all by default",
    "startingTimestamp": "ms; frames that ended before it are not read",
    "endingTimestamp": "ms; frames that ended then or later are not read",
    "brokers": "`10.0.0.1:9092`, with commas between them: which ends are brokers",
    "ports": "numbers of ports, as `9092,9094-9096`: which ends are brokers",
    "capturedRelease": "the release that the captured brokers run, as `3.9.2`",
    "includeRecordBytes": "`true` gives messages the bytes of their records, and not their sizes",
    "showCredentials": "`true` shows what may be credentials",
    "skipUnreadable": "`true` reads the rest where files are not captures",
    "acceptSampled": "`true` reads captures that hold a part of what passed, as they say",
    "catalog": "a directory that `flexwire schema import` wrote, with message specs of one's own",
    "maxPartitionBytes": "what a task reads, as `128m`, which it is by default",
    **OF_INFLATION,
    "maxBytesPerTrigger": "of a stream: how many bytes of files a batch has at the most",
    "maxFilesPerTrigger": "of a stream: of how many files a batch has anything at the most",
    "failOnDataLoss": "of a stream: `true`, or `false`, which goes on after what is gone",
}
"""Every option and what it takes."""

_MICROSECONDS: Final = 1000


@dataclass(frozen=True)
class CaptureOptions:
    """What the options of a read say; ``asked`` has no files yet.

    Rows are decoded by the catalog that is ``carried``, None for that of flexwire.
    """

    carried: Carried | None
    paths: list[str]
    kind: str
    asked: Asked
    wanted: Wanted
    bytes_per_trigger: int | None
    files_per_trigger: int | None
    fails_on_loss: bool

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> CaptureOptions:
        """Read the options; `ArgumentError` for what they do not take."""
        options = Options(given, ACCEPTED)
        own = options.text("catalog")
        carried = catalog().carried if own is None else Catalog(Path(own)).carried
        with using_carried(carried):
            return cls._parse(options, carried)

    @classmethod
    def _parse(cls, options: Options, carried: Carried | None) -> CaptureOptions:
        kind = options.choice("rows", KINDS)
        release = options.text("capturedRelease")
        asked = Asked(
            (),
            Brokers.parse(options.partitions("ports") or (), options.words("brokers") or ()),
            None if release is None else catalog().release(release),
            show_credentials=options.flag("showCredentials"),
            record_bytes=options.flag("includeRecordBytes"),
            range_bytes=options.size("maxPartitionBytes", PIECE_BYTES),
            skip_unreadable=options.flag("skipUnreadable"),
            takes_sampled=options.flag("acceptSampled"),
            inflation=options.inflation(),
        )
        return cls(
            carried,
            options.paths(),
            kind,
            asked,
            _wanted(options, kind),
            options.size("maxBytesPerTrigger", 0) or None,
            _at_least_one(options, "maxFilesPerTrigger"),
            options.choice("failOnDataLoss", ("true", "false")) == "true",
        )

    @property
    def message(self) -> str | None:
        """The one message whose fields are columns of ``body``; None where there are several."""
        names = self.wanted.messages
        return next(iter(names)) if self.kind == MESSAGES and names and len(names) == 1 else None

    @cached_property
    def columns(self) -> dict[str, pa.DataType]:
        """All columns that there are."""
        return {one.name: one.type for one in self.schema()}

    def schema(self) -> pa.Schema:
        """The columns of a read whose user gives no schema."""
        if self.message is not None:
            asked = self.asked
            with using_carried(self.carried):
                return table_schema(self.message, asked.release, record_bytes=asked.record_bytes)
        return _SCHEMAS[self.kind]


_SCHEMAS: Final = {
    FRAMES: schema.FRAMES_TABLE,
    MESSAGES: schema.OUTCOMES.append(pa.field("body", VARIANT)),
    RECORDS: schema.RECORDS,
    CONNECTIONS: schema.CONNECTIONS_TABLE,
    PACKETS: schema.PACKETS_TABLE,
}
_NARROWED: Final = {
    "message": (FRAMES, MESSAGES),
    "clientId": (FRAMES, MESSAGES, RECORDS),
    "topic": (RECORDS,),
    "startingTimestamp": (FRAMES, MESSAGES, RECORDS),
    "endingTimestamp": (FRAMES, MESSAGES, RECORDS),
}
"""Of which rows an option says which are wanted."""


def _at_least_one(options: Options, name: str) -> int | None:
    number = options.number(name)
    if number == 0:
        raise refuse(name, "1 or more", number)
    return number


def _wanted(options: Options, kind: str) -> Wanted:
    for name, kinds in _NARROWED.items():
        if kind not in kinds and options.text(name) is not None:
            raise ArgumentError(f"{name} is for rows of {', '.join(kinds)}, and not of {kind}")
    messages = options.words("message")
    for one in messages or ():
        catalog().entry(one)
    starting, ending = (options.number(f"{one}Timestamp") for one in ("starting", "ending"))
    return Wanted(
        kind,
        messages,
        options.words("clientId"),
        options.words("topic"),
        None if starting is None else starting * _MICROSECONDS,
        None if ending is None else ending * _MICROSECONDS,
    )
