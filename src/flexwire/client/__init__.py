"""Call brokers: send any request as JSON to the right broker, and return the broker's response.

A person who calls a broker needs the complete protocol: every API, every version, every field, and
the error codes with their names. Only the code that finds a broker (`cluster`), chooses versions
(`broker`) or logs in (`security`) knows the meaning of requests. The codec encodes the messages of
the catalog. `connection` sends and receives one frame, within limits of time and size. Bytes from a
broker are not trusted. Bytes that do not decode raise a flexwire error. `write_requests` lists the
requests that may change something. `config` reads Java's properties files. Sockets block, and each
call is one request.

The laws of this package (tests below `tests/`):

- A request that is not listed as read-only counts as writing, because new releases add APIs
  (`net/test_calling_writing.py`).
- A broker's answer becomes a message or a flexwire error, in limited time and memory
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
