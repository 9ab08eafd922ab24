"""Create cases that change something, from the requests in `writing` and `disposable`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flexwire.arguments import refuse
from flexwire.conformance.cases import (
    CasePlan,
    Kind,
    RequestWriter,
    Unasked,
    api_cases,
    asked_versions,
    beyond,
    written_again,
)
from flexwire.conformance.disposable import disposable_questions
from flexwire.conformance.questions import Learned, Question
from flexwire.conformance.removals import removals
from flexwire.conformance.writing import (
    NODE,
    PREFIX,
    own_producer,
    own_topic_id,
    removing_questions,
    write_questions,
)
from flexwire.protocol.apis import api_key_of
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.conformance.cases import Asking, Case, QuestionOf

_UNKNOWN: Final = "flexwire does not know these versions"


def own_questions(asking: Asking) -> dict[str, tuple[Question, ...]]:
    """Return the questions of a run that change something, by API, in sending order."""
    questions = write_questions(asking.own)
    if not asking.disposable:
        return questions
    # The run's objects are removed last.
    last = [*removing_questions(asking.own)]
    first = {name: asked for name, asked in questions.items() if name not in last}
    others = disposable_questions(
        asking.own, own_topic_id(asking.own), Learned(NODE, 1), own_producer()
    )
    return {**first, **others, **{name: questions[name] for name in last}}


def _chooser(questions: Mapping[str, tuple[Question, ...]]) -> QuestionOf:
    def asks(name: str, version: int) -> Question | None:
        return next((asked for asked in questions[name] if version in asked.versions), None)

    return asks


def with_learned(case: Case, asking: Asking, known: Mapping[str, Any]) -> Case:
    """Return a case that changes something, with the values that the broker has sent."""
    if case.kind is Kind.UNOFFERED:
        return case
    writer = RequestWriter(case.api_key, case.version, asking, _chooser(own_questions(asking)))
    return written_again(writer, case, known)


def with_writes(plan: CasePlan, offered: Mapping[int, Versions], asking: Asking) -> CasePlan:
    """Return a plan, followed by the cases that change something."""
    if not asking.own.startswith(PREFIX):
        raise refuse("own", f"a name that begins with {PREFIX}", asking.own)
    questions = own_questions(asking)
    asks = _chooser(questions)
    cases: list[Case] = []
    read = {(case.api_key, case.version) for case in plan.cases}
    unasked = {one.api_key: one for one in plan.unasked if one.api_name in questions}
    others = [one for one in plan.unasked if one.api_name not in questions]
    for name in questions:
        api_key = api_key_of(name)
        if api_key not in unasked:
            continue
        missing = _missing_remover(name, offered, asking.own)
        if missing:
            reason = f"the broker does not offer {missing}, which removes the created objects"
            unasked[api_key] = replace(unasked[api_key], reason=reason)
            continue
        found = api_cases(api_key, offered[api_key], asking, len(plan.cases) + len(cases), asks)
        # The version next to the offered versions may be read-only.
        cases += [case for case in found if (api_key, case.version) not in read]
        asked = {*asked_versions(api_key, offered[api_key], asks)}
        asked |= {version for key, version in read if key == api_key}
        left = beyond(offered[api_key], Versions.of(asked))
        unasked[api_key] = Unasked(api_key, name, left, _UNKNOWN)
    some = (one for one in unasked.values() if one.versions)
    return CasePlan((*plan.cases, *cases), (*others, *some))


def _missing_remover(name: str, offered: Mapping[int, Versions], own: str) -> str:
    """Return an API that the broker lacks but that is needed to remove the given API's objects."""
    removers = (one.api_name for one in removals(own) if name in one.makers)
    return next((one for one in removers if api_key_of(one) not in offered), "")
