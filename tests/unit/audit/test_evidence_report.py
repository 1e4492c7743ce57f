"""Evidence about a report's text, its images, and what of it the repository bears out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from pmagent.actors.audit.detectors.evidence.claims import cross_referenced
from pmagent.actors.audit.detectors.evidence.items import judgeable
from pmagent.actors.audit.detectors.evidence.pictures import NOT_INSPECTED, SEEN_SURE, picture_evidence
from pmagent.actors.audit.detectors.evidence.report import CROSSED, EXPLAINED, report_evidence
from pmagent.actors.audit.detectors.evidence.text import clean, counted
from pmagent.actors.audit.goals import goal_id
from pmagent.actors.audit.progress import as_item
from pmagent.actors.audit.rubric import Dimension, dimension_of
from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_events import EVIDENCE_MAX, AuditEvidenceFound
from pmagent.contracts.audit_facts import (
    Claim,
    CodeGraph,
    Excerpt,
    Finding,
    GraphEdge,
    Heading,
    Picture,
    PictureReading,
    Unparsed,
)
from tests.support.audits import AUDIT, dimension, finding, pictures, reading, survey
from tests.support.cases import each
from tests.support.hostile import CORPUS


def about(*goals: str, target: str = "pdf_report", terms: tuple[str, ...] = (), **more: Any) -> Dimension:
    """A dimension with these goals and terms; without goals, they follow from its texts."""
    raw = dimension("one", target, **more)
    raw["goals"] = list(goals)
    if not goals:
        del raw["goals"]
    return msgspec.structs.replace(dimension_of(raw), terms=terms)


def of(goal: str, items: Sequence[Evidence]) -> Evidence:
    return next(one for one in items if goal_id(one.goal) == goal)


def excerpt(term: str, sentences: int, page: int = 2, *, literal: bool = True) -> Excerpt:
    text = f"About {term}."
    return Excerpt(query=term, page=page, rank=1, text=text, literal=literal, sentences=sentences)


NOTHING_READ: dict[str, Any] = {
    "characters": 0, "text_pages": 0, "segments": 0, "headings": [], "claims": [], "excerpts": [],
    "notes": ["2 pages are images, and tesseract is not installed"],
}  # fmt: skip


# --- terms -----------------------------------------------------------------------------------------------------------


@each("sentences", [EXPLAINED, EXPLAINED + 1])
def test_a_term_that_is_explained_is_found_on_its_page(sentences: int) -> None:
    found = report_evidence(
        about("report.term", "report.keyword", terms=("Metacognition",)),
        reading(excerpts=[excerpt("Metacognition", 0, 1), excerpt("Metacognition", sentences, 4)]),
    )
    assert [goal_id(one.goal) for one in found] == ["report.scope", "report.term"]
    one = found[1]
    assert one.goal.endswith(": Metacognition")
    assert (one.found, one.location, one.content) == (True, "page 4", "page 4: About Metacognition.")
    assert f"{counted(sentences, 'sentence')} about it on page 4" in one.rationale


def test_a_term_without_explanation_was_dropped() -> None:
    found = report_evidence(
        about("report.term", terms=("Metacognition",)), reading(excerpts=[excerpt("Metacognition", 0)])
    )
    assert [(goal_id(one.goal), one.found) for one in found[1:]] == [("report.term", False), ("report.keyword", True)]
    assert of("report.keyword", found).location == "page 2"


def test_a_term_that_does_not_occur_as_it_stands_is_not_there_and_not_dropped() -> None:
    found = report_evidence(
        about("report.term", terms=("State Synchronization",)),
        reading(excerpts=[excerpt("State Synchronization", 0, literal=False)]),
    )
    assert [(goal_id(one.goal), one.found) for one in found[1:]] == [("report.term", False)]
    assert found[1].rationale.endswith("these words do not stand in it")


def test_a_rubric_that_names_nothing_gets_the_passages_nearest_to_its_instruction() -> None:
    wanted = about(forensic_instruction="How does it think?", success_pattern="Good.", failure_pattern="Bad.")
    assert wanted.goals == ()
    found = report_evidence(wanted, reading(excerpts=[excerpt("How does it think?", 0, literal=False)]))
    assert found[1].content == "page 2: About How does it think?."
    assert found[1].found


# --- what could not be read ------------------------------------------------------------------------------------------


@each(
    "wanted",
    [
        about("report.term", terms=("Metacognition",)), about("report.structure"), about("report.verified"),
        about(success_pattern="x", failure_pattern="y"),
    ],
)  # fmt: skip
def test_a_report_that_cannot_be_read_is_judged_as_one_that_says_nothing(wanted: Dimension) -> None:
    unread = reading(**NOTHING_READ)
    found = cross_referenced(wanted, report_evidence(wanted, unread), survey(), unread)
    assert [(goal_id(one.goal), one.found) for one in found if one.confidence] == [
        ("report.scope", True), ("report.scanty", True),
    ]  # fmt: skip
    assert judgeable(found, wanted)
    assert "not read: 2 pages are images" in (found[0].content or "")


def test_pages_that_could_not_be_read_make_absence_less_sure_and_nothing_else() -> None:
    half = reading(pages=4, text_pages=2, excerpts=[excerpt("Here", 3)])
    found = report_evidence(about("report.term", terms=("Here", "Nowhere")), half)
    assert [one.confidence for one in found[1:]] == [0.8, 0.4]


def test_structure_is_headings() -> None:
    headings = [Heading(text=f"Part {number}", page=number, level=1) for number in range(1, 4)]
    one = of("report.structure", report_evidence(about("report.structure"), reading(headings=headings)))
    assert (one.found, one.location) == (True, "page 1")
    assert one.content == "page 1: # Part 1\npage 2: # Part 2\npage 3: # Part 3"
    few = of("report.structure", report_evidence(about("report.structure"), reading(headings=headings[:2])))
    assert not few.found


# --- held against the repository -------------------------------------------------------------------------------------


def crossed(wanted: Dimension, seen: Any, read: Any) -> list[Evidence]:
    return cross_referenced(wanted, report_evidence(wanted, read), seen, read)


def test_paths_exist_or_do_not() -> None:
    found = crossed(about("report.verified"), survey(), reading())
    verified, hallucinated = of("report.verified", found), of("report.hallucinated", found)
    assert (verified.content, verified.location) == ("page 1: src/app.py", "page 1")
    assert (hallucinated.content, hallucinated.location) == ("page 2: src/ghost.py", "page 2")
    assert (hallucinated.found, hallucinated.confidence) == (True, 1.0)


def test_a_part_of_a_path_is_no_path() -> None:
    """A test for substrings would take these for verified."""
    claims = [Claim(path=path, page=1) for path in ("app.p", "rc/app.py", "src", "and/or", "pp.py")]
    found = crossed(about("report.verified"), survey(), reading(claims=claims))
    assert of("report.verified", found).content == "page 1: src", "a folder is there"
    assert "and/or" in (of("report.hallucinated", found).content or "")


def test_where_every_path_exists_there_is_no_flaw() -> None:
    found = crossed(about("report.verified"), survey(), reading(claims=[Claim(path="src/app.py", page=1)]))
    assert "report.hallucinated" not in {goal_id(one.goal) for one in found}


def test_what_is_not_listed_whole_is_not_surely_hallucinated() -> None:
    found = crossed(about("report.verified"), survey(file_count=100_000), reading())
    assert of("report.hallucinated", found).confidence == 0.5


def test_a_path_that_several_files_end_with_is_not_verified() -> None:
    seen = survey(files=["a/app.py", "b/app.py"], file_count=2)
    found = crossed(about("report.verified"), seen, reading(claims=[Claim(path="app.py", page=3)]))
    assert of("report.hallucinated", found).content == "page 3: app.py (the end of several paths)"


def said(goal: str, text: str, about: str = "") -> Finding:
    return Finding(goal=goal, path=about, line=3, text=text)


def looked_up(seen: Any, *statements: Finding, **more: Any) -> dict[str, list[str]]:
    """By goal, the texts of what was found of these statements."""
    found = crossed(about("report.supported"), seen, reading(statements=list(statements), **{"claims": [], **more}))
    texts: dict[str, list[str]] = {}
    for one in found:
        if one.found and goal_id(one.goal) in ("report.supported", "report.contradicted"):
            texts.setdefault(goal_id(one.goal), []).extend((one.content or "").split("\n"))
    return texts


TYPED = said("state.typed", "The state is typed.")
SIDE_BY_SIDE = said("graph.fan_out", "Nodes run in parallel.")


def test_claims_of_features_are_supported_or_contradicted_by_the_code() -> None:
    seen = survey(finding("state.typed"), words="queue state")
    assert looked_up(seen, TYPED, SIDE_BY_SIDE) == {
        "report.supported": ["page 3: The state is typed. [state.typed: state.typed at src/app.py:3]"],
        "report.contradicted": ["page 3: Nodes run in parallel. [graph.fan_out: not found]"],
    }
    found = crossed(about("report.supported"), seen, reading(statements=[TYPED, SIDE_BY_SIDE]))
    assert of("report.supported", found).goal.endswith(": 1 of 2")
    assert of("report.contradicted", found).location == "page 3"


@each(
    "statement, seen, outcome",
    [
        (SIDE_BY_SIDE, survey(words="gather"), "report.supported"),
        (SIDE_BY_SIDE, survey(words="queue", idle_words="gather"), "report.contradicted"),
        (SIDE_BY_SIDE, survey(), ""),
        (SIDE_BY_SIDE, survey(finding("graph.fan_out", reached=False), words="queue"), "report.contradicted"),
        (
            said("state.reducers", "Opinions have reducers."),
            survey(finding("state.reducers"), finding("state.parallel_writes")), "report.contradicted",
        ),
        (
            said("state.reducers", "The state declares a reducer."),
            survey(finding("state.reducers", reached=False), words="queue"), "report.supported",
        ),
        (
            said("tools.no_evaluation", "Nothing is ever evaluated."),
            survey(finding("security.evaluation"), words="queue"), "report.contradicted",
        ),
        (said("tools.no_evaluation", "Nothing is ever evaluated."), survey(words="queue"), "report.supported"),
        (
            said("justice.variance", "The variance sends them back."),
            survey(finding("outcome.unused", text="variance is computed and never used"), words="varianc"),
            "report.contradicted",
        ),
        (
            said("graph.fan_out", "The vision inspector runs in parallel."),
            survey(finding("repo.idle", text="vision_inspector: no edge leads to this node"), words="gather"),
            "report.contradicted",
        ),
        (said("claim.name", "It merges.", "merge_all()"), survey(words="mergeall"), "report.supported"),
        (said("claim.name", "It merges.", "merge_all()"), survey(words="merg all"), "report.contradicted"),
        (said("claim.name", "It merges.", "pool.merge"), survey(words="pool"), "report.contradicted"),
        (said("claim.name", "It merges.", "numpy.merge"), survey(words="pool"), ""),
        (said("claim.name", "It merges.", "merge"), survey(words="pool"), ""),
        (said("claim.name", "Up to a limit.", "DESK_MAX_SUM"), survey(words="desk max sum"), "report.supported"),
        (said("claim.name", "Up to a limit.", "DESK_MAX_SUM"), survey(words="desk max"), "report.contradicted"),
        (said("graph.fan_out", "A robust framework with fan-out."), survey(words="queue"), ""),
        (said("claim.name", "It merges.", "merge"), survey(words="pool", idle_words="merg"), "report.contradicted"),
        (said("claim.product", "Kept in Postgres.", "Postgres"), survey(words="postgressaver"), "report.supported"),
        (said("claim.product", "Kept in Postgres.", "Postgres"), survey(words="sqlit"), "report.contradicted"),
        (said("claim.number", "After 2 minutes.", "2 minutes: 2 120"), survey(words="120"), "report.supported"),
        (said("claim.number", "After 2 minutes.", "2 minutes: 2 120"), survey(words="60"), "report.contradicted"),
        (said("claim.number", "After 2 minutes.", "2 minutes: 2 120"), survey(), ""),
        (said("claim.number", "After 2 minutes.", "2 minutes: 2 120"), survey(words="2"), "report.contradicted"),
        (said("claim.number", "After 2 minutes.", "2 minutes: 2 120"), survey(words="2 minut"), "report.supported"),
        (said("history.commits", "Not of the table."), survey(words="queue"), ""),
        (
            said("claim.told", "The WeatherAgent fetches forecasts."),
            survey(finding("repo.idle", text="weather_agent: always returns the same"), words="weatheragent"),
            "report.contradicted",
        ),
        (
            said("claim.told", "The WeatherAgent is a stub."),
            survey(finding("repo.idle", text="weather_agent: always returns the same"), words="weatheragent"), "",
        ),
        (
            said("claim.told", "Every ballot counts."),
            survey(finding("outcome.unused", text="ballots of the state, and no code reads it"), words="ballot"),
            "report.contradicted",
        ),
        (
            said("claim.told", "Ballots are asked for at once."),
            survey(finding("outcome.unused", text="ballots of the state, and no code reads it"), words="ballot"), "",
        ),
        (
            said("justice.variance", "The variance is computed."),
            survey(finding("outcome.unused", text="variance is computed and never used"), words="varianc spread"),
            "report.supported",
        ),
        (
            said("justice.rules", "A flaw caps the score at 3."),
            survey(finding("justice.rules", reached=False), words="cap"), "report.contradicted",
        ),
        (
            said("project.tests", "The tests cover it."),
            survey(finding("project.tests", confidence=0.5), words="queue"), "report.contradicted",
        ),
    ],
)  # fmt: skip
def test_a_statement_is_looked_up_by_who_knows_its_matter(statement: Finding, seen: Any, outcome: str) -> None:
    assert list(looked_up(seen, statement)) == [outcome][: bool(outcome)]


def test_a_statement_that_names_a_path_which_does_not_exist_is_contradicted() -> None:
    seen = survey(words="gather reportmd")
    for path, outcome in (("src/ghost.py", "report.contradicted"), ("out/report.md", "report.supported")):
        statement = said("graph.fan_out", f"Nodes of {path} run in parallel.")
        assert list(looked_up(seen, statement, claims=[Claim(path=path, page=3)])) == [outcome]


def test_a_folder_into_which_the_program_writes_need_not_be_tracked() -> None:
    written, plain = "The report is written to out/ when it ends.", "Judges are in out/ and run in parallel."
    for text, words, wanted in ((written, "out", False), (written, "queue", True), (plain, "out", True)):
        claims = [Claim(path="out/", page=3)]
        given = reading(claims=claims, statements=[said("graph.fan_out", text)])
        found = crossed(about("report.verified"), survey(words=words), given)
        assert ("report.hallucinated" in {goal_id(one.goal) for one in found}) == wanted


def test_a_claim_is_less_surely_contradicted_where_files_do_not_parse() -> None:
    broken = [Unparsed(path="src/graph.py", line=1, reason="Python 2")]
    some = survey(unparsed=broken, examined={"parsed": 90}, words="queue")
    whole, part = (
        of("report.contradicted", crossed(about("report.supported"), seen, reading(statements=[SIDE_BY_SIDE])))
        for seen in (survey(words="queue"), some)
    )
    assert part.confidence < whole.confidence
    assert looked_up(survey(unparsed=broken, examined={"parsed": 1}, words="queue"), SIDE_BY_SIDE) == {}


def test_what_could_not_be_looked_at_contradicts_nobody() -> None:
    """A graph that is not written down to be read, as a whole or in part."""
    graph = CodeGraph(
        path="g.py", line=1, name="g", builder="StateGraph", state="S", nodes=[], edges=[], parallel_sources=[],
        fan_in_targets=[], compiled=True, unresolved=["3: a name that is computed"],
    )  # fmt: skip
    loose = msgspec.structs.replace(graph, unresolved=[], edges=[GraphEdge(source="a", target="b", line=2)])
    for one in (graph, loose):
        assert looked_up(survey(graphs=[one], words="queue"), SIDE_BY_SIDE) == {}


# --- the report as a whole -------------------------------------------------------------------------------------------


def test_a_report_about_another_project_is_told_from_a_poor_one() -> None:
    ghosts = [Claim(path=f"web/view_{number}.ts", page=1) for number in range(4)]
    foreign = crossed(about("report.verified"), survey(), reading(claims=ghosts, title="Shop"))
    assert "“Shop”" in (of("report.foreign", foreign).content or "")
    poor = crossed(about("report.verified"), survey(), reading(claims=[*ghosts[:2], Claim(path="src/app.py", page=1)]))
    assert "report.foreign" not in {goal_id(one.goal) for one in poor}


def test_statements_that_do_not_hold_make_a_report_foreign_only_under_a_foreign_title() -> None:
    claims = [said("claim.product", f"Kept in {name}.", name) for name in ("Redis", "Kafka", "Mongo", "Neo")]
    for title, foreign in (("Web shop", True), ("The queue", False)):
        read = reading(statements=claims, title=title, claims=[])
        found = crossed(about("report.supported"), survey(words="queu"), read)
        assert ("report.foreign" in {goal_id(one.goal) for one in found}) == foreign


def test_explanations_count_where_they_speak_of_this_code() -> None:
    because = [said("report.explained", f"The queue of tickets is split because {n} waits.") for n in ("a", "b")]
    found = crossed(
        about("report.explained"), survey(words="queu ticket split"),
        reading(statements=[*because, said("report.explained", "It rains because of clouds.")]),
    )  # fmt: skip
    assert [one.goal.rpartition(": ")[2] for one in found if goal_id(one.goal) == "report.explained"] == ["2 of 4"]
    mid = crossed(about("report.explained"), survey(), reading(statements=because, sentences=21))
    assert of("report.explained", mid).goal.endswith(": 2 of 6")
    long = crossed(about("report.explained"), survey(), reading(statements=because, sentences=200))
    assert of("report.explained", long).goal.endswith(": 2 of 14")


def test_only_dimensions_that_ask_for_it_are_cross_referenced() -> None:
    wanted = about("report.structure")
    own = report_evidence(wanted, reading())
    assert cross_referenced(wanted, own, survey(), reading()) == own


def test_cross_referencing_keeps_the_keys_of_what_was_there() -> None:
    wanted = about("report.verified", "report.structure")
    own = report_evidence(wanted, reading())
    assert cross_referenced(wanted, own, survey(), reading())[: len(own)] == own


# --- images ----------------------------------------------------------------------------------------------------------

LOOK = about("images.present", "images.inspected", target="pdf_images")


def test_without_a_vision_model_images_are_not_inspected_and_not_judged() -> None:
    found = picture_evidence(LOOK, pictures(), {}, inspected=False)
    one = of("images.inspected", found)
    assert (one.found, one.confidence, one.rationale) == (False, 0.0, NOT_INSPECTED)
    assert of("images.present", found).found
    assert not judgeable(found, LOOK)


def test_a_report_without_images_is_judged_for_it() -> None:
    found = picture_evidence(LOOK, pictures(0), {}, inspected=False)
    assert [(goal_id(one.goal), one.found, one.confidence) for one in found] == [
        ("images.scope", True, 1.0), ("images.present", False, 1.0),
    ]  # fmt: skip
    assert judgeable(found, LOOK)


def test_what_a_vision_model_says_is_evidence_for_each_image() -> None:
    seen = pictures(2)
    told = {seen.pictures[0].sha256: "A state machine with two fan-outs."}
    found = picture_evidence(LOOK, seen, told, inspected=True)
    looks = [one for one in found if goal_id(one.goal) == "images.inspected"]
    assert [(one.found, one.location, one.confidence) for one in looks] == [
        (True, "page 1", SEEN_SURE), (False, "page 2", 0.0),
    ]  # fmt: skip
    assert looks[0].content == "A state machine with two fan-outs."


def test_a_rubric_that_asks_only_whether_there_are_images_needs_no_look() -> None:
    wanted = about("images.present", target="pdf_images")
    found = picture_evidence(wanted, pictures(), {}, inspected=False)
    assert [goal_id(one.goal) for one in found] == ["images.scope", "images.present"]
    assert judgeable(found, wanted)


def test_images_that_could_not_be_had_are_not_absent() -> None:
    _, present = picture_evidence(LOOK, PictureReading(count=0, pictures=[], missed=2), {}, inspected=True)
    assert (present.found, present.confidence) == (False, 0.0)
    assert present.rationale.endswith(": 0; 2 more, or pages that may hold some, could not be looked at")


def test_a_rubric_of_which_goals_follow_always_needs_a_look() -> None:
    wanted = about(target="pdf_images", success_pattern="An image.", failure_pattern="None.")
    assert not judgeable(picture_evidence(wanted, pictures(), {}, inspected=False), wanted)


# --- bounds ----------------------------------------------------------------------------------------------------------


@each("text", [text[:4_000] for text in CORPUS.values()])
def test_whatever_stands_in_the_report_the_log_takes_the_evidence(text: str) -> None:
    terms = tuple(f"{number}{text[:80]}" for number in range(80))
    read = reading(
        title=text, notes=[text] * 20, headings=[Heading(text=text, page=1, level=1)] * 50,
        claims=[Claim(path=text, page=1)], statements=[Finding(goal="state.typed", path="", line=1, text=text[:2_000])],
        excerpts=[excerpt(term, 1) for term in terms],
    )  # fmt: skip
    wanted = about("report.structure", "report.verified", "report.term", terms=terms)
    shown = Picture(
        page=1, kind="drawing", width=9, height=9, sha256="a" * 64, media_type="image/png", shapes=3, words=[text] * 99
    )
    seen = PictureReading(count=90, pictures=[shown] * 90, notes=[text])
    for found in (
        crossed(wanted, survey(), read), picture_evidence(LOOK, seen, {"a" * 64: text}, inspected=True),
    ):  # fmt: skip
        assert EVIDENCE_MAX - CROSSED < len(found) <= EVIDENCE_MAX
        event = AuditEvidenceFound(audit_id=AUDIT, dimension_id="one", evidences=[as_item(one) for one in found])
        assert msgspec.json.decode(msgspec.json.encode(event), type=AuditEvidenceFound) == event
        for one in found:
            for part in (one.goal, one.content or "", one.location, one.rationale):
                assert clean(part, 10_000) == part, "nothing is hidden in it"
