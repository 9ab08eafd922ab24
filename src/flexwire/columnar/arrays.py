"""The type of all NumPy arrays in this package.

The content of each array is described where the array is created.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

NumpyArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
