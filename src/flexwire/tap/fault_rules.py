"""Faults: which requests a tap breaks on purpose, and how. Each line of text specifies one fault.

``Produce client=billing error=NOT_LEADER_OR_FOLLOWER after once`` means: forward the first Produce
request of this client, and write the error into its response. docs/faults.md describes the grammar,
and `flexwire.tap.fault_forwarder` applies faults.
"""

from __future__ import annotations

import random
import re
import shlex
from collections import Counter
from dataclasses import KW_ONLY, dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast, get_args

from flexwire.arguments import refuse, to_int
from flexwire.capture.files.comments import CaptureFilter
from flexwire.errors import ArgumentError, short
from flexwire.protocol.error_codes import error_codes, nearest_codes
from flexwire.tap.frame_filter import parse_api
from flexwire.tap.header_stamps import HeaderTag, parse_header_tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flexwire.protocol import RequestFrame

FaultKind = Literal["error", "delay", "cut", "close", "silence", "throttle", "tag", "stale"]
"""The kind of a fault: see docs/faults.md."""
FaultPoint = Literal["before", "after"]
"""When a fault is applied: before the broker gets the request, or after it has responded."""

_KINDS: Final = get_args(FaultKind)
_EVERY_API: Final = "*"
# The possible points for each kind, with the default first.
_POINTS: Final[dict[str, tuple[FaultPoint, ...]]] = {
    "error": ("before", "after"),
    "delay": ("before", "after"),
    "cut": ("after", "before"),
    "close": ("before", "after"),
    "silence": ("before", "after"),
    "throttle": ("after",),
    "tag": ("after",),
    "stale": ("after",),
}
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}
_MOST_SECONDS: Final = 600.0
_MOST_FAULTS: Final = 100
_MOST_TEXT: Final = 300
_WORDS: Final = (
    *(f"{kind}=" for kind in ("error", "delay", "throttle", "tag")),
    *("cut", "close", "silence", "stale", "after=", "client=", "topic="),
    *("before", "after", "once", "first=", "nth="),
)


class Frequency(NamedTuple):
    """How often a fault applies: to a share of matching requests, the first few, or the nth."""

    share: float = 1.0
    first: int | None = None
    nth: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: which requests match, what it does, and when and how often it is applied.

    ``code`` is the error code, ``seconds`` is the duration of a delay or throttle, ``length`` is
    the number of bytes that remain of a cut frame, and ``tag`` contains the number and the bytes of
    a tagged field. ``point`` is None for an error that is applied before forwarding if possible,
    and otherwise after forwarding. ``text`` is the text that `parse_fault` read.
    """

    kind: FaultKind
    _: KW_ONLY
    text: str
    only: CaptureFilter = field(default_factory=CaptureFilter)
    point: FaultPoint | None = None
    often: Frequency = Frequency()  # noqa: RUF009 - the value is immutable
    code: int = 0
    seconds: float = 0.0
    length: int = 0
    tag: tuple[int, bytes] = (0, b"")

    def __str__(self) -> str:
        """Return the text from which the fault was read."""
        return self.text


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults of a tap, in order. If several match a request, the first one is applied.

    ``seed`` determines the random choices of faults with a share. If ``seed`` is None, a new seed
    is used and logged. Raises `ArgumentError` for more than 100 faults.
    """

    faults: tuple[Fault, ...] = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        if len(self.faults) > _MOST_FAULTS:
            raise refuse("faults", f"at most {_MOST_FAULTS}", len(self.faults))
        if self.seed is not None:
            to_int(self.seed, "seed", least=0)


class Faults:
    """The faults of a running tap, and how many requests each of them matched and changed."""

    def __init__(self, plan: FaultPlan) -> None:
        self.seed = random.SystemRandom().getrandbits(32) if plan.seed is None else plan.seed
        self.active: list[Fault] = list(plan.faults)
        """The faults that are still applied, in order."""
        self.done: Counter[str] = Counter()
        """How often each fault was applied, by the fault's text."""
        # The counts are indexed by the place of a fault among the active faults.
        self._seen: Counter[int] = Counter()
        self._random = random.Random(self.seed)  # noqa: S311 - this choice must be repeatable

    def add(self, fault: Fault) -> None:
        """Add a fault after the existing ones. Raises `ArgumentError` for too many faults."""
        FaultPlan((*self.active, fault))
        self.active.append(fault)

    def end(self) -> None:
        """Apply no more faults. Faults that have begun continue to their end."""
        self.active.clear()
        self._seen.clear()

    def pick(self, request: RequestFrame, fits: Callable[[Fault], bool]) -> Fault | None:
        """Return the fault to apply to a request, if any: the first one that matches and is due.

        ``fits`` is called for faults whose API and client match those of the request.
        """
        for place, fault in enumerate(self.active):
            only = fault.only
            if not only.takes_api(request.api_name) or not only.takes_client(request.client_id):
                continue
            if fits(fault) and self._is_due(fault, place):
                return fault
        return None

    def _is_due(self, fault: Fault, place: int) -> bool:
        self._seen[place] += 1
        seen, often = self._seen[place], fault.often
        if often.nth is not None:
            return seen == often.nth
        if often.first is not None:
            return seen <= often.first
        return often.share >= 1 or self._random.random() < often.share


