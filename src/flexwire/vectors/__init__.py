"""Vectors of Kafka's wire protocol, and a runner that tests a codec in any language with them.

Without published bytes, the authors of a codec learn only from its users what it reads wrongly. A
package of vectors holds the bytes: every version of every message, with the result of Apache
Kafka's own Java classes. `run_codec` starts any command, gives it one case a line over standard
input, and judges one line of answer. It knows no message and decodes nothing: the package has
everything that it compares. `tools/vectors_package.py` builds the package.

- `package` reads a package: its manifest, its files, and each `Vector`.
- `process` talks to the command, with a limit on time, lines and starts.
- `judging` compares an answer with a vector, and has the classes of outcomes.
- `running` asks for each vector in each direction, and starts the command again after a fault.
- `results` sums the verdicts up by message and version, as text and as JSON.

Laws of this room (tests below `tests/`):

- A codec that is silent, crashes, never stops writing or writes unrequested lines fails a case, and
  never hangs the run (`codec_vectors/test_running.py`).
- Bytes that Kafka accepts although the protocol does not require it are never a deviation
  (`codec_vectors/test_judging.py`).
- flexwire's own reading of the bytes never decides: this room imports no codec
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
