"""``python -m tools.package.wheel``: build this machine's wheel twice, and compare the bytes.

The wheel is written to ``dist``. The wheel is for the Python that runs this command; a release has
a wheel for each Python.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.package.extension import place

ROOT = Path(__file__).parents[2]
_BUILD = "import sys; from tools.package.backend import build_wheel; build_wheel(sys.argv[1])"


def main() -> int:
    """Build the wheel, and describe it; return 1 if two builds differ."""
    with tempfile.TemporaryDirectory() as directory:
        first, again = (build(Path(directory, str(number))) for number in (1, 2))
        same = first.name == again.name and first.read_bytes() == again.read_bytes()
        (ROOT / "dist").mkdir(exist_ok=True)
        wheel = Path(shutil.copy(first, ROOT / "dist"))
    said = hashlib.sha256(wheel.read_bytes()).hexdigest()
    sys.stdout.write(f"{wheel.name}: {wheel.stat().st_size:,} bytes, sha256 {said}\n")
    sys.stdout.write("built again: the same bytes\n" if same else "built again: OTHER BYTES\n")
    return 0 if same else 1


def build(out: Path) -> Path:
    """Build the wheel from the sources alone; return its path."""
    shutil.rmtree(ROOT / place(), ignore_errors=True)
    out.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _BUILD, str(out)]
    said = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if said.returncode:
        sys.exit(f"error: the wheel cannot be built:\n{said.stdout}{said.stderr}")
    (wheel,) = out.glob("*.whl")
    return wheel


if __name__ == "__main__":
    sys.exit(main())
