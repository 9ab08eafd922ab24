"""Messages as Python objects: classes, generated codecs, JSON form, explanations.

A message has one class for all its versions. The version is an argument of every method that reads
or writes. `source`, `decoder_source` and `encoder_source` write Python source for a version when
the version is first used often enough, from the schema that `flexwire.schema` resolves. Generated
source handles ordinary input only. If generated source or a kernel refuses bytes, `flexwire.wire`
reads them again and raises the error. `message` has the public class, `structs` builds the classes,
and `definition` holds a message's codecs by version: on `flexwire.kernels` if there are any. Frames
and headers are left to `flexwire.protocol`.

Laws of this room:

- Generated source has no error texts. Add a new check to `flexwire.wire`; generated source must
  only refuse the same input or more. `ExecutorsDisagreeError` means that it refused more. Reason:
  there is one set of errors. Test: `tests/codec/test_executors.py`.
- Generated source is formatted as by ruff, and each name in it has only one meaning. A new
  helper is listed in `runtime.__all__`, a new local in `source.py`. Reason: a debugger steps
  through this source. Tests: `tests/codec/test_golden.py`, `tests/codec/test_generated_source.py`.
- Nothing follows a value deeper than its type goes. Reason: a list may contain itself. Test:
  `tests/codec/test_values_without_end.py`.
- `unknown_tagged_fields` has keys above 2**31-1 only after lenient reading, and nothing writes such
  keys. Reason: Kafka's Java reads them as negative tags. Test: `tests/codec/test_lenient_java.py`.
- `messages.pyi` is written from the catalog. Reason: editors must know the fields of every release.
  Test: `tests/stubs/test_stub.py`.
"""

from flexwire.codec.explanation import Annotation, Explanation, explain
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
