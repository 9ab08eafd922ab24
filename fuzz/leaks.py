"""``python -m fuzz.leaks [--rounds N] [--seed N]``: plant secrets, and search the output.

Each round makes a capture with new words in its fields and damages, and a log with new words in its
records. It analyzes both with every answer, and searches all output for any of the words. A word
that is found is an error, and so is an answer that fails. There is one exception: every other round
damages the logs of internal topics, and then their state is not guessed. The first capture is also
analyzed with its credentials: each kind of secret must then be found, except words in records of
logs, which nothing shows.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from flexwire.answers import STATE_ANSWERS
from flexwire.spark.analyze import SMALL_JAVA
from flexwire.spark.session import session
from fuzz.arguments import asked
from tests.spark.planted import Planted, plant, plant_logs
from tests.spark.test_secrets import analyzed, found, not_found

_OF_STATE = {one.name for one in STATE_ANSWERS}


def main() -> int:
    """Run the requested rounds; return 1 if a secret is shown."""
    given = asked("fuzz.leaks", __doc__, rounds=3, of="captures to analyze")
    spark = session("flexwire leaks", memory="1g", conf=SMALL_JAVA)
    wrong = 0
    for number in range(given.seed, given.seed + given.rounds):
        planted = Planted(random.Random(number))  # noqa: S311 - chance, not a secret
        plant(planted)
        with tempfile.TemporaryDirectory(prefix="flexwire-leaks-") as place:
            is_sound = (number - given.seed) % 2 == 0
            logged = plant_logs(planted, Path(place), sound=is_sound)
            words = planted.words | logged
            hidden = analyzed(planted, Path(place), spark, answers="all")
            leaks = {(words.get(word, "?"), where) for where, word in found(hidden)}
            failed = [
                one for one in hidden.facts.unanswered if is_sound or one.name not in _OF_STATE
            ]
            leaks |= {(one.reason, "a question failed") for one in failed}
            unseen = set[str]()
            if number == given.seed:
                shown = analyzed(planted, Path(place), spark, answers="all", show_credentials=True)
                unseen = not_found(planted, shown)
                leaks |= {(logged[word], where) for where, word in found(shown) if word in logged}
        sys.stdout.write(f"== --seed {number}: {len(words)} secrets, {len(leaks)} shown\n")
        sys.stdout.writelines(f"   {kind} in {where}\n" for kind, where in sorted(leaks))
        sys.stdout.writelines(
            f"   {kind} is not found where it is shown\n" for kind in sorted(unseen)
        )
        sys.stdout.flush()
        wrong += len(leaks) + len(unseen)
    spark.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
