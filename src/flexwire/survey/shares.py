"""Surveys captures of several hosts by shares of their connections, and joins the shares.

Files that overlap in time and show the same connections are merged, so they cannot be surveyed in
pieces. Each share reads and merges all of their packets, and takes in the segments of its own
connections alone. It guesses nothing. The merged order depends on the files alone, so all shares
cut the same ranges at the same places. Everything that is known of a connection is in one share.
All that is counted over all packets is the same in each, and is taken from the first.

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
    """Survey a share of the connections of readable files, which are merged.

    ``before`` is the saved state of an earlier analysis that this capture continues. Raises
    `LateError` and `SavedStateError` if it cannot be used.
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

    ``survey`` is what is known of the files. The ``parts`` are of the same files and of the same
    state before. Raises `UnprovenError` if their ranges differ.
    """
    state = SurveyState(request, keep, load_state(request, before))
    state.survey = replace(survey, notes=list(survey.notes), connections=[], is_merged=True)
    state.join(parts)
    return state.finish(MergedFiles(request, looks))
