"""Write sentences that explain why two numbers on a report page differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.facts import units
from flexwire.report.limits import FINDINGS

if TYPE_CHECKING:
    from flexwire.facts.audit import NewestShare
    from flexwire.facts.facts import Facts


def clients(facts: Facts) -> int:
    """Return the number of clients on the page.

    If the audit judges all clients, this number is the same as in the audit.
    """
    judged = _parties(facts, "client")
    return facts.totals.clients if judged is None else len(judged)


def _parties(facts: Facts, *roles: str) -> dict[object, int] | None:
    """Return the parties with these roles and their connections, or None if any were omitted."""
    audit = facts.audit
    is_whole = not (audit.left_out.clients or audit.left_out.findings or FINDINGS in facts.left_out)
    if not (audit.findings and is_whole):
        return None
    return {
        finding.client: finding.connections for finding in audit.findings if finding.role in roles
    }


def about_clients(facts: Facts) -> list[str]:
    """Explain why sums in the table of clients differ from the numbers at the top of the page."""
    sentences = []
    rows = len(facts.clients) + facts.left_out.get("clients", 0)
    if facts.clients and rows != clients(facts):
        sentences.append(
            f"The audit counts {units.plural(clients(facts), 'client')}, by client id and address. "
            f"This table contains {units.plural(rows, 'row')}: one for each combination of client "
            "id and software, including those of brokers and controllers."
        )
    every = sum(client.connections for client in facts.clients)
    if "clients" not in facts.left_out and every > facts.totals.connections:
        sentences.append(
            f"The rows add up to {units.count(every)} connections, but the capture contains "
            f"{units.count(facts.totals.connections)}: a connection whose requests contain "
            "several client ids is counted in the row of each of these clients."
        )
    return sentences


def about_connections(facts: Facts) -> str:
    """Return a sentence about connections without a client.

    If there are none, the result is empty.
    """
    parties = _parties(facts, "client", "broker", "controller")
    if parties is None:
        return ""
    silent = facts.totals.connections - sum(parties.values())
    if silent <= 0:
        return ""
    of = units.plural(facts.totals.connections, "connection")
    return (
        f"{units.count(silent)} of {of} are not assigned to a client, because no request on these "
        "connections contains a client id."
    )


def about_versions(facts: Facts) -> str:
    """Return a sentence about requests that have no verdict because their version is unknown."""
    unread = facts.totals.requests - sum(version_use.requests for version_use in facts.version_uses)
    if unread <= 0 or "version_uses" in facts.left_out:
        return ""
    of = units.plural(facts.totals.requests, "request")
    return f"{units.count(unread)} of {of} have no verdict, because their version is unknown."


def newest_sentence(share: NewestShare, requests: int) -> str:
    """Return a sentence about the requests and the clients that use a release's newest versions."""
    if not share.requests:
        return f"No request uses an API that Kafka {share.release} offers."
    part = units.share(share.requests_at_newest / share.requests)
    sentence = (
        f"{units.count(share.requests_at_newest)} of {units.plural(share.requests, 'request')} "
        f"({part}) use the newest version of their API that Kafka {share.release} offers. "
        f"{units.count(share.clients_at_newest)} of {units.plural(share.clients, 'client')} send "
        "no older versions. Only these clients would switch to a new version of an API, such as "
        "one that KIP-636 proposes, as soon as the brokers support it."
    )
    others = requests - share.requests
    if others <= 0:
        return sentence
    of = units.plural(requests, "request")
    return (
        f"{sentence} The other {units.count(others)} of {of} are not counted here: they open "
        "connections (ApiVersions, SASL), come from brokers, or use APIs that the release does "
        "not support."
    )
