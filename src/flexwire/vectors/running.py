"""Send each vector to a codec, in each direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from flexwire.arguments import to_kind, to_list
from flexwire.vectors.judging import Direction, Outcome, Verdict, judge
from flexwire.vectors.package import VectorPackage
from flexwire.vectors.process import CodecFaultError, CodecLimits, CodecProcess
from flexwire.vectors.results import CodecResults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from flexwire.vectors.package import Manifest, Vector


def run_codec(
    command: Sequence[str],
    vectors: VectorPackage | Iterable[Vector],
    *,
    limits: CodecLimits | None = None,
    encode: bool = True,
    manifest: Manifest | None = None,
    on_verdict: Callable[[Verdict], object] | None = None,
) -> CodecResults:
    """Run a codec on vectors, and return the results. ``command`` is a program with its arguments.

    Each vector is decoded. With ``encode``, valid messages are also encoded from their JSON. A
    fault affects only the case in which it occurs; the command is then restarted, up to the number
    of times in ``limits``. ``manifest`` identifies the vectors in the results. A package already
    has a manifest. ``on_verdict`` is called with each verdict as soon as it is known.

    Raises `VectorsError` if the command cannot be started or a vector cannot be read.
    """
    asked = to_list(command, "command", "texts")
    given: Iterable[Vector]
    if isinstance(vectors, VectorPackage):
        given, manifest = vectors.vectors(), vectors.manifest
    else:
        given = vectors
    bounds = CodecLimits() if limits is None else to_kind(limits, "limits", CodecLimits)
    results = CodecResults(asked, manifest)
    with CodecProcess(asked, bounds) as process:
        for vector in given:
            for direction in _directions(vector, encode=encode):
                verdict = _asked(process, vector, direction)
                results.add(verdict)
                if on_verdict is not None:
                    on_verdict(verdict)
        results.starts = process.starts
    return results


def _directions(vector: Vector, *, encode: bool) -> Iterator[Direction]:
    yield Direction.DECODE_RECORDS if vector.message is None else Direction.DECODE
    if encode and vector.can_be_encoded:
        yield Direction.ENCODE


def _asked(process: CodecProcess, vector: Vector, direction: Direction) -> Verdict:
    if process.is_spent:
        return Verdict(vector, direction, Outcome.NOT_ASKED)
    try:
        line = process.ask(question(vector, direction))
    except CodecFaultError as fault:
        return Verdict(vector, direction, Outcome.FAILED, str(fault))
    return judge(vector, direction, line)


def question(vector: Vector, direction: Direction) -> bytes:
    """Return the line that sends a case to a codec.

    The line does not contain the expected result.
    """
    facts: dict[str, Any] = {"case": vector.case, "do": direction.value}
    for name in ("message", "type", "api_key", "version", "header_version"):
        value = getattr(vector, name)
        if value is not None:
            first, *others = name.split("_")
            facts[first + "".join(map(str.capitalize, others))] = value
    if direction is Direction.ENCODE:
        facts["json"] = vector.json
    else:
        facts["hex"] = vector.hex
    return msgspec.json.encode(facts) + b"\n"
