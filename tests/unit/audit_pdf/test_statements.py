"""The claims of a report about its code, and texts that are none."""

from __future__ import annotations

from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.matters import EXPLAINED, MATTERS, NAME, NUMBER, PRODUCT, TOLD
from pmagent.actors.audit.sources.pdf.assertion import explains
from pmagent.actors.audit.sources.pdf.layout import Paragraph
from pmagent.actors.audit.sources.pdf.statements import EACH_MAX, Said, claimed, statements
from tests.support.cases import each


def passage(text: str, *, heading: str = "", level: int = 0, page: int = 1) -> Paragraph:
    return Paragraph(text, page, level, (), heading)


@each("sentence, goal", [
    ("The three judges run in parallel.", "judges.parallel"),
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
    ("An answer that does not fit the schema is asked for again.", "output.retried"),
    ("Memories of earlier evenings are kept in a vector store.", "output.embeddings"),
    ("Names of persons are masked before anything is sent.", "output.guarded"),
    ("A confirmed flaw caps the overall score at 3.", "justice.rules"),
    ("No schedule is sent before a human has approved it.", "agent.approval"),
    ("Clones are aborted after two minutes.", "tools.time_limits"),
    ("The final score is computed from the opinions.", "justice.computed"),
    ("Marks of earlier terms are compared with new ones by a test suite.", "project.tests"),
])
def test_a_feature_is_claimed_where_the_report_says_that_it_is_there(sentence: str, goal: str) -> None:
    assert Said(goal) in claimed(sentence)


@each("sentence", [
    "The judges are not run in parallel.", "Parallel execution is not supported.",
    "We plan to run the judges in parallel.", "Judges will run in parallel.",
    "In a future version the judges run in parallel.", "The rubric requires parallel judges.",
    "Do the judges run in parallel?", "Judges could run in parallel if the budget allowed it.",
    "There is no sandbox around the clone.", "It runs without structured output.", "We don't retry malformed answers.",
    "A sandbox is not yet there.", "Sandboxing remains to be done.", "We used a plain loop instead of parallel nodes.",
    "Retries were dropped.", "We replaced the sandbox with nothing at all.", "The retry logic is currently missing.",
    "Parallel execution has not been built.", "The judges should run in parallel.",
    "Some day the judges run in parallel.", "It cannot run judges in parallel.",
    "A history of judges and what they say.", "High: Add conditional edges for nodes that failed.",
    "(3) Harden the error handling with retries.", "A colleague wrote that judges run in parallel.",
    "“The judges run in parallel and never meet each other.”", "Most frameworks run their judges in parallel.",
    "In our peers' repository the judges run in parallel.", "According to the paper, judges run in parallel.",
    "A vector database was evaluated, and the team went without.", "Docker and cron were tried for the clone.",
    "Redis showed us how slow the disk is.", "An alternative to Celery is a plain loop.",
    "Fixed: the judges run in parallel again.", "Run docker to have the judges in parallel.",
    "You can keep results in a database of your own.", "The operator sees in Grafana which judges run in parallel.",
    "If a database is added, it needs migrations.",
])
def test_plans_negations_requirements_and_questions_claim_nothing(sentence: str) -> None:
    assert claimed(sentence) == []


def test_a_sentence_that_claims_nothing_else_tells_that_something_is_done() -> None:
    for sentence, told in (("The MarketAgent computes an optimal schedule.", [TOLD]), ("It does not work.", [])):
        assert [one.goal for one in statements([passage(sentence)])[0]] == told


def test_headings_code_and_what_stands_under_plans_and_peers_claim_nothing() -> None:
    text = "The judges run in parallel here."
    code = Paragraph(text, 1, 0, ((0, len(text)),), "")
    beside = [passage(text, heading=heading) for heading in ("Planned work", "Related work", "Peer feedback", "Ideas")]
    assert statements([passage(text, level=2), code, *beside, passage("In parallel.")]) == ([], 0)


def test_statements_are_found_once_each_with_their_page_and_in_bounds() -> None:
    text = "All nodes run in parallel here. " + " ".join(f"Node {number} works in parallel." for number in range(20))
    found, telling = statements([passage(text, page=3), passage("All nodes run in parallel here.", page=4)])
    of_matters = [(each.goal, each.path, each.line) for each in found if each.goal != TOLD]
    assert of_matters == [("graph.fan_out", "", 3)] * EACH_MAX
    assert len({each.text for each in found if each.goal != TOLD}) == EACH_MAX
    assert telling == 22


