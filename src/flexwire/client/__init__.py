"""Calling brokers: any request as JSON, to the broker that it is meant for, and its answer.

A person who asks a broker something wants the protocol as it is: every API, every version, every
field, and the error codes with their names. So nothing here knows what a request means, but for
those that find a broker (`routes`), name its versions (`broker`) or log in (`authentication`): the
codec makes bytes of what the catalog has, `connection` carries one frame out and one in within a
time and a size, and what a broker sends is untrusted: it decodes or is one of our errors. What may
change something on a broker is said in `writing`. Java's properties files are read by
`client_config`. Sockets block: a call is one question.

>>> from flexwire.client import Broker, Cluster, Login, Security
>>> Security(login=Login("SCRAM-SHA-256", "alice", "secret"))
Security(context=None, login=Login(mechanism='SCRAM-SHA-256', username='alice', is_token=False))
"""

from __future__ import annotations

from flexwire.client.answers import Answer, ErrorCode
from flexwire.client.broker import Broker
from flexwire.client.cluster import Cluster, Route, parse_route
from flexwire.client.security import Login, Security

__all__ = [
    "Answer",
    "Broker",
    "Cluster",
    "ErrorCode",
    "Login",
    "Route",
    "Security",
    "parse_route",
]
