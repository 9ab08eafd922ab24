"""What makes a wheel one of a platform: the compiled kernels that `tools.wheel` hands to hatchling.

Without them, as for pip from source or for an editable install, a wheel is pure, and has none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# A directory with the libraries, and the tag of the wheel.
LIBRARIES, TAG = "FLEXWIRE_WHEEL_LIBRARIES", "FLEXWIRE_WHEEL_TAG"


class CompiledKernels(BuildHookInterface[Any]):
    """Puts the libraries into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say what goes into the wheel besides the sources."""
        directory = os.environ.get(LIBRARIES)
        if directory is None or version == "editable":
            return
        build_data["pure_python"] = False
        build_data["tag"] = os.environ[TAG]
        for library in sorted(Path(directory).glob("*.so")):
            place = f"flexwire/kernels/compiled/{library.name}"
            build_data["force_include"][str(library)] = place
