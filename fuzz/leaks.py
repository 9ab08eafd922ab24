"""``python -m fuzz.leaks [--rounds N] [--seed N]``: secrets wherever there may be one, looked for.

Each round is a capture with other words in its fields and damages, an analysis of it, and a search
of all that was written for any of them. One that is found is an error.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from flexwire.spark.analyze import SMALL_JAVA, analyze
from flexwire.spark.session import session
from fuzz.arguments import asked
from tests.spark.planted import Planted, plant
from tests.spark.test_secrets import found


def main() -> int:
    """Run what the command line asks for; 1 where a secret is shown."""
    given = asked("fuzz.leaks", __doc__, rounds=3, of="captures to analyze")
    spark = session("flexwire leaks", memory="1g", conf=SMALL_JAVA)
    shown = 0
    for number in range(given.seed, given.seed + given.rounds):
        planted = Planted(random.Random(number))  # noqa: S311 - chance, not a secret
        plant(planted)
        with tempfile.TemporaryDirectory(prefix="flexwire-leaks-") as place:
            planted.write(Path(place) / "secrets.pcap")
            analysis = analyze([Path(place) / "secrets.pcap"], Path(place) / "out", spark=spark)
            leaks = {(planted.words.get(word, "?"), where) for where, word in found(analysis)}
        sys.stdout.write(f"== --seed {number}: {len(planted.words)} secrets, {len(leaks)} shown\n")
        sys.stdout.writelines(f"   {kind} in {where}\n" for kind, where in sorted(leaks))
        sys.stdout.flush()
        shown += len(leaks)
    spark.stop()
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
