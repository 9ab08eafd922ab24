"""`messages.pyi` agrees with the classes; `tools/pages/stubs.py` writes it from the catalog."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from typing import Any

import flexwire
from flexwire.codec import Message, MessageStruct, message
from flexwire.schema.catalog import catalog
from tests.each import each
from tools.pages.stubs import STUB

NAMES = catalog().names()


@cache
def stub() -> dict[str, ast.ClassDef]:
    module = ast.parse(STUB.read_text(encoding="utf-8"))
    return {one.name: one for one in module.body if isinstance(one, ast.ClassDef)}


def inner(declared: ast.ClassDef) -> dict[str, ast.ClassDef]:
    return {one.name: one for one in declared.body if isinstance(one, ast.ClassDef)}


def fields(declared: ast.ClassDef) -> dict[str, ast.AnnAssign]:
    return {
        one.target.id: one
        for one in declared.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }


def test_the_stub_has_every_message_and_nothing_else() -> None:
    assert list(stub()) == list(NAMES)


def test_the_name_of_each_message_gives_its_class_and_any_other_text_a_message() -> None:
    module = ast.parse(STUB.read_text(encoding="utf-8"))
    found = [one for one in module.body if isinstance(one, ast.FunctionDef)]
    actual = inspect.signature(flexwire.message)
    assert flexwire.message is message
    returned = {}
    for one in found:
        assert [ast.unparse(decorator) for decorator in one.decorator_list] == ["overload"]
        assert [argument.arg for argument in one.args.args] == list(actual.parameters)
        assert one.returns is not None
        name, release = one.args.args
        returned[ast.unparse(name.annotation or name)] = ast.unparse(one.returns)
        wanted = "str | None" if one is found[-1] else "None"
        assert ast.unparse(release.annotation or release) == wanted
    assert {one.name for one in found} == {"message"}
    assert actual.parameters["release"].default is None
    by_name = {f"Literal['{name}']": f"type[{name}]" for name in NAMES}
    assert returned == {**by_name, "str": "type[Message]"}
    assert list(returned)[-1] == "str"


def test_the_stub_is_of_a_size_that_ships() -> None:
    assert STUB.stat().st_size < 1_000_000


@each("name", NAMES)
def test_classes_have_the_structures_fields_order_and_defaults_of_the_stub(name: str) -> None:
    made = message(name)
    structs = inner(stub()[name])
    assert {one.__name__ for one in made.definition.classes.values()} == {name, *structs}
    for declared in (stub()[name], *structs.values()):
        actual = made.definition.classes[declared.name]
        assert declared.name == name or getattr(made, declared.name) is actual
        assert actual.__struct_fields__ == (*fields(declared), "unknown_tagged_fields")
        default: Any = actual()
        for attribute, said in fields(declared).items():
            agrees(said, getattr(default, attribute), made)


def agrees(said: ast.AnnAssign, value: Any, made: type[Message]) -> None:
    """Compare a default with the type and the default that the stub declares."""
    options = [one.strip() for one in ast.unparse(said.annotation).split("|")]
    if isinstance(said.value, ast.Constant) and said.value.value is not ...:
        assert said.value.value == value
    if value is None:
        assert options[-1] == "None"
    elif isinstance(value, list):
        assert options[0].startswith("list[")
        assert value == []
    elif isinstance(value, MessageStruct):
        assert options[0] == type(value).__qualname__
        assert type(value) in made.definition.classes.values()
    else:
        kind = type(value).__name__
        assert options[0] == ("_uuid.UUID" if kind == "UUID" else kind)


def test_every_field_tells_its_kafka_type_and_versions() -> None:
    request = stub()["FetchRequest"]
    assert ast.get_docstring(request) == (
        "Request, api key 1; versions 0-18, flexible 12+; in Kafka 2.4.1 to 4.4.0."
    )
    told = {
        name: ast.literal_eval(request.body[request.body.index(one) + 1].value)  # type: ignore[attr-defined]  # a docstring
        for name, one in fields(request).items()
    }
    assert told["cluster_id"] == (
        "string, versions 12+, tagged 12+ (tag 0), nullable 12+, ignorable."
    )
    assert told["replica_id"] == "int32, versions 0-14."
    assert told["topics"] == "[]FetchTopic, versions 0+."
    for declared in stub().values():
        for one in (declared, *inner(declared).values()):
            told_after = [isinstance(item, ast.Expr) for item in one.body]
            for place, item in enumerate(one.body):
                if isinstance(item, ast.AnnAssign):
                    assert told_after[place + 1], f"{one.name}: {ast.unparse(item)}"
