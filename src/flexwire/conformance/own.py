"""The objects that a run creates in one cluster: route requests about them, and remove them.

Requests about the topic are sent to its leader, and requests about a group or a transaction to its
coordinator. The run learns several values from the broker's answers: the topic's id, and the ids
and epochs of its own member and producer. If a broker reports no leader or coordinator, the
requests are sent to the broker that is tested. This broker then answers with an error code, which
breaks no rule.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from flexwire.client.answers import MOVED_CODES
from flexwire.client.cluster import ANY, find_broker
from flexwire.closeable import Closeable
from flexwire.codec import message
from flexwire.conformance.cases import CaseExpectation, fitting
from flexwire.conformance.judging import code_names
from flexwire.conformance.questions import filled
from flexwire.conformance.removals import UNKNOWN_TOPIC, removals
from flexwire.conformance.write_plans import with_learned
from flexwire.conformance.writing import LEARNED_FROM, NODE, PRODUCER, TOPIC_ID
from flexwire.errors import CodecError, FlexwireError, FrameError, NoRouteError
from flexwire.protocol import parse_response
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.headers import request_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.client.answers import BrokerAnswer
    from flexwire.client.broker import Broker
    from flexwire.client.cluster import Route
    from flexwire.client.notation import HostPort
    from flexwire.conformance.cases import Asking, Case
    from flexwire.conformance.judging import CaseResult
    from flexwire.conformance.removals import Removal
    from flexwire.conformance.sending import CaseSender

_LOG: Final = logging.getLogger(__name__)
# The previous transaction has not ended yet.
_CONCURRENT_TRANSACTIONS: Final = 51
_LATER: Final = MOVED_CODES | {_CONCURRENT_TRANSACTIONS}
# Not all brokers know a new topic yet.
_NOT_YET: Final = MOVED_CODES | UNKNOWN_TOPIC
MOST_WAITED: Final = 10.0
"""The total time, in seconds, that a run waits for leaders, coordinators and the ends of
transactions.

