"""The meaning of a foreign rubric's texts: goals by their words, terms by their quotation marks."""

from __future__ import annotations

from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.rubric_words import FAMILIES, TERMS_MAX, derived, means, names, quoted
from tests.support.cases import each


def goals(text: str, target: str = "github_repo") -> tuple[str, ...]:
    return derived(target, (text,), ())


@each(
    "text, goal",
    [
        ("Each commit says what it does.", "history.commits"),
        ("State is a TypedDict.", "state.typed"),
        ("Check the reducers.", "state.reducers"),
        ("A fan-out to three nodes", "graph.fan_out"),
        ("Purely linear flow", "graph.linear"),
        ("subprocess.run() is used.", "tools.checked_processes"),
        ("No raw 'os.system()' calls", "security.os_system"),
        ("bound with .with_structured_output(Answer)", "output.structured"),
        ("retry on parse failure", "output.retried"),
        ("three personas", "judges.personas"),
        ("DISSENT is told", "justice.dissent"),
        ("has a README", "project.readme"),
    ],
)
def test_a_word_of_a_goal_means_the_goal(text: str, goal: str) -> None:
    assert goal in goals(text)


@each(
    "text",
    [
        "the committee",  # no commit
        "src/graph.py and src/pipeline.py",  # a path is no graph and no pipeline
        "nonlinear and linear-algebra",
        "precommit-hooks",
        "éclint",  # a letter before it
        "the specification",  # no ci
    ],
)
def test_a_word_inside_another_word_or_path_means_nothing(text: str) -> None:
    assert goals(text) == ()


def test_goals_are_those_of_the_artifact_alone() -> None:
    text = "commits, diagrams, hallucinated paths, StateGraph, headings"
    for target, families in FAMILIES.items():
        assert {goal.partition(".")[0] for goal in derived(target, (text,), ())} <= set(families)
    assert goals(text, "pdf_images") == ("images.present", "images.inspected")
    assert goals("nothing of the kind", "pdf_images") == ("images.present", "images.inspected")
    assert goals("nothing of the kind", "pdf_report") == ()


def test_what_is_quoted_is_looked_for() -> None:
    assert derived("github_repo", ("nothing",), ("soup.py",)) == ("repo.term",)
    assert derived("pdf_report", ("nothing",), ("soup",)) == ("report.term",)


def test_no_scope_is_ever_derived() -> None:
    everything = " ".join(word for goal in GOALS.values() for word in goal.words)
    for target in FAMILIES:
        found = derived(target, (everything,), ("a",))
        assert found
        assert all(GOALS[goal].kind != "context" for goal in found)


def test_every_goal_that_can_be_derived_is_derived_by_each_of_its_words() -> None:
    for goal in GOALS.values():
        for word in goal.words:
            assert means(f"Look at {word}, and say so.", goal), (goal.id, word)


# --- terms ---------------------------------------------------------------------------------------------------------


def terms(instruction: str, success: str = "", failure: str = "", target: str = "github_repo") -> tuple[str, ...]:
    return quoted(target, instruction, success, failure)


def test_terms_are_what_is_quoted_in_any_way_each_once_as_it_first_occurs() -> None:
    text = "Find 'src/state.py', `operator.add` and \u2018BaseModel\u2019, \u201cAnnotated\u201d and \"operator.ior\"."
    assert terms(text, "'BaseModel' is used, and `Reducer`.") == (
        "src/state.py", "operator.add", "BaseModel", "Annotated", "operator.ior", "Reducer",
    )  # fmt: skip


def test_calls_are_looked_for_by_name() -> None:
    assert terms("'builder.add_edge()' and '.bind_tools(Answer)'") == ("builder.add_edge", "bind_tools")


def test_apostrophes_quote_nothing() -> None:
    assert terms("each other's data, the judges' prompts, and the model's answer don't count") == ()


@each(
    "text",
    [
        "Flag it as 'Keyword_Dropping'.",
        "There are no 'globals' left.",
        "Check that it is not 'print' alone.",
        "no raw 'spawn' calls",
        "A single 'init' commit",
        "Extract paths (e.g., 'src/ast_parser.py', 'src/nodes.py').",
        "for example 'src/ast_parser.py'",
    ],
)
def test_labels_examples_and_what_should_be_absent_are_no_terms(text: str) -> None:
    assert terms(text) == ()


def test_what_is_a_flaw_where_it_is_found_is_no_term() -> None:
    assert terms("Look for 'os.system()' and 'pickle'.", "It uses 'os.system' nowhere.") == ()


def test_what_only_the_failure_pattern_quotes_is_no_term() -> None:
    assert terms("Look for 'graph' and 'chain'.", "A 'graph'.", "A 'chain', or a 'graph' of one node.") == ("graph",)


def test_of_a_repository_names_and_paths_are_looked_for_and_of_a_report_phrases() -> None:
    text = "Look for 'State Synchronization', 'state.py' and 'one two three four five'."
    assert terms(text) == ("state.py",)
    assert terms(text, target="pdf_report") == ("State Synchronization", "state.py")


def test_terms_are_few_and_short() -> None:
    many = " ".join(f"'name_{number}'" for number in range(100))
    assert len(terms(many)) == TERMS_MAX
    assert terms(f"'{'x' * 81}'") == ()


def test_a_text_names_a_term_at_its_boundaries() -> None:
    assert names("Uses AgentState.", "AgentState")
    assert names("uses agentstate", "AgentState")
    assert not names("uses AgentStates", "AgentState")
    assert not names("anything", "")


def test_hostile_texts_are_read_in_time_that_grows_with_their_length() -> None:
    """A quarter of a megabyte of each: with a square in it this would take minutes."""
    for text in (
        "'a'" * 80_000,
        "as " * 80_000,
        "'" * 250_000,
        "as" + " " * 250_000,
        "(e.g. 'a' " * 25_000,
        "\u2018" * 99,
    ):
        quoted("github_repo", text, text, "")
        derived("github_repo", (text,), ())


@each(
    "name, text, goal",
    [
        ("Approval and limits", "Does a person agree before anything leaves the house?", "agent.approval"),
        ("Safe tools", "Is what comes from elsewhere looked at before it is used?", "tools.inputs_checked"),
        ("Final ruling", "How does the last word come about?", "justice.facts"),
        ("Errors", "When something fails, is it told?", "project.swallowed"),
        ("Structured answers", "Is the form of an answer fixed beforehand?", "output.retried"),
    ],
)
def test_a_topic_is_looked_at_whole_whatever_the_words(name: str, text: str, goal: str) -> None:
    assert goal in derived("github_repo", (text,), (), name)