@each("sentence, said", [
    ("`needs_review` sends it back to the judges.", [Said(NAME, "needs_review")]),
    ("The method merge_all() drops what is old.", [Said(NAME, "merge_all()")]),
    ("With --dry-run nothing is sent to anybody.", [Said(NAME, "--dry-run")]),
    ("The EvidenceBroker class keeps all of it.", [Said(NAME, "EvidenceBroker()")]),
    ("A run ends after 40 rounds of questions.", [Said(NUMBER, "40 rounds: 40")]),
    ("Answers below 0.6 are asked of somebody else.", [Said(NUMBER, "below 0.6: 0.6")]),
    ("A result older than 2 hours is dropped.", [Said(NUMBER, "2 hours: 2 120 7200")]),
    ("Weights are balanced by Ockham's razor.", [Said(PRODUCT, "Ockham")]),
    ("All pages are indexed with qdrant at night.", [Said(PRODUCT, "qdrant")]),
    ("We measured 40 rounds of questions at most.", []),
    ("The removed `needs_review` is not missed.", []),
    ("It works on Linux and is written in Python.", []),
    ("Questions are in README.md and on https://chroma.dev.", []),
    ("Changes are recorded with git commit --no-verify first.", []),
    ("Answers are written by C-extensions of others.", []),
])
def test_names_products_and_settings_are_claimed(sentence: str, said: list[Said]) -> None:
    plain = sentence.replace("`", "")
    codes = [(sentence.index("`"), sentence.rindex("`") - 1)] if "`" in sentence else []
    found = [one for one in claimed(plain, codes) if one.goal in (NAME, NUMBER, PRODUCT)]
    assert found == said


@each("sentence", [
    "Two detectives run side by side, because neither needs the other's result.",
    "Opinions are merged by a reducer; without it the second writer would be refused.",
    "The price is that the graph cannot be read in one place.",
    "Polling was given up: inotify does not work on network drives.",
    "The first round keeps them apart on purpose, so nobody follows the crowd.",
    "We prefer rules to a model since the same opinions must give the same verdict.",
])
def test_a_sentence_of_cause_purpose_or_price_explains(sentence: str) -> None:
    assert explains(sentence)
    assert [one.goal for one in statements([passage(sentence, heading="Trade-offs")])[0]][-1:] == [EXPLAINED]


@each("sentence", [
    "Fan-in, fan-out, metacognition and dialectical synthesis are used throughout the system.",
    "The graph has six nodes, which run one after another until the verdict.",
    "Our robust and sophisticated design leverages synergy because metacognition is powerful.",
    "Next time I would use subprocess, because os.system is not safe.", "Because of that.",
    "A colleague said it works because we were lucky with the data.",
])
def test_lists_praise_plans_and_others_words_explain_nothing(sentence: str) -> None:
    assert not explains(sentence)


def test_every_matter_can_be_borne_out_or_denied() -> None:
    assert {one.id for one in MATTERS.values() if not (one.goals or one.words or one.flaws)} == set()
    assert {one.id for one in MATTERS.values() if one.denial and not one.flaws} == set()
    assert {goal for one in MATTERS.values() for goal in one.goals if GOALS[goal].kind != "asset"} == set()
    assert {goal for one in MATTERS.values() for goal in one.flaws if GOALS[goal].kind != "flaw"} == set()


@each("sentence, about", [
    ("Flour in cups is converted by density.", "flour cups converted density"),
    ("Flour in cups was converted by density.", ""),
    ("Flour comes in cups, of high density.", ""),
    ("Flour is converted, and the density is not looked up.", "flour converted"),
    ("Heaps of flour, which are converted by density.", ""),
])
def test_what_is_told_is_the_words_of_acts(sentence: str, about: str) -> None:
    assert [one.path for one in statements([passage(sentence)])[0] if one.goal == TOLD] == [about]


def test_languages_are_claimed_where_something_is_done_in_them() -> None:
    for sentence, named in (("The patterns are matched in German and Turkish.", ["German", "Turkish"]),
                            ("German reports are judged with patience.", [])):
        assert [one.path for one in statements([passage(sentence)])[0] if one.goal == PRODUCT] == named
