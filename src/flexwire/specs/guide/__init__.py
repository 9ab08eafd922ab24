"""The protocol guide: message specs as a directory of HTML pages that need no network.

The guide shows the content of each message on the wire, the versions and releases that contain the
message, and the changes. `messages` lays out every version of every message and finds the releases
that have the version. `rows` converts a version to the rows of a table, and finds the steps from
the rows of one version to the rows of another version. A page contains these steps and can
therefore compare any two versions. `site` writes the files, with the search index.
`flexwire.schema` decides the layout of a version.
"""

from flexwire.specs.guide.messages import bundled_messages, own_messages
from flexwire.specs.guide.site import MARK, render

__all__ = ["MARK", "bundled_messages", "own_messages", "render"]
