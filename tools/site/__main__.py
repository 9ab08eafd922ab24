"""Make the site: docs/, the API reference from docstrings, and the guide to every message.

`python -m tools.site --out out/site` writes `out/site/VERSION`, and beside it a list of the
existing versions. Neither the command nor the site needs a network.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import flexwire
from tools.site.staging import stage

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


def main() -> int:
    """Build the site of this version, and list all versions beside it."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "site", metavar="DIR")
    out: Path = parser.parse_args().out.resolve()
    built = out / flexwire.__version__
    source = ROOT / ".build" / "site"
    stage(ROOT, source)
    shutil.copyfile(HERE / "conf.py", source / "conf.py")
    shutil.rmtree(built, ignore_errors=True)
    environment = {
        **os.environ,
        "FLEXWIRE_SITE_VERSION": flexwire.__version__,
        "FLEXWIRE_SITE_ROOT": str(ROOT),
        "FLEXWIRE_SITE_TEMPLATES": str(HERE / "templates"),
        "FLEXWIRE_SITE_STATIC": str(HERE / "static"),
    }
    # Every warning is an error, especially a broken link.
    sphinx = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "-b", "html"]
    guide = [sys.executable, "-m", "flexwire", "schema", "docs", "--out", str(built / "guide")]
    for command in ([*sphinx, str(source), str(built)], guide):
        status = subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode
        if status:
            return status
    shutil.rmtree(built / ".doctrees", ignore_errors=True)
    (built / ".buildinfo").unlink(missing_ok=True)
    list_versions(out)
    sys.stdout.write(f"Site: {out / 'index.html'}\n")
    return 0


def list_versions(out: Path) -> None:
    """Write a list of the versions in ``out``, newest first, and a front page that links to it."""
    here = [path.parent for path in out.glob("*/objects.inv")]
    versions = [
        {
            "name": version.name,
            "pages": sorted(
                path.relative_to(version).as_posix()
                for path in version.rglob("*.html")
                if path.relative_to(version).parts[0] not in {"guide", "_modules"}
            ),
        }
        for version in sorted(here, key=lambda path: numbers(path.name), reverse=True)
    ]
    listed = json.dumps(versions)
    (out / "versions.js").write_text(f"window.flexwireVersions = {listed};\n", encoding="utf-8")
    newest = versions[0]["name"]
    (out / "index.html").write_text(
        f'<!doctype html>\n<meta charset="utf-8">\n<title>flexwire</title>\n'
        f'<meta http-equiv="refresh" content="0; url={newest}/index.html">\n'
        f'<a href="{newest}/index.html">flexwire {newest}</a>\n',
        encoding="utf-8",
    )


def numbers(version: str) -> list[tuple[int, int | str]]:
    """Return the sort key of a version: "0.10.0" is after "0.9.1", and a word before any number."""
    return [(1, int(part)) if part.isdigit() else (0, part) for part in version.split(".")]


if __name__ == "__main__":
    sys.exit(main())
