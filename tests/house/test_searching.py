"""No random search fails because the machine is busy; a Hypothesis profile ensures this."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import settings

from tests import searching

TESTS = Path(__file__).parents[1]
# The settings of the profile, passed as arguments to one search.
DECIDED = re.compile(r"\b(deadline|derandomize|database) ?=|HealthCheck\.too_slow|load_profile")
SUPPRESSED = re.compile(r"suppress_health_check=(?!\[\*TIMED\b|list\(HealthCheck\))")
# This search has its own environment variable that selects other examples.
OWN = {"codec/test_random_specs.py": {"derandomize"}}


def decided(text: str) -> set[str]:
    """Return the settings that the searches in a file choose themselves."""
    found = {one[1] or one[0] for one in DECIDED.finditer(text)}
    return found | ({"suppress_health_check"} if SUPPRESSED.search(text) else set())


def test_only_the_profile_decides_on_time_and_chance() -> None:
    found = {
        name: own
        for path in TESTS.rglob("*.py")
        if "hypothesis import" in (text := path.read_text(encoding="utf-8"))
        and (name := path.relative_to(TESTS).as_posix())
        not in {"searching.py", "house/test_searching.py"}
        and (own := decided(text))
    }
    assert found == OWN


def test_what_a_search_decides_is_seen() -> None:
    assert decided("@settings(deadline=None)") == {"deadline"}
    assert decided("settings(derandomize=True)") == {"derandomize"}
    text = "@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])"
    assert decided(text) == {"suppress_health_check"}
    assert decided(text.replace("[", "[*TIMED, ")) == set()


def test_the_profile_is_the_one_of_all_searches() -> None:
    assert settings.get_current_profile_name() == "flexwire"
    of_all = settings.get_profile("flexwire")
    assert of_all.deadline is None
    assert {*searching.TIMED} <= {*of_all.suppress_health_check}
    assert of_all.derandomize == (searching.TIMES == 1)
