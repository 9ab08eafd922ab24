"""Placeholder until the format is there."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.errors import FlexwireError

if TYPE_CHECKING:
    from flexwire.capture.pairing.pairing import Pairing
    from flexwire.capture.reassembly.flows import Flows
    from flexwire.survey.client_instances import GivenInstance
    from flexwire.tables.frames import Software


class SavedStateError(FlexwireError):
    pass


@dataclass(slots=True)
class SavedState:
    flows: Flows
    pairing: Pairing
    software: dict[str, tuple[int, Software]]
    instances: dict[str, GivenInstance]
    names: dict[str, str]
    began: dict[str, str]
    end_us: int

    def to_bytes(self) -> bytes:
        return pickle.dumps(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> SavedState:
        return pickle.loads(data)
