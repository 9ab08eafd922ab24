"""Messages as Python objects: classes, generated codecs, JSON form, explanations."""

from flexwire.codec.explain import Annotation, Explanation, explain
from flexwire.codec.message import Message, message, message_of
from flexwire.codec.structs import MessageStruct
from flexwire.wire.encoding import Encoding

__all__ = [
    "Annotation",
    "Encoding",
    "Explanation",
    "Message",
    "MessageStruct",
    "explain",
    "message",
    "message_of",
]
