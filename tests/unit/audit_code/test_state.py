"""The state of a graph: what it is, what merges it, wherever and under whatever names that stands."""

from __future__ import annotations

from pmagent.actors.audit.detectors.code.state import StateReader
from pmagent.contracts.audit_facts import Finding
from tests.support.cases import each
from tests.support.detected import detected, goals, lines, of

GRAPH = "from langgraph.graph import StateGraph as SG\n"


def found(*programs: str, **named: str) -> list[Finding]:
    return detected(StateReader(), *programs, **named)


@each(
    "head, kind",
    [
        ("from typing import TypedDict\nclass Work(TypedDict): ...", "TypedDict"),
        ("import typing_extensions as te\nclass Work(te.TypedDict, total=False): ...", "TypedDict"),
        ("from pydantic import BaseModel as B\nclass Work(B): ...", "Pydantic model"),
        ("from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Work: ...", "dataclass"),
        ("import dataclasses\n@dataclasses.dataclass\nclass Work: ...", "dataclass"),
        ("from typing import NamedTuple\nclass Work(NamedTuple): ...", "NamedTuple"),
        ("from langgraph.graph import MessagesState\nclass Work(MessagesState): ...", "TypedDict"),
        ("from typing import TypedDict\nWork = TypedDict('Work', {'a': int})", "TypedDict"),
        ("import pydantic\nWork = pydantic.create_model('Work', a=(int, 1))", "Pydantic model"),
        ("import msgspec\nclass Work(msgspec.Struct): ...", "Struct"),
        ("import attr\n@attr.s(auto_attribs=True)\nclass Work: ...", "dataclass"),
        ("from langchain.agents import AgentState\nclass Work(AgentState): ...", "TypedDict"),
        ("from sqlmodel import SQLModel\nclass Work(SQLModel): ...", "Pydantic model"),
        ("from pydantic import BaseModel\nclass A(BaseModel): ...\nclass Work(A): ...", "Pydantic model"),
        (("from typing import Generic, T\nfrom pydantic import BaseModel\nclass A(BaseModel, Generic[T]): ...\n"
         "class Work(A[int]): ..."), "Pydantic model"),
    ],
)  # fmt: skip
def test_a_class_given_to_a_graph_is_its_typed_state(head: str, kind: str) -> None:
    findings = found(f"{GRAPH}{head}\ngraph = SG(Work)\n")
    (finding,) = of(findings, "state.typed")
    assert finding.text.startswith(f"{kind}, the state of StateGraph at app/m0.py:")
    assert finding.confidence >= 0.95
    assert "state.plain_dicts" not in goals(findings)


def test_a_state_is_found_in_another_file_than_its_graph() -> None:
    state = "from typing import TypedDict\nclass Work(TypedDict):\n    a: int\n"
    findings = found(state, f"{GRAPH}from m0 import Work\ndef build():\n    return SG(state_schema=Work)\n")
    (finding,) = of(findings, "state.typed")
    assert (finding.path, finding.line) == ("app/m0.py", 2)
    assert "app/m1.py:4" in finding.text
    assert "class Work(TypedDict):\n    a: int" in finding.text


@each("imported", ["from .kept import State", "from app.kept import State", "from app import kept"])
def test_of_classes_of_one_name_that_is_the_state_which_is_imported(imported: str) -> None:
    work = "from typing import TypedDict\nclass State(TypedDict):\n    a: int\n"
    use = "kept.State" if imported.endswith("kept") else "State"
    findings = found(f"{GRAPH}{imported}\ngraph = SG({use})\n", app__apart=work, app__kept=work)
    said = {one.path: one.text.partition("\n")[0] for one in of(findings, "state.typed")}
    assert said == {
        "app/apart.py": "TypedDict, its name says state",
        "app/kept.py": "TypedDict, the state of StateGraph at app/m0.py:3",
    }


def test_a_class_that_is_called_as_its_base_is_told_from_it() -> None:
    base = "from pydantic import BaseModel\nclass State(BaseModel):\n    a: int\n"
    further = "from app.z import State as Old\nclass State(Old):\n    b: int\n"
    findings = found(f"{GRAPH}from .a import State\ngraph = SG(State)\n", app__a=further, app__z=base)
    assert {one.path for one in of(findings, "state.models")} == {"app/a.py", "app/z.py"}


def test_a_class_is_a_state_by_its_name_only_where_there_are_graphs() -> None:
    named = "from typing import TypedDict\nclass AgentState(TypedDict):\n    a: int\n"
    assert found(named) == []
    (finding,) = of(found(named, "import langgraph"), "state.typed")
    assert finding.confidence == 0.8


@each(
    "given",
    ["dict", "dict[str, int]", "typing.Dict", "typing.Dict[str, typing.Any]", "D", "Own", "collections.OrderedDict"],
)
def test_a_plain_dict_is_a_flaw_under_any_name(given: str) -> None:
    head = f"{GRAPH}import typing, collections\nD = dict[str, int]\nclass Own(dict): ...\n"
    findings = found(f"{head}graph = SG({given})\n")
    assert goals(findings) == {"state.plain_dicts"}
    assert lines(findings, "state.plain_dicts") == [5]


def test_a_state_that_cannot_be_told_is_no_flaw() -> None:
    assert found(f"{GRAPH}def build(schema):\n    return SG(schema)\ndef other():\n    return SG(make())\n") == []


