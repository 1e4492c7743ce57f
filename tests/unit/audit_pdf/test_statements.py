"""The claims of a report about its code, and texts that are none."""

from __future__ import annotations

from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.sources.pdf.layout import Paragraph
from pmagent.actors.audit.sources.pdf.statements import _CLAIMS, EACH_MAX, claimed, statements
from tests.support.cases import each


def passage(text: str, *, heading: str = "", level: int = 0, page: int = 1) -> Paragraph:
    return Paragraph(text, page, level, (), heading)


@each(
    "sentence, goal",
    [
        ("The three judges run in parallel.", "graph.fan_out"),
        ("The graph fans out to the detectives.", "graph.fan_out"),
        ("We implemented parallel Judges in src/nodes/judges.py.", "graph.fan_out"),
        ("An aggregator node serves as the fan-in point.", "graph.fan_in"),
        ("Conditional edges route to the end on failure.", "graph.error_route"),
        ("State is a TypedDict with reducers.", "state.reducers"),
        ("All models are Pydantic BaseModels.", "state.models"),
        ("Clones are sandboxed in a temporary directory.", "tools.temporary_clone"),
        ("Each judge is bound with .with_structured_output(JudicialOpinion).", "output.structured"),
        ("Malformed answers are retried three times.", "output.retried"),
        ("Synthesis is deterministic: if/else rules decide.", "justice.deterministic"),
        ("The Rule of Security caps the score.", "justice.rules"),
        ("A test suite covers every rule.", "project.tests"),
        ("The run resumes from its last checkpoint.", "agent.persistence"),
        ("It isn't only typed: the judges run in parallel.", "graph.fan_out"),
        ("Not sequential but parallel execution is what we built.", "graph.fan_out"),
        ("Nodes never wait for each other, they run concurrently.", "graph.fan_out"),
        ("The judges run in parallel and do not see each other's opinions.", "graph.fan_out"),
        ("Sequential judges would influence each other, so all run in parallel.", "graph.fan_out"),
        ("Judges run in parallel without waiting.", "graph.fan_out"),
        ("We replaced free text with structured output.", "output.structured"),
        ("Conditional edges route missing evidence to an early end.", "graph.conditional"),
        ("If a clone fails, a conditional edge leads to the end.", "graph.error_route"),
        ("Parallel writes need care, hence evidences has a reducer.", "state.reducers"),
        ("Reducers prevent parallel branches from overwriting each other.", "state.reducers"),
    ],
)
def test_a_feature_is_claimed_where_the_report_says_that_it_is_there(sentence: str, goal: str) -> None:
    assert goal in claimed(sentence)


@each(
    "sentence",
    [
        "The judges are not run in parallel.",
        "Parallel execution is not supported.",
        "We plan to run the judges in parallel.",
        "Judges will run in parallel.",
        "In a future version the judges run in parallel.",
        "The rubric requires parallel judges.",
        "Do the judges run in parallel?",
        "Judges could run in parallel if the budget allowed it.",
        "There is no sandbox around the clone.",
        "It runs without structured output.",
        "We don't retry malformed answers.",
        "A sandbox is not yet there.",
        "Sandboxing remains to be done.",
        "We used a plain loop instead of parallel nodes.",
        "Retries were dropped.",
        "We replaced the sandbox with nothing at all.",
        "The retry logic is currently missing.",
        "Parallel execution has not been built.",
        "The judges should run in parallel.",
        "Some day the judges run in parallel.",
        "It cannot run judges in parallel.",
        "A history of judges and what they say.",
    ],
)
def test_plans_negations_requirements_and_questions_claim_nothing(sentence: str) -> None:
    assert claimed(sentence) == []


def test_headings_code_and_what_stands_under_plans_claim_nothing() -> None:
    text = "The judges run in parallel here."
    code = Paragraph(text, 1, 0, ((0, len(text)),), "")
    assert (
        statements([passage(text, level=2), code, passage(text, heading="Planned work"), passage("In parallel.")]) == []
    )


def test_statements_are_found_once_each_with_their_page_and_in_bounds() -> None:
    text = "The judges run in parallel here. " + " ".join(f"Judge {number} works in parallel." for number in range(20))
    found = statements([passage(text, page=3), passage("The judges run in parallel here.", page=4)])
    assert [(each.goal, each.path, each.line) for each in found] == [("graph.fan_out", "", 3)] * EACH_MAX
    assert len({each.text for each in found}) == EACH_MAX


def test_every_claim_is_of_an_asset_that_detectives_look_for() -> None:
    assert {goal for goal in _CLAIMS if GOALS[goal].kind != "asset"} == set()
