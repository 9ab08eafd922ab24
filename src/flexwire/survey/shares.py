"""Survey captures of several hosts by shares of their connections, and join the shares.

Files that overlap in time and contain the same connections are merged, and therefore cannot be
surveyed in pieces. Each share reads and merges all packets of the files, but processes only the
segments of its own connections. A share guesses nothing. The merged order depends only on the
files, so all shares cut the same ranges at the same places. All facts about a connection are in one
share. Numbers that are counted over all packets are the same in each share, so those of the first
share are used.

The result equals that of `flexwire.survey.survey.Surveyor`. At a cut each share keeps the state of
its own connections, and the task that decodes the range joins these states.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flexwire.survey.capture_files import MergedFiles
from flexwire.survey.state import SurveyState, load_state
from flexwire.survey.survey import read_capture

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flexwire.capture.reassembly.assembly import ConnectionShare
    from flexwire.survey.request import AnalysisRequest, FileLook, Survey
    from flexwire.survey.state import SurveyPart

    Keep = Callable[[str, bytes], None]


def survey_share(
    request: AnalysisRequest,
    looks: list[FileLook],
    share: ConnectionShare,
    keep: Keep,
    before: bytes | None = None,
) -> SurveyPart:
    """Survey a share of the connections of readable files that must be merged.

    ``before`` is the saved state of an earlier analysis that this capture continues. Raises
    `LateError` and `SavedStateError` if that state cannot be used.
    """
    state = SurveyState(request, keep, load_state(request, before), share)
    reader = MergedFiles(request, looks).reader()
    reader.share = share
    read_capture(request, state, reader)
    return state.part()


def join_shares(
    request: AnalysisRequest,
    keep: Keep,
    looks: list[FileLook],
    survey: Survey,
    parts: Sequence[SurveyPart],
    before: bytes | None = None,
) -> Survey:
    """Return the survey of all connections, and keep the entries for each range.

    ``survey`` contains the known facts about the files. The ``parts`` belong to the same files and
    to the same state ``before``. Raises `UnprovenError` if the ranges of the parts differ.
    """
    state = SurveyState(request, keep, load_state(request, before))
    state.survey = replace(survey, notes=list(survey.notes), connections=[], is_merged=True)
    state.join(parts)
    return state.finish(MergedFiles(request, looks))