@each("annotation, said", [
    ("Annotated[list, operator.add]", "operator.add"),
    ("t.Annotated[dict, ior]", "operator.ior"),
    ("te.Annotated[list, o.add]", "operator.add"),
    ("Annotated[list, add_messages]", "add_messages"),
    ("Annotated[list, lambda a, b: a + b]", "lambda"),
    ("Annotated[list, 'doc', operator.or_]", "operator.or_"),
    ("Annotated[str, latest]", "latest"),
    ("Annotated[str, Rules.latest]", "latest"),
    ("Annotated[list | None, partial(latest)]", "partial of latest"),
    ("Annotated[int, BinaryOperatorAggregate(int, operator.add)]", "BinaryOperatorAggregate of operator.add"),
    ("'Annotated[list, operator.add]'", "operator.add"),
    ("Required[Annotated[list, operator.add]]", "operator.add"),
])
def test_a_reducer_is_found_wherever_annotated_stands(annotation: str, said: str) -> None:
    text = f"""
        import operator, operator as o, typing as t, typing_extensions as te
        from operator import ior
        from typing import Annotated
        from langgraph.graph.message import add_messages
        def latest(old, new): return new
        class Rules:
            @staticmethod
            def latest(old, new): return new
        class Work(t.TypedDict):
            field: {annotation}
    """
    (finding,) = of(found(text), "state.reducers")
    assert finding.line == 10
    assert finding.text.startswith(f"reducer {said} of field in Work")
    assert finding.confidence >= 0.7


def test_a_reducer_is_found_in_an_alias_and_where_it_is_inherited() -> None:
    text = """
        import operator
        from typing import Annotated
        from langgraph.graph import MessagesState, StateGraph
        Notes = Annotated[list, operator.add]
        class Chat(MessagesState):
            a: int
        graph = StateGraph(MessagesState)
    """
    assert lines(found(text), "state.reducers") == [4, 5, 7]


def test_a_reducer_of_another_module_is_surer_where_its_definition_is_seen() -> None:
    text = "from typing import Annotated\nfrom m1 import merge\nclass W:\n    a: Annotated[dict, merge]\n"
    (unseen,) = of(found(text), "state.reducers")
    (seen,) = of(found(text, "def merge(a, b): return a | b\n"), "state.reducers")
    assert (unseen.confidence, seen.confidence) == (0.7, 0.95)


@each("annotation", [
    "Annotated[int, Field(ge=1)]", "Annotated[int, Ge(1)]", "Annotated[str, 'operator.add']",
    "Annotated[str, Depends(latest)]", "Annotated[str, Marker]", "Annotated[str, typing.Any]", "Annotated[str, str]",
    "Annotated[list, lambda a: a]", "list[operator.add]",
])
def test_other_metadata_is_no_reducer(annotation: str) -> None:
    text = f"import operator, typing\nfrom typing import Annotated\nclass W:\n    a: {annotation}\n"
    assert "state.reducers" not in goals(found(text))


def test_words_about_reducers_are_no_reducers() -> None:
    text = '''
        """The state uses Annotated[list, operator.add] and StateGraph(dict)."""
        NOTE = "evidences: Annotated[dict, operator.ior]"
    '''
    assert found(text) == []


def test_models_are_found_through_own_bases_of_other_modules() -> None:
    base = "import pydantic\nclass Base(pydantic.BaseModel):\n    model_config = {}\n"
    models = (
        "from m0 import Base\nclass Evidence(Base):\n    goal: str\n    found: bool = False\nclass Empty(Base): ...\n"
    )
    (finding,) = of(found(base, models), "state.models")
    assert (finding.path, finding.line) == ("app/m1.py", 2)
    assert finding.text.startswith("Pydantic model with 2 typed fields: goal, found\nclass Evidence(Base):")


def test_classes_that_derive_from_each_other_end() -> None:
    assert found("class A(B): x: int\nclass B(A): x: int\nclass C(C): x: int\n") == []


def test_tests_and_examples_are_not_the_project() -> None:
    text = f"{GRAPH}import typing\nclass WorkState(typing.TypedDict): ...\nSG(WorkState)\nSG(dict)\n"
    assert found(tests__test_it=text, examples__show=text) == []


@each("call", [
    "StateGraph(schema=Work)", "create_agent(m, state_schema=Work)", "create_react_agent(m, state_schema=Work)",
    "create_supervisor([], state_schema=Work)", "create_deep_agent(state_schema=Work)",
])
def test_a_state_may_be_given_by_keyword_and_to_agents(call: str) -> None:
    (finding,) = of(found(f"import typing\nclass Work(typing.TypedDict): ...\nx = {call}\n"), "state.typed")
    assert finding.confidence == 1.0


def test_a_state_of_the_library_is_typed_and_merges() -> None:
    text = "from langgraph.graph import StateGraph, MessagesState as M\ng = StateGraph(M)\n"
    assert goals(found(text)) == {"state.typed", "state.reducers"}
    own = "from langgraph.graph import StateGraph\nclass MessagesState(dict): ...\ng = StateGraph(MessagesState)\n"
    assert goals(found(own)) == {"state.plain_dicts"}


def test_a_base_that_another_module_hands_on_is_taken_for_what_it_is_called() -> None:
    (finding,) = of(found("from compat import BaseModel\nclass Evidence(BaseModel):\n    goal: str\n"), "state.models")
    assert finding.confidence == 0.8
    own = "class BaseModel: ...\n"
    assert found("from m1 import BaseModel\nclass Evidence(BaseModel):\n    goal: str\n", own) == []
