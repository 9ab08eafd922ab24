"""Call brokers: send any request, given as JSON, to the right broker, and return its response.

Anyone who calls a broker needs the complete protocol: every API, every version, every field, and
the error codes with their names. Only the code that finds a broker (`cluster`), chooses versions
(`broker`) or logs in (`security`) knows what requests mean. The codec encodes the messages of the
catalog. `connection` sends and receives one frame at a time, within limits on time and size. Bytes
from a broker are not trusted. Bytes that cannot be decoded raise a flexwire error. `write_requests`
lists the requests that may change something. `config` reads Java properties files. Sockets are
blocking, and each call sends one request.

The laws of this package (tests below `tests/`):

- A request that is not listed as read-only is treated as writing, because new releases add APIs
  (`net/test_calling_writing.py`).
- A broker's answer becomes a message or a flexwire error, within limited time and memory
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
