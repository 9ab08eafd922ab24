"""The protocol guide: message specs to a directory of HTML pages that need no network.

A reader asks what is in a message on the wire, in which versions, in which releases, and what
changed. `messages` lays out every version of every message and says which releases have it. `rows`
turns a version into the rows of a table, and leads from one version's rows to another's; any two
can be compared on a page, because the steps are written into it. `site` makes files of that, the
search index included. What a version looks like is decided in `flexwire.schema`, not here.
"""

from flexwire.specs.guide.messages import bundled_messages, own_messages
from flexwire.specs.guide.site import MARK, render

__all__ = ["MARK", "bundled_messages", "own_messages", "render"]
