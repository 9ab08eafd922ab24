"""Measure messages one by one: their sizes on the old side and on the new side."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.errors import CodecError, DecodeError
from flexwire.protocol import carries_credentials
from flexwire.schema.header_versions import header_version, spec_header_versions
from flexwire.specs.cost.conversion import ValueConverter, new_paths, renames
from flexwire.specs.cost.sizes import Sizes, read_sizes
from flexwire.specs.cost.tagging import Share, newly_tagged
from flexwire.wire.cursor import Writer
from flexwire.wire.encoding import Encoding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.codec import Message
    from flexwire.schema.editions import Edition
    from flexwire.schema.spec import MessageType
    from flexwire.specs.cost.conversion import Renames
    from flexwire.specs.cost.sides import SideSpecs
    from flexwire.wire.schema import Schema

DIFFERENT_REASONS = 1000
"""The number of different reasons that are counted separately, because malicious traffic could
cause any number of them.
"""

_FURTHER = ("further reasons", "")
_INDEX = re.compile(r"\[\d+\]")
HEADER_ENCODINGS = (Encoding.INTERLEAVED, Encoding.OPTIONAL_BUFFERS)
"""The encodings that also change headers. With the other encodings, headers are written as in
Kafka."""


class VersionChoice(Enum):
    """The versions in which messages are compared.

    SENT compares each message in its own version, except that the newest version of the old specs
    is compared with the newest version of the new specs. NEWEST compares each message in the newest
    version of each side. UPGRADE compares each message as sent with the newest version of the new
    side.
    """

    SENT = "sent"
    NEWEST = "newest"
    UPGRADE = "upgrade"


class SentMessage(NamedTuple):
    """A message as it was sent, in Kafka's encoding.

    ``header`` is None if the message came without a header.
    """

    name: str
    api_key: int | None
    type: MessageType | None
    version: int
    body: bytes
    header: Message | None = None


@dataclass(frozen=True, slots=True)
class ComparisonSide:
    """One side of a comparison: its specs, and the encoding in which messages are written."""

    specs: SideSpecs
    encoding: Encoding = Encoding.KAFKA


@dataclass(slots=True)
class SizePair:
    """The sizes of the same part on both sides: for every message, one size on each side."""

    old: Sizes = field(default_factory=Sizes)
    new: Sizes = field(default_factory=Sizes)

    @property
    def saved(self) -> int:
        """The number of bytes that the new side saves, negative if the new side is larger."""
        return self.old.total - self.new.total


@dataclass(slots=True)
class MessageCost:
    """The cost of the messages of one name and version. ``whole`` covers header and body.

    ``api`` is the message's API, or None if the message is neither a request nor a response.
    ``fields`` contains the fields of the body by path. Their totals add up to the total of
    ``body``. ``saved`` contains the number of bytes by which each message is smaller on the new
    side. ``sent`` counts the bytes of the bodies as they were sent. ``lost`` counts, by path, the
    values that have no field on the new side. ``losing`` counts the messages with such values.
    """

    name: str
    version: int
    old_version: int
    new_version: int
    api: str | None = None
    sent: int = 0
    header: SizePair = field(default_factory=SizePair)
    body: SizePair = field(default_factory=SizePair)
    whole: SizePair = field(default_factory=SizePair)
    saved: Sizes = field(default_factory=Sizes)
    fields: dict[str, SizePair] = field(default_factory=dict)
    shares: list[Share] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    losing: int = 0

    @property
    def messages(self) -> int:
        """The number of messages."""
        return self.whole.old.count

    def add(self, old: tuple[int, int], new: tuple[int, int]) -> None:
        """Count a message, given the sizes of its header and body on both sides."""
        for pair, was, is_ in zip((self.header, self.body), old, new, strict=True):
            pair.old.add(was)
            pair.new.add(is_)
        self.whole.old.add(sum(old))
        self.whole.new.add(sum(new))
        self.saved.add(sum(old) - sum(new))

    def add_fields(self, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        """Count the fields of a message."""
        for path in old.keys() | new.keys():
            pair = self.fields.get(path)
            if pair is None:
                pair = self.fields[path] = SizePair()
            if path in old:
                pair.old.add(old[path])
            if path in new:
                pair.new.add(new[path])


@dataclass(slots=True)
class UncomparedCount:
    """Messages or bytes that were not compared, all for one reason.

    ``example`` is the first error.
    """

    times: int = 0
    bytes: int = 0
    example: str = ""


@dataclass(frozen=True, slots=True)
class _WriteForm:
    """The form in which a value is written on one side."""

    schema: Schema
    encoding: Encoding
    header_version: int | None

    def write(self, value: dict[str, Any]) -> bytes:
        writer = Writer()
        self.schema.write(writer, value)
        return bytes(writer.buffer)

    def header_size(self, header: Message | None) -> int:
        if header is None or self.header_version is None:
            return 0
        encoding = self.encoding if self.encoding in HEADER_ENCODINGS else Encoding.KAFKA
        return len(header.encode(self.header_version, encoding=encoding))


@dataclass(frozen=True, slots=True)
class _CostPlan:
    """The plan for measuring the messages of one name and version.

    ``read`` is the schema with which the messages are read. If other versions are compared,
    ``upgrade`` converts them to the newest version of the old specs. ``change`` converts them to
    the new side.
    """

    read: Schema
    upgrade: ValueConverter | None
    change: ValueConverter
    old: _WriteForm
    new: _WriteForm
    row: MessageCost
    is_same: bool
    # The new path of each renamed field, by its old path.
    paths: Mapping[str, str]


class CostMeter:
    """Measure messages on two sides. The results are in `rows` and `uncompared`.

    Memory use grows with the number of different messages, fields and sizes, but not with the
    number of messages.
    """

    def __init__(
        self, old: ComparisonSide, new: ComparisonSide, at: VersionChoice = VersionChoice.SENT
    ) -> None:
        self.old = old
        self.new = new
        self.at = at
        self.rows: dict[tuple[str, int], MessageCost] = {}
        self.uncompared: dict[tuple[str, str], UncomparedCount] = {}
        self._plans: dict[tuple[Any, ...], _CostPlan | str] = {}

    def add(self, sent: SentMessage) -> None:
        """Measure a message, or count it under the reason why it cannot be compared.

        Raises `SpecError` for a spec that cannot be laid out.
        """
        plan = self._plan(sent)
        if isinstance(plan, str):
            self.leave_out(f"{sent.name} {sent.version}", plan, len(sent.body))
            return
        try:
            value, sizes = read_sizes(plan.read, sent.body)
        except DecodeError as error:
            self._refuse(sent, "does not decode", error)
            return
        self._measure(sent, plan, value, sizes)

    def leave_out(self, what: str, reason: str, size: int, example: str = "") -> None:
        """Count messages or bytes that are not compared."""
        key = (what, reason)
        if key not in self.uncompared and len(self.uncompared) >= DIFFERENT_REASONS:
            key = _FURTHER
        uncompared = self.uncompared.setdefault(key, UncomparedCount(example=example))
        uncompared.times += 1
        uncompared.bytes += size

    def _measure(
        self, sent: SentMessage, plan: _CostPlan, value: dict[str, Any], sizes: dict[str, int]
    ) -> None:
        lost = Counter[str]()
        carried = value if plan.upgrade is None else plan.upgrade.carry(value, lost)
        if lost:
            reason = f"version {self._newest(sent)} has no field for {min(lost)}"
            self.leave_out(f"{sent.name} {sent.version}", reason, len(sent.body))
            return
        side = "old"
        try:
            old_body, old_header = plan.old.write(carried), plan.old.header_size(sent.header)
            side = "new"
            changed = plan.change.carry(carried, lost)
            new_body = old_body if plan.is_same else plan.new.write(changed)
            new_header = plan.new.header_size(sent.header)
        except CodecError as error:
            self._refuse(sent, f"cannot be written with the {side} specs", error)
            return
        # The old side almost always writes the bytes that were sent.
        is_as_sent = plan.old.schema is plan.read and old_body == sent.body
        old_sizes = sizes if is_as_sent else read_sizes(plan.old.schema, old_body)[1]
        new_sizes = old_sizes if plan.is_same else read_sizes(plan.new.schema, new_body)[1]
        if plan.paths:
            old_sizes = _under(plan.paths, old_sizes)
        row = plan.row
        row.sent += len(sent.body)
        row.lost += lost
        row.losing += bool(lost)
        row.add((old_header, len(old_body)), (new_header, len(new_body)))
        row.add_fields(old_sizes, new_sizes)
        for share in row.shares:
            share.add(carried, old_sizes, new_sizes)

    def _newest(self, sent: SentMessage) -> int:
        old = self.old.specs.find(sent[:3])
        assert old is not None  # noqa: S101 - the plan exists only if it is set
        return old.spec.valid_versions.highest

    def _refuse(self, sent: SentMessage, what: str, error: CodecError) -> None:
        # With indexes and tags in the path, each refusal would count as a different reason.
        path = _INDEX.sub("[]", error.path) or "the message"
        example = "" if carries_credentials(sent.name) else error.reason
        self.leave_out(f"{sent.name} {sent.version}", f"{what}: {path}", len(sent.body), example)

    def _plan(self, sent: SentMessage) -> _CostPlan | str:
        key = (*sent[:4], sent.header is None)
        if key not in self._plans:
            plan = self._made(sent)
            if isinstance(plan, str) and len(self._plans) >= DIFFERENT_REASONS:
                return plan
            self._plans[key] = plan
        return self._plans[key]

    def _made(self, sent: SentMessage) -> _CostPlan | str:
        name, version = sent.name, sent.version
        old = self.old.specs.find(sent[:3])
        if old is None:
            return "the old specs do not contain this message"
        if version not in old.spec.valid_versions:
            return "the old specs do not contain this version"
        newest = old.spec.valid_versions.highest
        target = self.new.specs.target(
            sent[:3], old, version, newest=self.at is not VersionChoice.SENT
        )
        if isinstance(target, str):
            return target
        old_version = newest if self.at is VersionChoice.NEWEST else version
        middle_version = version if self.at is VersionChoice.SENT else newest
        read = self.old.specs.schema(old, version, Encoding.KAFKA)
        middle = self.old.specs.schema(old, middle_version, Encoding.KAFKA)
        renamed = _renamed(old, middle_version, *target)
        was = _write_form(self.old, old, old_version, sent)
        is_ = _write_form(self.new, *target, sent)
        row = self.rows.get((name, version))
        if row is None:
            shares = [
                Share(tagged_field)
                for tagged_field in newly_tagged(was.schema, is_.schema, renamed)
            ]
            kind = old.spec.type
            api = kind.api_name(name) if kind.is_api else None
            row = MessageCost(name, version, old_version, target[1], api, shares=shares)
            self.rows[name, version] = row
        return _CostPlan(
            read,
            None if middle is read else ValueConverter(read, middle, {}),
            ValueConverter(middle, is_.schema, renamed),
            was,
            is_,
            row,
            is_same=was.schema == is_.schema,
            paths=new_paths(was.schema, is_.schema, renamed),
        )


def _under(paths: Mapping[str, str], sizes: Mapping[str, int]) -> dict[str, int]:
    sizes_by_new_path: dict[str, int] = {}
    for path, size in sizes.items():
        name = paths.get(path, path)
        sizes_by_new_path[name] = sizes_by_new_path.get(name, 0) + size
    return sizes_by_new_path


def _renamed(old: Edition, version: int, new: Edition, new_version: int) -> Renames:
    # In a version that both sides have, only names can differ, unless the change breaks the
    # version.
    valid = new.spec.valid_versions
    shared = version if version in valid else new_version
    if old.at(version) is new.at(shared):
        return {}
    return renames((old.at(version), version), (new.at(shared), shared))


def _write_form(
    side: ComparisonSide, edition: Edition, version: int, sent: SentMessage
) -> _WriteForm:
    schema = side.specs.schema(edition, version, side.encoding)
    header = None
    if sent.header is not None:
        spec = edition.at(version)
        header = spec_header_versions(spec).of(version)
        header = header_version(spec.type, spec.api_key, header, flexible=schema.flexible)
    return _WriteForm(schema, side.encoding, header)
