"""``python -m tests.codec.release_counts`` counts the vectors by release and executor.

For the vectors that a release's Java wrote, the program counts how many each executor reads with
that release's layout and writes as the same bytes. No kernel writes unknown tagged fields, so
messages that contain some are only read there. JSON is compared if Kafka has a converter (`streams`
has none).
"""

from __future__ import annotations

from tests.codec.release_vectors import EXECUTORS, faults, of_release, releases


def table() -> str:
    """Return a line for each release: its message versions, its vectors, and how many each executor
    passes."""
    rows: list[list[object]] = [["release", "versions", "vectors", *EXECUTORS]]
    for release in releases():
        vectors = of_release(release)
        held = [
            len(of_release(release, executor)) - len(faults(executor, release))
            for executor in EXECUTORS
        ]
        versions = len({(one.message, one.version) for one in vectors})
        rows.append([release, versions, len(vectors), *held])
    return "\n".join("".join(f"{cell!s:>11}" for cell in row) for row in rows)


if __name__ == "__main__":
    print(table())  # noqa: T201 - printing is the purpose of the command
