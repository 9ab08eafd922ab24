"""Write a release's bill of materials, in CycloneDX 1.6: the wheels, and their dependencies.

``python -m tools.release.sbom WHEEL … > sbom.json``. Versions are those in requirements.lock. The
bill states which packages flexwire needs without extras; the packages of extras are optional.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement

from tools.release.notes import declared_version

ROOT = Path(__file__).parents[2]
LOCK: Final = "requirements.lock"
# These extras are for developing flexwire itself, and no user installs them.
_OURS: Final = {"dev", "notebook"}


def pinned(lock: str) -> dict[str, str]:
    """Return the versions in a lock by name; if a name has several versions, the last one counts.

    >>> pinned("click==8.5.1")
    {'click': '8.5.1'}
    """
    return dict(re.findall(r"^([a-z0-9-]+)==([0-9][0-9a-z.]*)", lock, re.MULTILINE))


def direct(root: Path = ROOT) -> dict[str, bool]:
    """Return the packages that flexwire names, and for each whether it is needed without extras."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, bool] = {}
    for extra, lines in project["optional-dependencies"].items():
        for line in () if extra in _OURS else lines:
            found[_normal(Requirement(line).name)] = False
    for line in project["dependencies"]:
        found[_normal(Requirement(line).name)] = True
    found.pop("flexwire", None)
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def bill(wheels: list[Path], root: Path = ROOT) -> dict[str, Any]:
    """Return the bill of materials of wheels that were built from the sources below ``root``."""
    version, versions = declared_version(root), pinned((root / LOCK).read_text(encoding="utf-8"))
    reference = f"pkg:pypi/flexwire@{version}"
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{versions[name]}",
            "name": name,
            "version": versions[name],
            "purl": f"pkg:pypi/{name}@{versions[name]}",
            "scope": "required" if needed else "optional",
        }
        for name, needed in sorted(direct(root).items())
    ]
    files = [
        {
            "type": "file",
            "bom-ref": f"file:{wheel.name}",
            "name": wheel.name,
            "hashes": [{"alg": "SHA-256", "content": sha256(wheel)}],
        }
        for wheel in sorted(wheels)
    ]
    main_component = {
        "type": "library",
        "bom-ref": reference,
        "name": "flexwire",
        "version": version,
        "purl": reference,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": main_component},
        "components": [*components, *files],
        "dependencies": [
            {"ref": reference, "dependsOn": [component["bom-ref"] for component in components]}
        ],
    }


def sha256(file: Path) -> str:
    """Return the digest of a file, in hex."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def main() -> int:
    """Print the bill of materials of the named wheels."""
    json.dump(bill([Path(name) for name in sys.argv[1:]]), sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