def parse_fault(text: str) -> Fault:
    """Parse one fault. Raises `ArgumentError` with the invalid and the allowed words.

    >>> fault = parse_fault("EndTxn error=INVALID_TXN_STATE once")
    >>> fault.kind, fault.code, fault.only.apis, fault.often.first
    ('error', 48, ('EndTxn',), 1)
    >>> parse_fault("Fetch delay=2s 5%").seconds
    2.0
    """
    try:
        api, *words = shlex.split(text)
    except ValueError:
        raise ArgumentError(
            f"expected an API and an action, such as Fetch delay=2s, got {short(text)}"
        ) from None
    if len(text) > _MOST_TEXT:
        raise ArgumentError(f"expected a fault of at most {_MOST_TEXT} characters")
    said = _Words(text)
    for word in words:
        said.take(word)
    if said.kind is None:
        raise ArgumentError(f"expected one of {', '.join(_KINDS)} in {short(text)}")
    apis = () if api == _EVERY_API else (parse_api(api),)
    only = CaptureFilter(apis, tuple(said.clients), tuple(said.topics))
    return Fault(said.kind, text=text, only=only, **said.fields())


def parse_faults(lines: Iterable[str]) -> tuple[Fault, ...]:
    """Return faults, one per line. Empty lines and lines that begin with ``#`` are skipped.

    Raises an `ArgumentError` that includes the number of the invalid line.
    """
    faults: list[Fault] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            faults.append(parse_fault(text))
        except ArgumentError as error:
            raise ArgumentError(f"line {number}: {error}") from None
    return tuple(faults)


class _Words:
    """The words of one fault, read one after another."""

    def __init__(self, text: str) -> None:
        self.kind: FaultKind | None = None
        self.clients: list[str] = []
        self.topics: list[str] = []
        self._text = text
        self._fields: dict[str, Any] = {}

    def take(self, word: str) -> None:
        name, is_given, value = word.partition("=")
        if name in _KINDS:
            if self.kind is not None:
                raise ArgumentError(
                    f"expected one action, got {self.kind} and {name} in {short(self._text)}"
                )
            self.kind = cast("FaultKind", name)
            self._take_value(word, name, value if is_given else None)
        elif name in {"client", "topic"} and value:
            (self.clients if name == "client" else self.topics).append(value)
        elif word in {"before", "after"}:
            self._set("point", word, word)
        elif name == "after" and value:
            self._set("length", _to_count(value, word, least=0), word)
        elif (often := _to_frequency(word)) is not None:
            self._set("often", often, word)
        else:
            near = get_close_matches(word, _WORDS, 1)
            meant = (
                f"; did you mean {near[0]}?" if near else f"; valid words are {', '.join(_WORDS)}"
            )
            raise ArgumentError(f"{short(word)} is not a valid word in a fault{meant}")

    def fields(self) -> dict[str, Any]:
        """Return the fields, with the defaults for the kind. Raises `ArgumentError`."""
        kind, fields = str(self.kind), dict(self._fields)
        points = _POINTS[kind]
        point = fields.get("point")
        if point is not None and point not in points:
            raise ArgumentError(f"{kind} must happen {points[0]} forwarding, got {point}")
        if "length" in fields and kind != "cut":
            raise ArgumentError(f"only cut accepts after=BYTES; {kind} accepts before or after")
        if point is None and kind != "error":
            fields["point"] = points[0]
        return fields

    def _take_value(self, word: str, kind: str, value: str | None) -> None:
        if kind in {"cut", "close", "silence", "stale"}:
            if value is not None:
                raise ArgumentError(f"{kind} does not accept a value, got {short(word)}")
        elif not value:
            raise ArgumentError(f"expected {kind}=… with a value, got {short(word)}")
        elif kind == "error":
            self._set("code", _to_code(value), word)
        elif kind == "tag":
            number, sent = _to_tag(parse_header_tag(value))
            self._set("tag", (number, sent), word)
        else:
            self._set("seconds", _to_seconds(value), word)

    def _set(self, name: str, value: object, word: str) -> None:
        if name in self._fields:
            raise ArgumentError(
                f"{short(word)} repeats another word of the fault; leave out one word"
            )
        self._fields[name] = value


def _to_code(text: str) -> int:
    codes = {code.name: code.code for code in error_codes()}
    code = codes.get(text.upper())
    if code is None and re.fullmatch(r"-?[0-9]{1,5}", text):
        code = int(text) if int(text) in codes.values() else None
    if code is None:
        named = ", ".join(one.name for one in nearest_codes(text))
        raise ArgumentError(
            f"expected the name or number of an error, such as {named}, got {text!r}"
        )
    if not code:
        raise ArgumentError("expected an error code other than 0, got 0")
    return code


def _to_seconds(text: str) -> float:
    number = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(ms|s|m)", text)
    seconds = 0.0 if number is None else float(number[1]) * _UNITS[number[2]]
    if not 0 < seconds <= _MOST_SECONDS:
        raise ArgumentError(
            f"expected a time of at most {_MOST_SECONDS / 60:g}m, such as 200ms or 2s, got {text!r}"
        )
    return seconds


def _to_count(text: str, word: str, *, least: int) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < least:
        raise ArgumentError(f"expected a whole number of at least {least} in {short(word)}")
    return int(text)


def _to_frequency(word: str) -> Frequency | None:
    name, _, value = word.partition("=")
    if word == "once":
        return Frequency(first=1)
    if name == "first":
        return Frequency(first=_to_count(value, word, least=1))
    if name == "nth":
        return Frequency(nth=_to_count(value, word, least=1))
    share = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%", word)
    if share is None:
        return None
    if not 0 < float(share[1]) <= 100:  # noqa: PLR2004 - this is a percentage
        raise ArgumentError(f"expected a share above 0% and at most 100%, got {word}")
    return Frequency(share=float(share[1]) / 100)


def _to_tag(tag: HeaderTag) -> tuple[int, bytes]:
    value = tag.value
    return tag.tag, value.encode() if isinstance(value, str) else value
