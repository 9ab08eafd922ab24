"""Measure the survey of a capture in order, and in pieces that are folded, in CPU time.

``python benchmarks/survey.py PLACE [--mb MB] [--kind heavy|small] [--connections N]``:
`benchmarks/captures.py` makes the capture as one file, unless it exists. ``--piece-mb`` is the size
of the pieces, and of the ranges.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from pathlib import Path

from captures import AnalysisRequest as Shape
from captures import add_options, make

from flexwire.storage.file_search import list_captures
from flexwire.survey.fold import Fold
from flexwire.survey.piece_survey import survey_piece
from flexwire.survey.pieces import cut_into_pieces
from flexwire.survey.survey import AnalysisRequest, Survey, Surveyor, list_readable_files


def measured(files: list[Path], piece_bytes: int) -> dict[str, float]:
    """Survey the files both ways."""
    asked = AnalysisRequest(tuple(list_captures(files)), range_bytes=piece_bytes)
    kept: dict[str, bytes] = {}
    began = time.process_time()
    whole = Surveyor(asked, kept.__setitem__).run()
    in_order_s = time.process_time() - began
    survey = Survey()
    ordered = list_readable_files(asked, survey) or []
    pieces = cut_into_pieces(ordered, piece_bytes)
    began = time.process_time()
    found = [
        pickle.dumps(survey_piece(asked, one, is_first=number == 0), pickle.HIGHEST_PROTOCOL)
        for number, one in enumerate(pieces)
    ]
    pieces_s = time.process_time() - began
    began = time.process_time()
    folded = Fold(asked, kept.__setitem__, ordered, survey).run(pieces, map(pickle.loads, found))
    fold_s = time.process_time() - began
    assert folded.connections == whole.connections
    mb = sum(one.stat().st_size for one in files) / 1e6
    return {
        "mb": round(mb),
        "in_order_s": round(in_order_s, 3),
        "mb_per_s": round(mb / in_order_s),
        "pieces": len(pieces),
        "pieces_s": round(pieces_s, 3),
        "fold_s": round(fold_s, 3),
        "handed_over_mb": round(sum(map(len, found)) / 1e6, 1),
        "redone": folded.redone,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("place", type=Path)
    parser.add_argument("--mb", type=float, default=500)
    parser.add_argument("--piece-mb", type=float, default=64)
    add_options(parser)
    parser.set_defaults(file_mb=1e6)
    given = vars(parser.parse_args())
    folder, piece_mb = given.pop("place"), given.pop("piece_mb")
    if not folder.exists():
        make(folder, Shape(**given))
    result = measured(sorted(folder.glob("*.pcapng")), int(piece_mb * 1e6))
    print(json.dumps(result))
