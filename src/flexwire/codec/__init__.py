"""Messages as Python objects: classes, generated codecs, JSON form, explanations.

A message has one class for all its versions; the version is an argument of what reads and writes
it. Source is generated for each version as it is first used, from the schema that `flexwire.schema`
resolves, and does only what is ordinary: whatever it refuses, the reference executor of
`flexwire.wire` reads again, and words the error. `message` has the public class, `structs` builds
the classes, `definition` holds a message's codecs by version, `source`, `emit_decode` and
`emit_encode` write the source. `executors` uses `flexwire.kernels` instead, in a process that runs
on kernels. Frames and headers are left to `flexwire.protocol`.
"""

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
