"""Open a page in a real browser, and use axe to check the page against the WCAG rules.

The browser is Chromium, Chrome or Edge, and must be installed. axe is a script in a package that
`tests/browser/requirements.lock` pins.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
MOST_SECONDS = 120
_TOLD = re.compile(r'<script type="application/json" id="axe-told">(.*?)</script>', re.DOTALL)
# axe and this script run at the end of the page; the script adds axe's findings to the page.
_ASK = """
axe.run(document, {resultTypes: ["violations", "incomplete"]}).then((found) => {
  const told = document.createElement("script");
  told.type = "application/json";
  told.id = "axe-told";
  const short = (one) => ({id: one.id, help: one.help, nodes: one.nodes.map((node) => node.html)});
  told.textContent = JSON.stringify({
    violations: found.violations.map(short),
    passes: found.passes.length,
    width: document.documentElement.scrollWidth,
  });
  document.body.append(told);
});
"""


class Screen(NamedTuple):
    """How a page is shown: its width in pixels, and whether the reader prefers dark mode."""

    width: int
    dark: bool


# Unless it takes a screenshot, the browser opens no window narrower than 500 pixels.
SCREENS = [Screen(width, dark) for width in (1280, 500) for dark in (False, True)]


def browser() -> str:
    """Return the path of an installed browser; fail the test if there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail(f"no browser: install one of {', '.join(NAMES)}")
    return found


def looked_at(page: Path, screen: Screen, directory: Path) -> dict[str, Any]:
    """Return axe's results for a page: violations, the number of passed rules, and the width."""
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    # The copy of the page must be in the same directory as the files that the page loads.
    asked = page.with_name(f"asked-{page.name}")
    asked.write_text(
        text.replace("</body>", f"<script>{axe}</script><script>{_ASK}</script></body>"), "utf-8"
    )
    ran = opened(asked, directory, screen)
    asked.unlink()
    told = _TOLD.search(ran)
    assert told, f"axe did not answer: {ran[-2000:]}"
    answer: dict[str, Any] = json.loads(html.unescape(told[1]))
    return answer


def opened(page: Path, directory: Path, screen: Screen) -> str:
    """Return the HTML of a page after its scripts have run."""
    command = [
        browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={directory}",
        f"--window-size={screen.width},1000",
        f"--blink-settings=preferredColorScheme={0 if screen.dark else 1}",
        f"--virtual-time-budget={MOST_SECONDS * 1000}",
        "--dump-dom",
        page.as_uri(),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=True)
    return ran.stdout
