"""Messages as Python objects: classes, generated codecs, the JSON form, and explanations.

A message has one class for all its versions. The version is an argument of every method that reads
or writes. `source`, `decoder_source` and `encoder_source` generate Python source for a version when
that version is used often enough. This source is generated from the schema that `flexwire.schema`
resolves. Generated source handles ordinary input only. If generated source or a kernel refuses
bytes, `flexwire.wire` reads these bytes again and raises the error. `message` contains the public
class, `structs` builds the classes, and `definition` contains a message's codecs by version, which
use `flexwire.kernels` if possible. `flexwire.protocol` handles frames and headers.

Laws of this package:

- Generated source contains no error messages. Add a new check to `flexwire.wire`. Generated source
  may refuse more input than `flexwire.wire`, but never less. `ExecutorsDisagreeError` means that
  generated source has refused valid input. Reason: there must be only one set of errors. Test:
  `tests/codec/test_executors.py`.
- Generated source is formatted as ruff would format it, and each name in the source has only one
  meaning. List a new helper in `runtime.__all__`, and a new local variable in `source.py`. Reason:
  a debugger steps through this source. Tests: `tests/codec/test_golden.py`,
  `tests/codec/test_generated_source.py`.
- No code follows a value deeper than its type. Reason: a list may contain itself. Test:
  `tests/codec/test_values_without_end.py`.
- `unknown_tagged_fields` contains keys above 2**31-1 only after lenient reading, and nothing writes
  such keys. Reason: Kafka's Java code reads such keys as negative tags. Test:
  `tests/codec/test_lenient_java.py`.
- `messages.pyi` is written from the catalog. Reason: editors must know the fields of every
  release. Test: `tests/stubs/test_stub.py`.
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
