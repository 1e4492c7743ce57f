"""Sentences of a report, held against the passages of the code."""

from __future__ import annotations

from pmagent.actors.audit.detectors.evidence.checks import Facts
from pmagent.actors.audit.detectors.evidence.claims import cross_referenced
from pmagent.actors.audit.goals import goal_id
from pmagent.actors.audit.matters import terms
from pmagent.actors.audit.rubric import dimension_of
from pmagent.contracts.audit_facts import CodePassage, Finding
from tests.support.audits import dimension, reading, survey
from tests.support.cases import each


def passage(
    name: str, words: str, said: str = "", *, line: int = 1, reached: bool = True, test: bool = False
) -> CodePassage:
    code = " ".join(terms(words.split()))
    return CodePassage(path="app.py", line=line, name=name, words=code, said=said, reached=reached, test=test)


CODE = [
    passage("convert", "convert cup gram flour subprocess", "weigh"),
    passage("fetch", "fetch http page request timeout", line=10),
    passage("rank", "rank question relevance", line=20),
    passage("store", "store cache disk page", line=25),
    passage("by_aisle", "by_aisle list sort", line=30, reached=False),
    passage("test_convert", "convert gram", test=True),
]
CODE.append(passage("urgency_of", "urgency_of ticket urgency invoke llm", line=50))
SWALLOWED = Finding(goal="project.swallowed", path="app.py", line=12, text="except: pass")
LACKING = Finding(goal="state.undeclared", path="app.py", line=3, text="hint reads 'hints_used', which State lacks")


@each(
    "goal, text, about, outcome",
    [
        ("claim.told", "Flour in cups is converted by density.", "flour cups density", "contradicted"),
        ("claim.told", "Flour in cups is weighed.", "flour cups weighed", "open"),
        ("claim.told", "Density is what it is.", "density", "open"),
        ("claim.told", "The list is sorted by aisles.", "list sorted aisles", "contradicted"),
        ("claim.told", "The list is a stub sorted by aisles.", "list sorted aisles", "open"),
        ("project.tested", "The fetching of pages is tested.", "", "contradicted"),
        ("project.tested", "The conversion to grams is tested.", "", "open"),
        ("output.by_model", "The relevance of questions is ranked by a model.", "", "contradicted"),
        ("output.cached", "The relevance of each question is cached.", "", "contradicted"),
        ("output.cached", "Pages are cached on disk.", "", "supported"),
        ("output.cached", "Everything is cached.", "", "supported"),
        ("justice.by_rule", "The conversion of cups to grams is decided by rules.", "", "open"),
        ("justice.by_rule", "The urgency of tickets is decided by rules.", "", "contradicted"),
        ("tools.time_limits", "All processes have a time limit.", "", "contradicted"),
        ("tools.time_limits", "Processes have a time limit.", "", "supported"),
        ("project.nothing_swallowed", "If a page cannot be fetched this is reported.", "", "contradicted"),
        ("project.nothing_swallowed", "If flour is missing this is reported.", "", "supported"),
        ("claim.product", "Names are matched in Turkish.", "Turkish", "contradicted"),
        ("claim.told", "After four hints it moves on.", "hints", "contradicted"),
        ("claim.told", "A hint is given when it helps.", "hint", "open"),
        ("claim.told", "Flour in cups is weighed, since density deceives.", "flour cups weighed density", "open"),
        ("claim.told", "Flour in cups needs no density.", "flour cups density", "open"),
        ("claim.told", "Flour in cups is for the vet.", "flour cups vet", "open"),
        ("project.tested", "Four tests pin the grams.", "", "open"),
        ("data.csv", "The tests read a CSV file.", "", "open"),
        ("data.csv", "The pages are read from a CSV file.", "", "contradicted"),
    ],
)
def test_a_sentence_is_held_against_the_passages_of_the_code(goal: str, text: str, about: str, outcome: str) -> None:
    words = " ".join(one.words for one in CODE if one.reached and not one.test)
    seen = survey(SWALLOWED, LACKING, words=words, passages=CODE)
    statement = Finding(goal=goal, path=about, line=1, text=text)
    assert Facts(seen).checked(statement).outcome == outcome


def test_without_passages_nothing_is_held_against_them() -> None:
    for goal, text in (("claim.told", "Flour is converted by density."), ("project.tested", "The pages are tested.")):
        statement = Finding(goal=goal, path="density", line=1, text=text)
        for seen in (survey(words="flour"), survey(words="", passages=CODE)):
            assert Facts(seen).checked(statement).outcome == "open"


def test_a_word_alone_contradicts_no_sentence_of_which_anything_holds() -> None:
    text = "Requests have a timeout of great serenity."
    told = Finding(goal="claim.told", path="requests timeout serenity", line=1, text=text)
    limits = Finding(goal="tools.time_limits", path="", line=1, text=text)
    seen = survey(words=" ".join(one.words for one in CODE), passages=CODE)
    for statements, wanted in (([told], "report.contradicted"), ([told, limits], "report.supported")):
        wished = dimension_of(dimension("one", "pdf_report", goals=["report.supported"]))
        found = cross_referenced(wished, [], seen, reading(statements=statements))
        told_of = [goal_id(one.goal) for one in found if one.found]
        assert wanted in told_of
        assert (wanted == "report.contradicted") == ("report.contradicted" in told_of)
