"""``python -m fuzz [TARGET…] [--seconds N]``; ``--input FILE`` tries one input without atheris."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PLACE = ROOT / ".build" / "fuzz"
NAMES = (
    *("reference", "generated", "kernels", "json", "records", "captures"),
    *("specs", "lint", "breaking", "kip82", "conventions", "connections", "columns", "pieces"),
)


def main() -> int:
    """Run the requested targets; return 1 if a law is broken."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--input", type=Path, help="one input, for instance a crash, tried alone")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    targets = given.targets or list(NAMES)
    if unknown := set(targets) - set(NAMES):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if given.input is not None:
        if len(targets) != 1:
            parser.error("an input is of one target; name it")
        from fuzz.targets import TARGETS  # noqa: PLC0415 - atheris must see the first import

        TARGETS[targets[0]](given.input.read_bytes())
        return 0
    if given.here:
        _fuzz(targets[0], given.seconds)
        return 0
    return max([_run(target, given.seconds) for target in targets])


def _run(target: str, seconds: int) -> int:
    """Fuzz one target in a separate process, because libFuzzer ends its process."""
    sys.stdout.write(f"== {target}, {seconds} s\n")
    sys.stdout.flush()
    command = [sys.executable, "-m", "fuzz", target, "--here", "--seconds", str(seconds)]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - our own
    if code:
        crashes = (PLACE / f"{target}-crashes").relative_to(ROOT)
        sys.stdout.write(f"== {target}: stopped with status {code}; inputs at fault: {crashes}\n")
    return 1 if code else 0


def _fuzz(target: str, seconds: int) -> None:
    try:
        atheris: Any = importlib.import_module("atheris")
    except ImportError:
        sys.exit("atheris is not installed; run `make fuzz`")
    # An extension has no Python code that could be instrumented.
    with atheris.instrument_imports(include=["flexwire"], exclude=["flexwire.kernels"]):
        from flexwire import load_kernels  # noqa: PLC0415 - atheris must see the import
        from fuzz.corpus import write  # noqa: PLC0415 - atheris must see the import
        from fuzz.targets import TARGETS  # noqa: PLC0415 - atheris must see the import
    found, crashes = PLACE / target, PLACE / f"{target}-crashes"
    write(target, found)
    crashes.mkdir(exist_ok=True)
    load_kernels()
    options = [
        f"-max_total_time={seconds}",
        f"-artifact_prefix={crashes}/",
        # These limits are very high for an input of 4 KiB.
        *("-max_len=4096", "-timeout=5", "-rss_limit_mb=1024", "-print_final_stats=1"),
    ]
    atheris.Setup([sys.argv[0], *options, str(found)], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