A separate time limit of the same length applies to the removal of the objects.
"""
_PAUSE: Final = 0.2
_NO_VALUES: Final = (None, "", -1)
_FORGOTTEN: Final = (
    "no API removes a transactional id; Apache Kafka removes unused ids after "
    "transactional.id.expiration.ms"
)


class OwnThings(Closeable):
    """The objects of a run in a broker's cluster, and the values that the broker has sent."""

    def __init__(self, sender: CaseSender, asking: Asking) -> None:
        self._main = sender
        self._asking = asking
        self._others: dict[str, CaseSender] = {}
        self._routes: dict[Route, CaseSender] = {}
        self._sent: set[str] = set()
        self._has_topic = False
        self._seconds = MOST_WAITED
        self.known: dict[str, Any] = {}

    def prepared(self, case: Case) -> Case:
        """Return a case with the values that the broker has sent since the case was planned."""
        if not case.writes:
            return case
        self._sent.add(case.api_name)
        return with_learned(case, self._asking, self.known)

    def sender(self, case: Case) -> CaseSender:
        """Return the sender to the broker that has to answer a case."""
        return self._routed(case.route) if case.expected is CaseExpectation.TAKEN else self._main

    def waits_for(self, result: CaseResult) -> bool:
        """Wait a moment if the broker may be able to execute a request later.

        Return whether it waited.
        """
        if not result.case.writes or not result.error_codes & _LATER or not self._pauses():
            return False
        self._routes.pop(result.case.route, None)
        return True

    def learn(self, result: CaseResult) -> None:
        """Store those values of an answer that later requests repeat."""
        case, payload = result.case, result.outcome.payload
        if not case.writes or payload is None:
            return
        if case.api_name == "CreateTopics" and not result.error_codes and not self._has_topic:
            self._learn_topic()
        learns = LEARNED_FROM.get(case.api_name)
        if learns is None:
            return
        try:
            found = parse_response(payload, case.api_key, case.version)
            kind, version = message(found.message_name), found.body_version
            body, _ = kind.decode_prefix(payload[found.body_offset :], version, lenient=True)
        except (CodecError, FrameError):
            # The verdict about the case reports this error.
            return
        form = body.to_json(version)
        told = {name: form.get(field) for field, name in learns.items()}
        self.known |= {name: value for name, value in told.items() if value not in _NO_VALUES}

    def _learn_topic(self) -> None:
        """Find out the id and the leader of the new topic."""
        form = {"topics": [{"name": self._asking.own}], "allowAutoTopicCreation": False}
        while True:
            try:
                answer = _call(self._main.connected(), "Metadata", form)
            except FlexwireError as error:
                self._main.close()
                _LOG.info("%s returned no metadata for the topic: %s", self._main.address, error)
                return
            codes = {field.code for field in answer.error_codes}
            if not codes or not codes <= _NOT_YET or not self._pauses():
                break
        for topic in (answer.to_json() or {})["topics"]:
            self._has_topic = self._has_topic or not codes
            # Brokers from before the introduction of topic ids return no id.
            self.known |= {TOPIC_ID: topic["topicId"]} if "topicId" in topic else {}
            leaders = [partition["leaderId"] for partition in topic["partitions"]]
            self.known |= {NODE: leaders[0]} if leaders else {}

    def _routed(self, route: Route) -> CaseSender:
        """Return the sender to a route's broker, or to the broker that is tested."""
        if route == ANY or (route.kind == "leader" and not self._has_topic):
            return self._main
        while route not in self._routes:
            try:
                self._routes[route] = self._sender_to(find_broker(route, self._main.connected()))
            except NoRouteError as error:
                passing = _NOT_YET if route.kind == "leader" else MOVED_CODES
                if error.code not in passing or not self._pauses():
                    self._keep_main(route, error)
            except FlexwireError as error:
                self._main.close()
                self._keep_main(route, error)
        return self._routes[route]

    def _keep_main(self, route: Route, error: FlexwireError) -> None:
        """Send a route's requests to the tested broker, because it reported no other broker."""
        _LOG.info("%s answers for %s itself: %s", self._main.address, route, error)
        self._routes[route] = self._main

    def _sender_to(self, address: HostPort) -> CaseSender:
        """Return a sender that is connected to an address."""
        text = str(address)
        if text == self._main.address:
            return self._main
        sender = self._others.setdefault(text, self._main.to(text))
        sender.connected()
        return sender

    def _pauses(self) -> bool:
        """Wait a moment unless the time limit is reached, and return whether there was a wait."""
        if self._seconds <= 0:
            return False
        self._seconds -= _PAUSE
        time.sleep(_PAUSE)
        return True

    @contextmanager
    def removing(self, left: list[str]) -> Iterator[None]:
        """When the block ends, remove all objects that cases may have created.

        Objects that could not be removed are added to ``left``, each with the reason. If the block
        raises an error, these objects are also logged.
        """
        try:
            yield
        except BaseException:
            left += self._remove()
            for words in left:
                _LOG.warning("left behind: %s", words)
            raise
        left += self._remove()

    def _remove(self) -> Iterator[str]:
        """Remove the objects that the run created, and yield a reason for each one that remains."""
        # A connection may still contain the answer to the last request.
        self.close()
        self._main.close()
        self._seconds = MOST_WAITED
        for removal in removals(self._asking.own):
            is_made = not removal.needed or removal.needed in self.known
            if is_made and removal.makers & self._sent:
                reason = self._removed(removal)
                if reason and removal.noun:
                    yield f"{removal.noun} {removal.name}: {reason}"
        if PRODUCER in self.known:
            yield f"transactional id {self._asking.own}: {_FORGOTTEN}"

    def _removed(self, removal: Removal) -> str:
        """Send the request that removes an object.

        Return the reason why the object remains, or "" if it was removed.
        """
        form = filled(removal.form, known=self.known)
        while True:
            try:
                with self._routed(removal.route).connect() as broker:
                    answer = _call(broker, removal.api_name, form)
            except FlexwireError as error:
                return str(error)
            codes = {field.code for field in answer.error_codes}
            if not codes & _LATER or not self._pauses():
                codes -= removal.gone
                return f"error code {code_names(codes)}" if codes else ""
            self._routes.pop(removal.route, None)

    def close(self) -> None:
        """Close the connections to all brokers except the one that is tested."""
        for sender in self._others.values():
            sender.close()


def _call(broker: Broker, api_name: str, form: dict[str, Any]) -> BrokerAnswer:
    """Send a request in the newest version, with the form's fields that exist in this version."""
    version = broker.newest(api_name)
    kind = message(request_name(api_key_of(api_name), version))
    return broker.call(api_name, fitting(form, kind.definition.schema(version)), version)
