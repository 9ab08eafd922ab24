"""Test vectors for Kafka's wire protocol, and a runner that tests codecs in any language.

Without published bytes, the authors of a codec learn of its bugs only from their users. A package
of vectors contains such bytes: every version of every message, with the result of Apache Kafka's
own Java classes. `run_codec` starts any command, sends it one case per line on standard input, and
judges one line of output per case. The runner does not know any messages and decodes nothing,
because the package contains all the data that the comparison requires. `tools/vectors_package.py`
builds the package.

- `package` reads a package: its manifest, its files, and each `Vector`.
- `process` communicates with the command, and limits time, lines and starts.
- `judging` compares an answer with a vector, and defines the possible outcomes.
- `running` sends each vector in each direction, and restarts the command after a fault.
- `results` counts the verdicts by message and version, as text and as JSON.

The laws of this package (tests below `tests/`):

- If a codec is silent, crashes, never stops writing, or writes lines that were not requested, the
  case fails but the run always continues (`codec_vectors/test_running.py`).
- If Kafka accepts bytes that the protocol does not require it to accept, no reaction of a codec to
  these bytes is a deviation (`codec_vectors/test_judging.py`).
- flexwire's own interpretation of the bytes is never used: this package imports no codec
  (`codec_vectors/test_running.py`).
"""

from flexwire.vectors.judging import Outcome, Verdict
from flexwire.vectors.package import Expected, Manifest, Vector, VectorPackage, read_package
from flexwire.vectors.process import CodecLimits
from flexwire.vectors.results import CodecResults
from flexwire.vectors.running import run_codec

__all__ = [
    "CodecLimits",
    "CodecResults",
    "Expected",
    "Manifest",
    "Outcome",
    "Vector",
    "VectorPackage",
    "Verdict",
    "read_package",
    "run_codec",
]
