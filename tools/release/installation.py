"""Test a wheel in an empty environment: its size, its output, and how fast it starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from tools.package.small import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PORTABLE: Final = Path(__file__).parents[2] / "tests" / "house" / "portable.py"
DECODE: Final = ("decode", "MetadataRequest", "00010000", "--version", "12", "--compact")
DECODED: Final = (
    '{"topics": null, "allowAutoTopicCreation": true, "includeTopicAuthorizedOperations": false}\n'
)
COMMANDS: Final = (
    ("--version",),
    ("--help",),
    DECODE,
    ("explain", "MetadataRequest", "00010000", "--version", "12"),
    ("encode", "ApiVersionsRequest", "{}", "--version", "0"),
    ("schema", "list", "fetchrequest"),
)
# Milliseconds of CPU time; a busy machine needs some more.
MOST_IMPORT_MS: Final = 100
MOST_MESSAGE_MS: Final = 25
RUNS: Final = 5
MESSAGE: Final = """
import time
from flexwire.codec import message
began = time.process_time()
decoded = message("MetadataRequest").decode(bytes.fromhex("00010000"), 12)
print(1000 * (time.process_time() - began))
"""
TIMED: Final = """
import time
began = time.process_time()
import flexwire
print(1000 * (time.process_time() - began))
"""
STATE: Final = """
import json, sys
from importlib.metadata import distributions
import flexwire
files = {
    one.metadata["Name"]: sum(
        file.locate().stat().st_size
        for file in one.files or ()
        if file.suffix != ".pyc" and file.locate().is_file()
    )
    for one in distributions()
    if one.metadata["Name"] not in {"pip", "setuptools"}
}
status = flexwire.kernel_status()
print(json.dumps([files, status.is_compiled, flexwire.__file__.startswith(sys.prefix)]))
"""


class Runner(Protocol):
    """Run a command, and return its output."""

    def __call__(
        self, command: Sequence[str | Path], *, cwd: Path | None = None, **variables: str
    ) -> str:
        """Raise an error if the command fails."""


def environment(place: Path) -> Path:
    """Make an empty environment with pip; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    return place / "bin" / "python"


def tried(run: Runner, place: Path, wheel: Path, *, kernels: bool) -> str:
    """Install a wheel and run its commands; raise `ValueError` if anything is wrong."""
    python = environment(place)
    run([python, "-m", "pip", "install", "--quiet", wheel])
    run([python, "-m", "pip", "check"])
    for command in COMMANDS:
        told = run([python.with_name("flexwire"), *command])
        if not told or (command == DECODE and told != DECODED):
            raise ValueError(f"flexwire {' '.join(command)} printed {told!r}")
    state: Any = json.loads(run([python, "-c", STATE]))
    sizes, is_compiled, is_inside = state
    if not is_inside or is_compiled != kernels:
        raise ValueError(f"expected {'' if kernels else 'no '}kernels of the wheel, got {state}")
    size = sum(sizes.values())
    if size >= MOST_BYTES:
        raise ValueError(f"expected fewer than {MOST_BYTES:,} bytes, got {size:,}: {sizes}")
    import_ms, message_ms = (
        min(float(run([python, "-c", program])) for _ in range(RUNS))
        for program in (TIMED, MESSAGE)
    )
    if import_ms > MOST_IMPORT_MS or message_ms > MOST_MESSAGE_MS:
        raise ValueError(f"import took {import_ms:.1f} ms of CPU, a message {message_ms:.1f}")
    return (
        f"{size:,} bytes in {len(sizes)} packages; import {import_ms:.1f} ms, first message "
        f"{message_ms:.1f} ms of CPU"
    )


def tried_elsewhere(run: Callable[..., str]) -> str:
    """Using a Python for another system, try what works on all platforms; return what was tried.

    Raises `ValueError` if anything is wrong.
    """
    status = run("-c", "import flexwire; print(flexwire.kernel_status())").strip()
    if not status.startswith("kernels compiled by Cython"):
        raise ValueError(f"expected kernels of the wheel, got {status}")
    told = run(PORTABLE).splitlines()
    for command in COMMANDS:
        printed = run("-m", "flexwire", *command)
        if not printed or (command == DECODE and printed != DECODED):
            raise ValueError(f"flexwire {' '.join(command)} printed {printed!r}")
    return "; ".join([status, *told, f"{len(COMMANDS)} commands"])


def check_bill(text: str, place: Path) -> None:
    """Raise `ValueError` unless a bill of materials lists what was installed without extras."""
    components = json.loads(text)["components"]
    needed = {one["name"] for one in components if one.get("scope") == "required"}
    folders = (place / "lib").glob("python*/site-packages/*.dist-info")
    installed = {one.name.partition("-")[0].replace("_", "-") for one in folders}
    if needed != installed - {"pip", "setuptools", "flexwire"}:
        raise ValueError(f"the bill has {sorted(needed)}, and {sorted(installed)} are installed")
