"""An object that is open while a ``with`` block runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class Closeable(ABC):
    """An object that closes itself at the end of a ``with`` block, no matter how the block ends."""

    @abstractmethod
    def close(self) -> None:
        """Close the object. Calling this again has no effect."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
