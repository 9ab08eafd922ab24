"""Join the surveys of a capture's pieces into one survey, and verify each piece.

The fold processes the pieces in order, with the true state of all connections. A piece is used only
if it began where the previous piece ended. A connection is checked step by step. As long as its
true state equals the piece's guess, its steps are used without reading its segments
(`flexwire.survey.piece_merger`). From the first step whose guess is wrong, the segments of the
connection are read again. The result equals that of `Surveyor`, but the fold never reads most of
the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.capture.files.reading import SectionHead
from flexwire.capture.reassembly.packet_scan import FURTHER_REASONS, FileNotes
from flexwire.capture.reassembly.segments import FilePosition
from flexwire.survey.capture_files import SequentialFiles
from flexwire.survey.piece_merger import OverlapError, PieceMerger
from flexwire.survey.piece_survey import has_kernels
from flexwire.survey.request import make_reader
from flexwire.survey.state import SurveyState, UnprovenError, load_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from flexwire.capture.files.reading import Head
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.pieces import Piece, PieceSummary
    from flexwire.survey.request import AnalysisRequest, Survey

    _Surveyed = tuple[Piece, PieceSummary | None]


class Fold:
    """Make one survey from the surveys of pieces of ``files``, which are in the capture's order.

    ``survey`` is the survey with the facts that are already known. ``before`` is the saved state of
    an earlier analysis. Raises `SavedStateError` if that state cannot be used.
    """

    def __init__(
        self,
        request: AnalysisRequest,
        keep: Callable[[str, bytes], None],
        files: list[InputFile],
        survey: Survey,
        before: bytes | None = None,
    ) -> None:
        self._request = request
        self._files = SequentialFiles(files)
        self._state = SurveyState(request, keep, load_state(request, before))
        self._state.survey = survey
        self._at: FilePosition | None = None

    def run(self, pieces: Sequence[Piece], summaries: Iterable[PieceSummary | None]) -> Survey:
        """Add the surveys of all pieces, in order. Raises `UnprovenError` or `LateError`."""
        if not has_kernels():
            # The machine that cut the capture into pieces had kernels.
            raise UnprovenError
        self._state.begin_range(None)
        left = len(pieces)
        for group in _ranges(zip(pieces, summaries, strict=True), self._request.range_bytes):
            left -= len(group)
            self._take(group, is_last=not left)
        return self._state.finish(self._files)

    def _take(self, group: list[_Surveyed], *, is_last: bool) -> None:
        """Add the pieces of one range."""
        state = self._state
        keys = None if is_last else _keys(group)
        begins = self._at is not None
        for piece, summary in group:
            is_next = summary is not None and self._is_next(summary.start)
            if begins or (keys is not None and not is_next):
                # The keys in the range differ from those that its survey lists.
                keys = keys if is_next else None
                state.begin_range(self._at, keys)
            begins = False
            if summary is not None and is_next:
                PieceMerger(self._request, self._files, state, summary).run()
                self._at = self._after(summary)
                self._note(summary.notes)
                state.add(summary.size, self._at)
            else:
                self._read(piece)
            if self._at is None:
                # A reader cannot begin within a gzip-compressed file.
                raise UnprovenError

    def _is_next(self, start: FilePosition) -> bool:
        """Return whether a piece begins where everything before it ends."""
        at = self._at
        if start.head is None:
            # The piece begins with a file, and pieces are in order.
            return at is None or at.is_end
        return (
            at is not None
            and not at.is_end
            and (at.file, at.offset) == (start.file, start.offset)
            and _same(at.head, start.head)
        )

    def _after(self, summary: PieceSummary) -> FilePosition | None:
        """Return where a piece ends, as reported by a reader that has read everything before it."""
        stop, at = summary.stop, self._at
        if stop is None or stop.is_end or at is None or at.file != stop.file:
            return stop
        if stop.offset == at.offset:
            # No packet in the piece has a capture time.
            return at
        return stop._replace(
            ordinal=at.ordinal + stop.ordinal,
            unreadable=tuple(dict.fromkeys(at.unreadable + stop.unreadable)),
            skipped=tuple(dict.fromkeys(at.skipped + stop.skipped)),
        )

    def _note(self, notes: list[FileNotes]) -> None:
        earlier = self._state.survey.notes
        for note in notes:
            if note.error is not None:
                raise note.error
            reasons = note.unreadable.packets | note.skipped.packets
            if FURTHER_REASONS in reasons:
                raise UnprovenError
            if earlier and earlier[-1].file == note.file and earlier[-1].error is None:
                earlier[-1].add(note)
            else:
                earlier.append(note)

    def _read(self, piece: Piece) -> None:
        """Survey a piece in this process, because its survey may have begun at another place."""
        state = self._state
        until = piece.until
        last = until or FilePosition(piece.files[-1].name, is_end=True)
        files = self._files.between(self._at, last)
        reader = make_reader(self._request, files, self._at, until)
        for item in reader:
            if isinstance(item, FileNotes):
                self._note([item])
                continue
            if not state.order.keeps(item):
                raise OverlapError
            state.push(item)
            state.survey.redone += len(item)
            state.add(item.weight, reader.position)
        self._at = reader.position
        state.add(0, self._at)


def _ranges(surveys: Iterable[_Surveyed], size: int) -> Iterator[list[_Surveyed]]:
    """Group pieces into ranges with sizes as near as possible to ``size``."""
    group: list[_Surveyed] = []
    total = 0
    for piece, summary in surveys:
        size_of_piece = piece.size if summary is None else summary.size
        if group and total + size_of_piece // 2 >= size:
            yield group
            group, total = [], 0
        group.append((piece, summary))
        total += size_of_piece
    if group:
        yield group


def _keys(group: list[_Surveyed]) -> list[str] | None:
    """Return the keys in the pieces, in the order of their appearance, or None if unknown."""
    keys: dict[str, None] = {}
    for _, summary in group:
        if summary is None:
            return None
        keys |= dict.fromkeys(summary.keys)
    return list(keys)


def _same(head: Head | None, other: Head | None) -> bool:
    """Return whether two heads have the same meaning for the packets after them.

    Only one of the heads has a time.
    """
    if isinstance(head, SectionHead) and isinstance(other, SectionHead):
        return head._replace(last_us=0) == other._replace(last_us=0)
    return head == other
