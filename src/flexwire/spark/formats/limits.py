"""What PySpark 4.2 and later has of limits to a batch of a stream; earlier ones have none."""

from __future__ import annotations

__all__ = ["ReadAllAvailable", "ReadMaxBytes", "ReadMaxFiles", "SupportsTriggerAvailableNow"]

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
except ImportError:
    ReadAllAvailable = ReadMaxBytes = ReadMaxFiles = None  # type: ignore[assignment, misc]

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing."""
