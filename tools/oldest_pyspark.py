"""Make `.build/oldest-pyspark`: the oldest PySpark that `pyproject.toml` allows, beside `.venv`.

All other packages come from `.venv`, which is later on the path.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig

from tools.environment import ROOT, build_tools, read, run, say

PLACE = ROOT / ".build" / "oldest-pyspark"
PYTHON = PLACE / "bin" / "python"
LOCK = ROOT / "tools" / "oldest-pyspark.lock"
STAMP = PLACE / ".installed"


def main() -> None:
    """Make the environment, unless it exists."""
    text = LOCK.read_text(encoding="utf-8")
    (oldest,) = re.findall(r'"pyspark>=([\d.]+),', read(ROOT / "pyproject.toml"))
    if not text.startswith(f"pyspark=={oldest}."):
        sys.exit(f"error: {LOCK.name} pins another PySpark than {oldest}, pyproject.toml's oldest")
    wanted = f"{sys.version}\n{text}"
    if PYTHON.exists() and read(STAMP) == wanted:
        return
    say("making .build/oldest-pyspark (Spark is 450 MB)")
    shutil.rmtree(PLACE, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
    # The build dependencies of PySpark come first.
    for lock, more in ((build_tools(), ()), (LOCK, ("--no-deps", "--no-build-isolation"))):
        options = ("--quiet", "--disable-pip-version-check", "--require-hashes", *more)
        run(PYTHON, "-m", "pip", "install", *options, "--requirement", lock)
    paths = {name: str(PLACE) for name in ("base", "platbase")}
    packages = sysconfig.get_path("purelib", vars=paths)
    with open(f"{packages}/venv.pth", "w", encoding="utf-8") as beside:  # noqa: PTH123 - it is text
        # The other packages in .venv, and flexwire itself.
        beside.write(f"{sysconfig.get_path('purelib')}\n{ROOT / 'src'}\n")
    STAMP.write_text(wanted)


if __name__ == "__main__":
    main()
