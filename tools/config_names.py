"""Write `src/flexwire/protocol/configurations.json`: the configurations of Kafka's releases.

``python -m tools.config_names`` downloads the brokers' jars of each release from Maven Central and
runs `tools/java/ConfigNames.java` on them. The names are those of `LogConfig` for topics and of
`KafkaConfig` for brokers, including Kafka's internal ones.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from pathlib import Path

from tools.broker import jars

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tools" / "java" / "ConfigNames.java"
OUT = ROOT / "src" / "flexwire" / "protocol" / "configurations.json"
# The last release before 4.0, and the catalog's later releases; add new ones here.
RELEASES = ("3.9.2", "4.0.0", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")


def names(release: str) -> set[tuple[str, str]]:
    """Return the configurations of a release's brokers: the kind and the name."""
    command = ["java", "-cp", f"{jars(release)}/*", str(PROGRAM)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True)
    told = [line.split(" ") for line in ran.stdout.splitlines()]
    return {(of, name) for of, name in told}


def written(known: dict[str, set[tuple[str, str]]]) -> str:
    """Return the content of the file: the first and the last release with each name, by kind.

    Raises `ValueError` if a release reintroduces a removed name, because the file cannot express
    that.
    """
    releases = list(known)
    found: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for of, name in sorted(set().union(*known.values())):
        having = [place for place, one in enumerate(releases) if (of, name) in known[one]]
        if having != list(range(having[0], having[-1] + 1)):
            msg = f"{of} {name} is known in {[releases[one] for one in having]}: it came back"
            raise ValueError(msg)
        found[of][name] = (releases[having[0]], releases[having[-1]])
    # Write one name per line, so that a change to the file is easy to read.
    parts = [
        f"{json.dumps(of)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(ends)}" for name, ends in known_of.items())
        + "\n}"
        for of, known_of in found.items()
    ]
    return f'{{"releases": {json.dumps(releases)},\n' + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    OUT.write_text(written({one: names(one) for one in RELEASES}), encoding="utf-8")
