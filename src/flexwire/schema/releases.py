"""The names of Kafka's releases: their order, and which one a short name means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flexwire.errors import SpecError, UnknownMessageError

if TYPE_CHECKING:
    from collections.abc import Sequence

# 3.9.0-rc3 comes before 3.9.0, and 4.5.0-SNAPSHOT before any candidate of 4.5.0.
_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:-rc-?(\d+)|-([A-Za-z][A-Za-z0-9.-]*))?")
_BEGINNING = re.compile(r"\d+(\.\d+)*")
_FINAL, _CANDIDATE, _PREVIEW = 2, 1, 0

# Of an order: major, minor and patch.
_NUMBERS = 3

Order = tuple[int, int, int, int, int, str]


def release_order(release: str) -> Order:
    """A key that sorts releases by age.

    Raises `SpecError` for a name that is not a release's.

    >>> sorted(["4.0.0", "3.10.1", "3.9.0", "4.0-trunk", "3.9.0-rc3"], key=release_order)
    ['3.9.0-rc3', '3.9.0', '3.10.1', '4.0-trunk', '4.0.0']
    """
    match = _RELEASE.fullmatch(release)
    if match is None:
        reason = "not a release's name; name it like '3.8.0', '3.9.0-rc3' or '4.5.0-SNAPSHOT'"
        raise SpecError(reason, source=release)
    major, minor, patch, candidate, preview = match.groups()
    stage = _CANDIDATE if candidate else _PREVIEW if preview else _FINAL
    numbers = int(major), int(minor), int(patch or 0)
    return (*numbers, stage, int(candidate or 0), preview or "")


def is_since(release: str, first: str) -> bool:
    """Return whether a release is ``first`` or newer; candidates count as their release.

    A release with a name of its own is in somebody's own catalog, and newer than any.

    >>> is_since("4.0.0-rc1", "4.0.0"), is_since("3.9.2", "4.0.0"), is_since("mine", "4.0.0")
    (True, False, True)
    """
    try:
        numbers = release_order(release)[:_NUMBERS]
    except SpecError:
        return True
    return numbers >= release_order(first)[:_NUMBERS]


def find_release(asked: str, releases: Sequence[str]) -> str:
    """The one of ``releases``, oldest first, that a person means: "4.0" is the newest 4.0.

    Raises `UnknownMessageError`, with the nearest, for what is not one of them.

    >>> find_release("4.0", ["3.9.2", "4.0.0", "4.0.2", "4.1.2"])
    '4.0.2'
    >>> find_release("4.1.1", ["3.9.2", "4.0.0", "4.0.2", "4.1.2"])
    Traceback (most recent call last):
    flexwire.errors.UnknownMessageError: no release '4.1.1' in the catalog; the nearest is 4.1.2
    """
    if asked in releases:
        return asked
    if _BEGINNING.fullmatch(asked):
        meant = [one for one in releases if one.startswith(f"{asked}.")]
        if meant:
            return meant[-1]
    raise UnknownMessageError(f"no release {asked!r} in the catalog; {_nearest(asked, releases)}")


def _nearest(asked: str, releases: Sequence[str]) -> str:
    try:
        order = release_order(asked if "." in asked else f"{asked}.0")
    except SpecError:
        return f"it has {', '.join(releases)}"
    near = [one for one in releases if release_order(one)[:2] == order[:2]]
    if not near:
        older = [one for one in releases if release_order(one) < order]
        newer = [one for one in releases if release_order(one) > order]
        near = older[-1:] + newer[:1]
    return f"the nearest {'are' if len(near) > 1 else 'is'} {' and '.join(near)}"
