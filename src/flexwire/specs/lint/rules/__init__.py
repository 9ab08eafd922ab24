"""The lint rules, one per file.

A file's name is the rule's id, and the file's docstring is the rule's page.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

from flexwire.specs.finding import rules_of

if TYPE_CHECKING:
    from flexwire.specs.lint.rule import Rule


@cache
def rules() -> dict[str, Rule]:
    """Return every rule by its id, in alphabetical order."""
    return rules_of(sys.modules[__name__])
