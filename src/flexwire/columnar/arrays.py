"""The type of every NumPy array in the package; its contents are described where it is made."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

NumpyArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
