"""A codec for `flexwire vectors check`, made of kafka-python.

It reads a message and writes it again. kafka-python reads no JSON form, so it is not asked to
encode (--decode-only).
"""

import importlib
import json
import pkgutil
import sys

import kafka.protocol
from kafka.protocol.api_message import ApiMessage


def classes():
    """Return the classes of messages by name and version."""
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".schemas" not in module.name and ".old" not in module.name:
            importlib.import_module(module.name)
    found, left = {}, [ApiMessage]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        found.setdefault(kind.__name__, kind)
    return found


def answer(question, found):
    """Return the answer to a question of the runner."""
    kind = found.get(question.get("message"))
    if question["do"] != "decode" or kind is None:
        return {"unsupported": "kafka-python has no such message"}
    version = question["version"]
    if not kind.min_version <= version <= kind.max_version:
        return {"unsupported": f"it has versions {kind.min_version} to {kind.max_version}"}
    try:
        read = kind.decode(bytes.fromhex(question["hex"]), version=version)
        # A message that was decoded without a header lacks this, and cannot be encoded then.
        read._header = None
        return {"hex": bytes(read.encode(version=version)).hex()}
    except MemoryError:
        raise
    except Exception as error:  # It has no class of errors of its own for this.
        return {"refused": f"{type(error).__name__}: {error}"}


def main():
    """Answer each line with a line."""
    found = classes()
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), found)), flush=True)


if __name__ == "__main__":
    main()
