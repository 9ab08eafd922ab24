"""Calling brokers: any request as JSON, sent to the right broker, and its response.

A person who calls a broker wants the unfiltered protocol: every API, every version, every field,
and the error codes with their names. Nothing here knows the meaning of a request, except the code
that finds a broker (`cluster`), chooses its versions (`broker`) or logs in (`security`). The codec
encodes the messages of the catalog, and `connection` sends one frame and receives one, within a
time and a size. Bytes from a broker are not trusted: they decode, or raise one of flexwire's
errors. `writing` says which requests may change something. `config` reads Java's properties files.
Sockets block: a call is one request.

The laws of this room (tests below `tests/`):

- A request that is not listed as read-only counts as writing, because each release brings new APIs
  (`net/test_calling_writing.py`).
- A broker's answer is a message or one of our errors, in limited time and memory
  (`net/test_calling_hostile.py`).

>>> from flexwire.client import Broker, Cluster, Login, Security
>>> Security(login=Login("SCRAM-SHA-256", "alice", "secret")).login
Login(mechanism='SCRAM-SHA-256', username='alice', is_token=False)
"""

from __future__ import annotations

from flexwire.client.answers import BrokerAnswer, ErrorField
from flexwire.client.broker import Broker
from flexwire.client.cluster import Cluster, Route, parse_route
from flexwire.client.security import Login, Security

__all__ = [
    "Broker",
    "BrokerAnswer",
    "Cluster",
    "ErrorField",
    "Login",
    "Route",
    "Security",
    "parse_route",
]
