"""Exchanges that are over within a step of a piece, and so are not handed over.

A request and its response that both stand in one step of a log change nothing for anything else:
what waits before them waits after them. That holds if nothing else on their connection has their
correlation id, in the piece (`without_exchanges` sees to that) and among what waits from before it,
or crosses into it (`Apart` finds that out). So of most frames a piece hands over no row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from flexwire.capture.reassembly.frames import taken
from flexwire.kernels.capture import turns_layout as L  # noqa: N812 - a word in front of a few
from flexwire.protocol.conversation import DEFAULT_IN_FLIGHT
from flexwire.survey.supposed import Run, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flexwire.capture.pairing.pairing import Turns
    from flexwire.survey.pieces import Frames
    from flexwire.survey.supposed import Log

    Array = np.ndarray[Any, np.dtype[Any]]

_COLUMNS = ("connection", "is_response", "index", "time_us", "first_us", "start", "stop")
_TOLD = ("error", "software", "topics")
# So many requests wait at most of each: those from before, those of the piece, and those that only
# the whole knows. With more, the oldest could be forgotten, and which is that?
_MOST_WAITING: Final = DEFAULT_IN_FLIGHT // 4


class Steps(NamedTuple):
    """Where the rows of a piece belong: ``order`` is that of their keys, and in it of the rows.

    In that order, ``key`` numbers their keys, and ``step`` the runs of their logs, -1 for others.
    """

    order: Array
    key: Array
    step: Array


def first_steps(logs: Mapping[str, Log]) -> dict[str, int]:
    """The number of the first step of each log, where steps are numbered through."""
    sizes = np.cumsum([0, *(len(one.steps) for one in logs.values())]).tolist()
    return dict(zip(logs, sizes, strict=False))


def steps_of(frames: Frames, logs: Mapping[str, Log], *, is_first: bool) -> Steps:
    """The steps of all rows; of the first piece, which supposes nothing, a connection is a step."""
    connection = frames.connection.astype(np.int64)
    if is_first:
        order = np.argsort(connection, kind="stable")
        return Steps(order, connection[order], connection[order])
    numbers: dict[str, int] = {}
    of_name = [numbers.setdefault(key_of(one), len(numbers)) for one in frames.names]
    key = np.array(of_name, np.int64)[connection] if of_name else connection
    order = np.argsort(key, kind="stable")
    firsts, steps, sizes = first_steps(logs), [], []
    for one, rows in zip(numbers, np.bincount(key, minlength=len(numbers)).tolist(), strict=True):
        left = rows
        log = logs.get(one)
        for number, step in enumerate([] if log is None else log.steps, firsts.get(one, 0)):
            steps.append(number if isinstance(step, Run) else -1)
            sizes.append(min(left, step.frames))
            left -= sizes[-1]
        steps.append(-1)
        sizes.append(left)
    return Steps(order, key[order], np.repeat(np.array(steps, np.int64), sizes))


def without_exchanges(frames: Frames, made_up: Array, steps: Steps, *, is_first: bool) -> Frames:
    """Leave the rows out that need not be handed over; ``made_up`` are those of no true frame."""
    if not len(made_up):
        return frames
    step = np.empty_like(steps.step)
    step[steps.order] = steps.step
    asks, answers = _exchanges(frames, made_up, steps, step)
    is_left_out = _silent(frames) & ~_strange(frames, made_up) & (step >= 0)
    is_left_out[asks] = is_left_out[answers] = True
    other = np.full(len(step), -1)
    other[asks], other[answers] = answers, asks
    wanted = np.unique(np.concatenate([_wanted(frames, steps), _telling(frames, step)]))
    is_left_out[wanted] = False
    partners = other[wanted]
    is_left_out[partners[partners >= 0]] = False
    codes = np.zeros(0, np.int64)
    if not is_first:
        asks = asks[is_left_out[asks]]
        codes = np.unique(_codes(step[asks], frames.facts.correlation_id[asks]))
    ordinal = np.empty_like(step)
    firsts = np.searchsorted(steps.key, steps.key)
    ordinal[steps.order] = np.arange(len(step)) - firsts
    return _taken(frames, np.flatnonzero(~is_left_out), ordinal, _spans(codes))


def _taken(frames: Frames, rows: Array, ordinal: Array, left_out: Array) -> Frames:
    some: dict[str, Any] = {name: getattr(frames, name)[rows] for name in _COLUMNS}
    some |= {name: taken(getattr(frames, name), rows) for name in _TOLD}
    return replace(
        frames,
        **some,
        facts=frames.facts.take(rows),
        unplaced=set(taken(dict.fromkeys(frames.unplaced), rows)),
        ordinal=ordinal[rows],
        left_out=left_out,
    )


def _silent(frames: Frames) -> Array:
    """Which rows are requests that no response is expected of."""
    facts = frames.facts
    found: Array = (facts.kind == L.REQUEST) & (facts.is_given > 0) & (facts.is_expected == 0)
    return found


def _strange(frames: Frames, made_up: Array) -> Array:
    """Which rows are of connections with frames of which others have to say what they are."""
    found = np.zeros(len(frames.names), np.bool_)
    found[frames.connection[(frames.facts.is_given == 0) & ~made_up]] = True
    return found[frames.connection]


def _exchanges(frames: Frames, made_up: Array, steps: Steps, step: Array) -> tuple[Array, Array]:
    """The rows of requests and of their responses that nothing else in the piece concerns."""
    kind, ids = frames.facts.kind, frames.facts.correlation_id
    is_given = frames.facts.is_given > 0
    rows = np.flatnonzero(is_given & ~_silent(frames) & ~_strange(frames, made_up))
    codes = _codes(frames.connection[rows], ids[rows])
    order = np.argsort(codes, kind="stable")
    rows, codes = rows[order], codes[order]
    begins = _begins(codes)
    starts = np.flatnonzero(begins)
    if not len(starts):
        return rows, rows
    sizes = np.diff(np.append(starts, len(rows)))
    is_odd = (np.arange(len(rows)) - np.repeat(starts, sizes)) % 2 == 1
    fits = kind[rows] == np.where(is_odd, L.ANSWER, L.REQUEST)
    by_turns = np.logical_and.reduceat(fits, starts) & (sizes % 2 == 0)
    asks = np.flatnonzero(np.repeat(by_turns, sizes) & ~is_odd)
    asks, answers = rows[asks], rows[asks + 1]
    within = (step[asks] == step[answers]) & (step[asks] >= 0)
    asks, answers = asks[within], answers[within]
    few = ~_crowded(frames, steps, asks, answers)[asks]
    return asks[few], answers[few]


def _crowded(frames: Frames, steps: Steps, asks: Array, answers: Array) -> Array:
    """Which rows are of keys with so many requests at once that some may be forgotten."""
    found = np.zeros(len(steps.order), np.bool_)
    change = np.zeros(len(steps.order), np.int64)
    change[(frames.facts.kind == L.REQUEST) & ~_silent(frames)] = 1
    change[answers] = -1
    waiting = np.cumsum(change[steps.order])
    if waiting.max(initial=0) <= _MOST_WAITING:
        return found
    starts = np.flatnonzero(_begins(steps.key))
    alone = change.copy()
    alone[asks] = alone[answers] = 0
    change -= alone
    # An exchange leaves nothing: each key begins with none that wait.
    most = np.maximum.reduceat(np.cumsum(change[steps.order]), starts)
    most += np.add.reduceat(alone[steps.order], starts)
    sizes = np.diff(np.append(starts, len(steps.order)))
    found[steps.order] = np.repeat(most > _MOST_WAITING, sizes)
    return found


def _wanted(frames: Frames, steps: Steps) -> Array:
    """Rows that say of a step what its frames say together.

    They are its first and last, by their time, and its first and last request: by the last, and by
    all before it, it is known whether its connection may hold credentials.
    """
    order, facts = steps.order, frames.facts
    begins = _begins(steps.step) | _begins(steps.key)
    number = np.cumsum(begins) - 1
    times = frames.time_us[order]
    starts = np.flatnonzero(begins)
    found = []
    for ends in (np.minimum, np.maximum):
        places = np.flatnonzero(times == ends.reduceat(times, starts)[number])
        found.append(places[_begins(number[places])])
    asks = np.flatnonzero((facts.kind[order] == L.REQUEST) & (facts.is_given[order] > 0))
    begins = _begins(number[asks])
    found += [asks[begins], asks[np.roll(begins, -1)]]
    return order[np.concatenate(found)]


def _telling(frames: Frames, step: Array) -> Array:
    """The rows whose bodies say something; of those of a step that say the same, the first."""
    found = {
        (int(step[row]), id(topics)): row for row, topics in sorted(frames.topics.items())[::-1]
    }
    return np.array([*frames.software, *found.values()], np.int64)


def _begins(column: Array) -> Array:
    """Where a value is another than that before it."""
    found: Array = np.ones(len(column), np.bool_)
    np.not_equal(column[1:], column[:-1], out=found[1:])
    return found


def _codes(number: Array, ids: Array) -> Array:
    return number.astype(np.int64) << L.SIDE_SHIFT | ids.astype(np.int64) & L.CORRELATION_MASK


def _spans(codes: Array) -> Array:
    """The first and the last of the numbers that follow one another."""
    if not len(codes):
        return np.zeros((0, 2), np.int64)
    starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 2) != 1)
    return np.stack([codes[starts], codes[np.append(starts[1:] - 1, -1)]], axis=1)


class Apart:
    """Whether the exchanges that were left out are apart from what only the whole knows.

    ``waiting`` is what waits from before the piece, and other frames are noted.
    """

    def __init__(self, left_out: Array, turns: Turns) -> None:
        self._first, self._last = left_out[:, 0], left_out[:, 1]
        self._ids = turns.waiting() if len(left_out) else {}

    def note(self, connection: str, ids: Iterable[int]) -> None:
        """Take in the correlation ids of frames that the piece does not know as they truly are."""
        known = self._ids.get(connection, np.zeros(0, np.int64))
        self._ids[connection] = np.append(known, np.array([*ids], np.int64))

    def is_so(self, step: int, connection: str) -> bool:
        """Whether it is so of those of a step."""
        ids = self._ids.get(connection)
        if ids is None or not len(self._first):
            return True
        codes = _codes(np.array(step), ids)
        places = np.searchsorted(self._first, codes, "right") - 1
        is_within = (places >= 0) & (codes <= self._last[places])
        return not is_within.any() and len(ids) <= _MOST_WAITING
