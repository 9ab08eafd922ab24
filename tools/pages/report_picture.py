"""`python -m tools.pages.report_picture FACTS`: the report's picture for README and the site.

The command renders the report of an analysis from its facts.json, opens it in the machine's own
Chromium, Chrome or Edge, and keeps the top of the page as docs/images/report.png. The picture uses
only 64 colors, to keep the file small. `make run` writes such facts, `out/demo/facts.json`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image

from flexwire.facts.facts import Facts
from flexwire.report import render
from tools.pages.files import DOCS, ROOT

PICTURE: Final = DOCS / "images" / "report.png"
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "microsoft-edge")
# The part of a page on GitHub that is visible without scrolling, at twice its width, so that small
# text stays sharp.
_WIDTH, _HEIGHT = 1160, 860
_SCALE: Final = 1.5
_COLOURS: Final = 64
_MOST_SECONDS: Final = 300


def photograph(page: Path, picture: Path, width: int = _WIDTH, height: int = _HEIGHT) -> None:
    """Write the top of a page as a PNG."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise FileNotFoundError(f"no browser: install one of {', '.join(_BROWSERS)}")
    picture.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        taken = Path(directory) / "page.png"
        subprocess.run(
            [
                browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={directory}/profile", f"--window-size={width},{height}",
                f"--force-device-scale-factor={_SCALE}", "--virtual-time-budget=10000",
                "--blink-settings=preferredColorScheme=1", f"--screenshot={taken}",
                page.resolve().as_uri(),
            ],
            check=True, capture_output=True, timeout=_MOST_SECONDS,
        )  # fmt: skip
        with Image.open(taken) as image:
            reduced = image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
            reduced.save(picture, optimize=True)


def main() -> int:
    """Take the picture."""
    parser = argparse.ArgumentParser("python -m tools.pages.report_picture", description=__doc__)
    parser.add_argument("facts", type=Path, nargs="?", default=ROOT / "out/demo/facts.json")
    facts = json.loads(parser.parse_args().facts.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / "report.html"
        page.write_text(render(Facts.from_json(facts)), encoding="utf-8")
        photograph(page, PICTURE)
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
