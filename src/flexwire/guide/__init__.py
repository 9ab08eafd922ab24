"""The protocol guide: message specs to a directory of HTML pages that need no network."""

from flexwire.guide.messages import bundled_messages, given_messages
from flexwire.guide.site import MARK, render

__all__ = ["MARK", "bundled_messages", "given_messages", "render"]
