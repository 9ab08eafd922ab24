"""The surveys of a capture's pieces made into that of the whole, each proven before it counts.

The fold goes from piece to piece with the true state of all connections. A piece counts if it
began where the one before it ended. A connection in it counts step by step: as long as it truly
stood where the piece supposed, what became of it there is taken over without its segments
(`flexwire.survey.piece_merger`); the segments that follow the first step for which that does not
hold are read again. So the result is what `Surveyor` finds, and the fold never reads most bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.capture.files.reading import SectionHead
from flexwire.capture.reassembly.packet_scan import FURTHER_REASONS, FileNotes
from flexwire.capture.reassembly.segments import FilePosition
from flexwire.survey.piece_merger import OverlapError, PieceMerger, UnprovenError
from flexwire.survey.piece_survey import has_kernels
from flexwire.survey.request import make_reader
from flexwire.survey.state import SequentialFiles, SurveyState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from flexwire.capture.files.reading import Head
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.pieces import Piece, PieceSummary
    from flexwire.survey.request import AnalysisRequest, Survey

    _Surveyed = tuple[Piece, PieceSummary | None]


class Fold:
    """Makes one survey of those of the pieces of ``files``, which are in the capture's order.

    ``survey`` is what is known already.
    """

    def __init__(
        self,
        asked: AnalysisRequest,
        keep: Callable[[str, bytes], None],
        files: list[InputFile],
        survey: Survey,
    ) -> None:
        self._asked = asked
        self._files = SequentialFiles(files)
        self._findings = SurveyState(asked, keep)
        self._findings.survey = survey
        self._at: FilePosition | None = None

    def run(self, pieces: Sequence[Piece], summaries: Iterable[PieceSummary | None]) -> Survey:
        """Take in the surveys of all pieces, in order. Raises `UnprovenError`."""
        if not has_kernels():
            # There are some where the pieces were cut.
            raise UnprovenError
        self._findings.begin_range(None)
        left = len(pieces)
        for some in _ranges(zip(pieces, summaries, strict=True), self._asked.range_bytes):
            left -= len(some)
            self._take(some, is_last=not left)
        return self._findings.finish(self._files)

    def _take(self, some: list[_Surveyed], *, is_last: bool) -> None:
        """Take in the pieces of a range."""
        findings = self._findings
        keys = None if is_last else _keys(some)
        begins = self._at is not None
        for piece, summary in some:
            is_next = summary is not None and self._is_next(summary.start)
            if begins or (keys is not None and not is_next):
                # What it shows is not what its survey says.
                keys = keys if is_next else None
                findings.begin_range(self._at, keys)
            begins = False
            if summary is not None and is_next:
                PieceMerger(self._asked, self._files, findings, summary).run()
                self._at = self._after(summary)
                self._note(summary.notes)
                findings.add(summary.size, self._at)
            else:
                self._read(piece)
            if self._at is None:
                # Within a gzip'd file nobody can go on.
                raise UnprovenError

    def _is_next(self, start: FilePosition) -> bool:
        """Whether a piece begins where all before it ends."""
        at = self._at
        if start.head is None:
            # The start of a file, and pieces are in order.
            return at is None or at.is_end
        return (
            at is not None
            and not at.is_end
            and (at.file, at.offset) == (start.file, start.offset)
            and _same(at.head, start.head)
        )

    def _after(self, summary: PieceSummary) -> FilePosition | None:
        """Where a piece ends, as a reader says it that has read all before."""
        stop, at = summary.stop, self._at
        if stop is None or stop.is_end or at is None or at.file != stop.file:
            return stop
        if stop.offset == at.offset:
            # No packet of it has told the time.
            return at
        return stop._replace(
            ordinal=at.ordinal + stop.ordinal,
            unreadable=tuple(dict.fromkeys(at.unreadable + stop.unreadable)),
            skipped=tuple(dict.fromkeys(at.skipped + stop.skipped)),
        )

    def _note(self, notes: list[FileNotes]) -> None:
        known = self._findings.survey.notes
        for one in notes:
            if one.error is not None:
                raise one.error
            if FURTHER_REASONS in one.unreadable.packets or FURTHER_REASONS in one.skipped.packets:
                raise UnprovenError
            if known and known[-1].file == one.file and known[-1].error is None:
                known[-1].add(one)
            else:
                known.append(one)

    def _read(self, piece: Piece) -> None:
        """Survey a piece that is not known to begin where it was supposed to."""
        findings = self._findings
        until = piece.until
        last = until or FilePosition(piece.files[-1].name, is_end=True)
        files = self._files.between(self._at, last)
        reader = make_reader(self._asked, files, self._at, until)
        for item in reader:
            if isinstance(item, FileNotes):
                self._note([item])
                continue
            if not findings.order.keeps(item):
                raise OverlapError
            findings.see(findings.flows.push(item))
            findings.end_connections()
            findings.survey.redone += len(item)
            findings.add(item.weight, reader.position)
        self._at = reader.position
        findings.add(0, self._at)


def _ranges(told: Iterable[_Surveyed], size: int) -> Iterator[list[_Surveyed]]:
    """Put pieces together to ranges that come nearest to a size."""
    some: list[_Surveyed] = []
    total = 0
    for piece, summary in told:
        its = piece.size if summary is None else summary.size
        if some and total + its // 2 >= size:
            yield some
            some, total = [], 0
        some.append((piece, summary))
        total += its
    if some:
        yield some


def _keys(some: list[_Surveyed]) -> list[str] | None:
    """The keys that pieces show, as they appear; None where that is not known of one."""
    found: dict[str, None] = {}
    for _, summary in some:
        if summary is None:
            return None
        found |= dict.fromkeys(summary.keys)
    return list(found)


def _same(head: Head | None, other: Head | None) -> bool:
    """Whether two heads say the same of the packets that follow, of which the first has a time."""
    if isinstance(head, SectionHead) and isinstance(other, SectionHead):
        return head._replace(last_us=0) == other._replace(last_us=0)
    return head == other
