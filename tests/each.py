"""One test for a law about many values, such as all messages: it checks all, and names failures.

In every run, a parametrized test costs pytest two milliseconds for each value.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from tests.searching import in_parts

# An error names at most this many failing values, in at most this many characters.
NAMED, LENGTH = 20, 80

Test = Callable[..., None]


def each(
    name: str,
    values: Iterable[Any] | Mapping[str, Any] | Callable[[], Iterable[Any]],
    *,
    parts: int = 1,
) -> Callable[[Test], Test]:
    """Call the test with each value as one of its arguments.

    If ``values`` is a mapping, its keys name the values. If the values take long to make, pass a
    function, which is called when the test runs. The test raises the first error, with a note that
    names the failing values. Fixtures are set up once.

    With ``parts``, `make test` tries one part of the values, and `make long` tries the others
    (`in_parts`). Use this for laws whose values share one path through the code.
    """

    def over(test: Test) -> Test:
        @functools.wraps(test)
        def run(*, part: int = 0, **fixtures: Any) -> None:
            whole = values() if callable(values) else values
            named = (
                [*whole.items()]
                if isinstance(whole, Mapping)
                else [(value, value) for value in whole]
            )
            named = named[part::parts]
            failed: list[tuple[object, BaseException]] = []
            for label, value in named:
                try:
                    test(**{name: value}, **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - it is raised below
                    failed.append((label, error))
            assert named, f"there is no {name}"
            if failed:
                told = ", ".join(f"{label!r:.{LENGTH}}" for label, _ in failed[:NAMED])
                first = failed[0][1]
                first.add_note(f"of {len(named)} {name}, {len(failed)} fail: {told}")
                raise first

        found = inspect.signature(test)
        left = [one for one in found.parameters.values() if one.name != name]
        assert len(left) < len(found.parameters), f"{test.__name__} has no parameter {name}"
        if parts > 1:
            left.append(inspect.Parameter("part", inspect.Parameter.KEYWORD_ONLY))
        run.__signature__ = found.replace(parameters=left)  # type: ignore[attr-defined]  # what pytest reads
        return pytest.mark.parametrize("part", in_parts(parts))(run) if parts > 1 else run

    return over
