"""A codec for `flexwire vectors check`, made of kio: it reads a message and writes it again.

kio has no JSON form, so it is not asked to encode (--decode-only).
"""

import functools
import io
import json
import sys

from kio.index import (
    UnknownAPIKey,
    UnknownEntity,
    load_request_schema,
    load_response_schema,
)
from kio.serial import entity_reader, entity_writer


@functools.cache
def codec(api_key, version, kind):
    """Return what reads and what writes a request or response."""
    load = load_request_schema if kind == "request" else load_response_schema
    found = load(api_key, version)
    return entity_reader(found), entity_writer(found)


def answer(question):
    """Return the answer to a question of the runner."""
    if question["do"] != "decode" or "apiKey" not in question:
        return {"unsupported": "only requests and responses are read"}
    try:
        read, write = codec(question["apiKey"], question["version"], question["type"])
    except (UnknownAPIKey, UnknownEntity):
        return {"unsupported": "kio has no such version"}
    try:
        message, _ = read(bytes.fromhex(question["hex"]), 0)
        out = io.BytesIO()
        write(out, message)
    except MemoryError:
        raise
    except Exception as error:  # It raises errors of Python too.
        return {"refused": f"{type(error).__name__}: {error}"}
    return {"hex": out.getvalue().hex()}


def main():
    """Answer each line with a line."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
