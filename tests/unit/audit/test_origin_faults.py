"""Audits that went wrong, each made again: what was concluded then is not concluded here.

Each test holds the whole way, as far as it can be walked without a machine's help: code is parsed and surveyed,
evidence made of it, opinions ruled on, events written.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pmagent.actors.audit import nodes
from pmagent.actors.audit.clerk import Brief
from pmagent.actors.audit.cross_reference import cross_reference
from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.survey import survey_code
from pmagent.actors.audit.detectors.evidence.pictures import picture_evidence
from pmagent.actors.audit.detectors.evidence.repo import repo_evidence
from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.graph import compile_audit_graph
from pmagent.actors.audit.judges.rules.judge import opinion
from pmagent.actors.audit.rubric import BadRubric, Dimension, read_rubric, rubric_of
from pmagent.actors.audit.sources.pdf.doc_tools import extract_images_from_pdf
from pmagent.actors.audit.sources.pdf.layout import Paragraph
from pmagent.actors.audit.sources.pdf.paths import named
from pmagent.actors.audit.sources.pdf.reading import read_pdf
from pmagent.actors.audit.sources.repository.address import address
from pmagent.actors.audit.sources.repository.survey import survey_repository
from pmagent.audit.rubrics import default_rubric
from pmagent.contracts.audit import JUDGES, AuditReport, Evidence, JudicialOpinion
from pmagent.contracts.audit_events import (
    AuditConcluded,
    AuditCriterionRuled,
    AuditFailed,
    AuditLimits,
    AuditOpinionGiven,
    AuditSourceFailed,
    Question,
)
from pmagent.contracts.audit_facts import PdfReading, Picture, PictureReading, RepoSurvey
from pmagent.projections.audits.report import report_markdown
from tests.support.audit_documents import DOCUMENT, JOB, REPORT, folded, shown
from tests.support.audits import RULES, Court, dimension, pictures, reading, rubric, said, survey
from tests.support.cases import each
from tests.support.graphs import graphs_of, reader_of
from tests.support.pdfs import plain_pages
from tests.support.repositories import Made
from tests.support.verdicts import bench, case, item, judged, rules, ruling, scoped
from tests.support.verdicts import said as gives

SAFE = '''
import subprocess, tempfile

def clone(url):
    """Clones into a sandbox: no os.system with user input, nothing unsanitized, no shell=True."""
    # os.system(f"git clone {url}") would be a security flaw
    folder = tempfile.mkdtemp()
    subprocess.run(["git", "clone", "--", url, folder], check=True, timeout=60)
    return folder
'''
UNSAFE = "import os\n\ndef clone(url):\n    os.system('git clone ' + url)\n"
TOOLS = ["tools.temporary_clone", "tools.no_unsafe_calls", "security.os_system", "security.shell"]


def surveyed(files: Mapping[str, str]) -> RepoSurvey:
    """The survey of these files."""
    sources = [parsed(path, files[path].encode()) for path in sorted(files) if path.endswith(".py")]
    seen = survey()
    facts = survey_code(sources, sorted(files), lambda path: files[path].encode(), seen.history)
    found = {name: getattr(facts, name) for name in facts.__struct_fields__}
    return survey(files=sorted(files), file_count=len(files), **found)


def about(*goals: str, **more: Any) -> Dimension:
    """A dimension with these goals."""
    return rubric_of(rubric(dimension("one", goals=list(goals), **more))).dimensions[0]


class Clerk:
    """Answers with what the test's sources are; the rules judge."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def rubric(self, _: str) -> dict[str, Any]:
        return self.document

    def survey(self, _: str, __: Sequence[Question]) -> RepoSurvey:
        return survey()

    def reading(self, _: str, __: Sequence[Question]) -> PdfReading:
        return reading()

    def pictures(self, _: str) -> PictureReading:
        return pictures()

    def seen(self, _: Picture, __: str) -> str:
        return "two boxes, side by side"

    def opinion(self, brief: Brief) -> JudicialOpinion:
        return opinion(brief)

    def prepare(self, _: str, __: str) -> None:
        pass

    def deliver(self, _: AuditReport, __: str, ___: str) -> None:
        pass


# --- words taken for facts -------------------------------------------------------------------------------------------


@each("code, score", [(SAFE, 5), (UNSAFE, 3)])
def test_three_fives_stay_a_five_where_a_flaw_is_only_spoken_of(code: str, score: int) -> None:
    """Once a sentence that said there was no such call was searched for the call's name: 5, 5, 5, and a final 3."""
    evidence = repo_evidence(about(*TOOLS), surveyed({"src/tools.py": code}))
    report = judged(case(), {"one": evidence}, bench(5, 5, 5))
    assert report.criteria[0].final_score == score


def test_nothing_is_found_in_code_that_has_nothing_whatever_the_rubric_says() -> None:
    """Once whatever could be cloned had sandboxed tools and structured output, in the words of the rubric."""
    every = tuple(goal for one in default_rubric().dimensions for goal in one.goals)
    code = [
        goal for goal in every if goal.partition(".")[0] in ("state", "graph", "tools", "output", "judges", "justice")
    ]
    promising = dict.fromkeys(("forensic_instruction", "success_pattern"), "git state graph sandbox structured output")
    empty = repo_evidence(about(*code, **promising), surveyed({"main.py": "print('hello')\n"}))
    assert {goal_id(one.goal) for one in empty if one.found} == {"repo.scope", "repo.flaws"}
    full = repo_evidence(about(*TOOLS), surveyed({"src/tools.py": SAFE}))
    assert {
        one.location.partition(":")[0] for one in full if one.found and GOALS[goal_id(one.goal)].kind == "asset"
    } == {"src/tools.py"}, "and what is found lies in the audited repository"


def test_what_would_be_good_is_no_part_of_the_evidence() -> None:
    """Once the rubric's success pattern stood as the rationale, and judges quoted it as a fact."""
    pattern = "exemplary sandboxing by a master thinker"
    wanted = about(*TOOLS, success_pattern=pattern, failure_pattern=f"no {pattern}", forensic_instruction=pattern)
    found = repo_evidence(wanted, surveyed({"src/tools.py": SAFE}))
    assert found == repo_evidence(about(*TOOLS), surveyed({"src/tools.py": SAFE}))
    assert pattern not in "".join(one.model_dump_json() for one in found)


# --- detectives ------------------------------------------------------------------------------------------------------


def test_parts_of_the_evidence_are_one_detectives_each_and_none_is_lost_or_changed() -> None:
    """Reducers that replace equal keys are safe only where no two detectives have one, and what was given stays."""
    document = rubric()
    wanted = {one["id"]: one["target_artifact"] for one in document["dimensions"]}
    state: Any = {
        "repo_url": "https://example.org/x", "pdf_path": "/r.pdf", "rubric": document, "evidences": {}, "opinions": [],
    }  # fmt: skip
    before = copy.deepcopy(state)
    config: Any = {"configurable": {"clerk": Clerk(document)}}
    brought = [
        node(state, config)["evidences"]
        for node in (nodes.repo_investigator_node, nodes.doc_analyst_node, nodes.vision_inspector_node)
    ]
    owners = [(name, target) for part in brought for name in part for target in [wanted[name]]]
    assert sorted(owners) == sorted(wanted.items())
    assert sum(len(part) for part in brought) == len(wanted)
    given: dict[str, list[Evidence]] = {}
    whole: Any = {**state, "evidences": given}
    after = compile_audit_graph(Clerk(document)).invoke(whole)
    assert set(after["evidences"]) == set(wanted)
    assert (given, state) == ({}, before)


@each("target", ["manual", "repo", "docs", "all", ""])
def test_an_artifact_that_nobody_looks_at_is_refused_and_not_judged_badly(target: str) -> None:
    """Once it was given a placeholder for evidence, and a 1 for that."""
    with pytest.raises(BadRubric, match="/dimensions/0/target_artifact"):
        read_rubric(json.dumps(rubric(dimension("one", target))).encode(), "mine.json")


def test_a_part_of_a_path_verifies_nothing_and_a_slash_makes_no_path() -> None:
    """Once ``rc/app`` was verified by ``src/app.py``, and "and/or" was a path."""
    claimed = list(named(Paragraph("We use fan-in and/or fan-out (I/O) in src/app.py and rc/app.py.", 1, 0, (), "")))
    assert claimed == ["src/app.py", "rc/app.py"]
    held = cross_reference([*claimed, "app.p", "p.py"], {"files": ["src/app.py", "README.md"]})
    assert (held["verified"], held["hallucinated"]) == (["src/app.py"], ["rc/app.py", "app.p", "p.py"])


def test_a_long_history_is_not_taken_for_one_commit_and_no_clone_is_left(tmp_path: Path) -> None:
    """Once only the last commit was fetched, and called monolithic; and the clone stayed where it was."""
    made = Made(tmp_path / "source")
    for number in range(5):
        made.commit(f"Add the part number {number}", {f"part{number}.py": "x = 1\n"})
    with TemporaryDirectory(dir=tmp_path) as folder:
        seen = survey_repository(made.path.as_uri(), AuditLimits(), folder)
    assert (seen.history.total, "history.commits" in seen.counts) == (5, True)
    told = {goal_id(one.goal): one.found for one in repo_evidence(about("history.commits"), seen)}
    assert told["history.commits"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"], "what was cloned can be removed, and is"


def test_what_is_recorded_of_a_report_is_not_its_text(tmp_path: Path) -> None:
    """Once all segments were joined again, and handed on as a whole."""
    pages = [f"Page {number} tells of the part number {number * 7919}.\n" * 20 for number in range(60)]
    path = plain_pages(tmp_path / "report.pdf", pages)
    asked = Question(dimension_id="one", instruction="Which part is told of?", terms=["part number 7919"])
    read = read_pdf(path, [asked], AuditLimits())
    kept = [one.text for one in read.excerpts] + [one.text for one in read.statements]
    assert 0 < sum(map(len, kept)) < read.characters / 2
    assert any("7919" in one.text for one in read.excerpts)


def test_images_that_cannot_be_had_are_not_no_images() -> None:
    """Once a missing file, a missing library and a report of drawings all had "no images"."""
    with pytest.raises(FileNotFoundError):
        extract_images_from_pdf("/nowhere/report.pdf")
    wanted = rubric_of(rubric(dimension("one", "pdf_images", goals=["images.present", "images.inspected"])))
    unseen = picture_evidence(wanted.dimensions[0], pictures(), {}, inspected=False)
    told = {goal_id(one.goal): (one.found, one.confidence) for one in unseen}
    assert told["images.present"] == (True, 1.0)
    assert told["images.inspected"] == (False, 0.0)


@each(
    "given", ["--upload-pack=touch /tmp/x", "ext::sh -c id", "ftp://x/y", "http://example.org/x", "https://me:pw@x/y"]
)
def test_an_address_is_looked_at_before_git_gets_it(given: str) -> None:
    """Once anything went to git, also options."""
    with pytest.raises(SourceFailed) as refused:
        address(given)
    assert refused.value.code == "bad_url"


def test_a_graph_is_read_with_its_start_its_reducers_elsewhere_and_no_parallelism_of_choices() -> None:
    """Once the first fan-out was not seen (START is a name), reducers only in the graph's own file, and any
    conditional edge was parallelism."""
    state = "import operator\nfrom typing import Annotated, TypedDict\n\nclass S(TypedDict):\n"
    state += "    found: Annotated[list, operator.add]\n"
    graph = """
        from langgraph.graph import END, START, StateGraph
        from state import S
        b = StateGraph(S)
        for name in ("left", "right", "join"):
            b.add_node(name, str)
        b.add_edge(START, "left")
        b.add_edge(START, "right")
        b.add_edge(["left", "right"], "join")
    """
    (found,) = reader_of({"graph.py": graph, "state.py": state}).graphs()
    assert (found.parallel_sources, found.fan_in_targets) == (["__start__"], ["join"])
    reducers = [
        one for one in surveyed({"graph.py": graph, "state.py": state}).findings if one.goal == "state.reducers"
    ]
    assert [one.path for one in reducers] == ["state.py"]
    (choosing,) = graphs_of(
        one="""
from langgraph.graph import END, START, StateGraph
b = StateGraph(dict)
b.add_node("a", str)
b.add_node("c", str)
b.add_edge(START, "a")
b.add_conditional_edges("a", lambda state: "go", {"go": "c", "stop": END})
"""
    )
    assert choosing.parallel_sources == []


# --- judges ----------------------------------------------------------------------------------------------------------


def test_a_judge_that_fails_is_no_three() -> None:
    """Once a neutral opinion stood in for the one that did not come."""
    court = Court()
    court.model = lambda event, asked: (
        said(event, asked, text="Three, I think.")
        if asked.inputs["question"].startswith("Defense")
        else said(event, asked)
    )
    court.ask(rubric(dimension("state")), engine="langchain", model="toy")
    over = court.audit()
    assert isinstance(over, AuditFailed)
    assert (over.code, court.of(AuditConcluded), court.of(AuditCriterionRuled)) == ("judge", [], [])
    assert {one.opinion.judge for one in court.of(AuditOpinionGiven)} <= {"Prosecutor", "TechLead"}


@each("code", ["not_found", "auth", "network", "too_large", "timed_out", "git"])
def test_an_audit_without_its_repository_is_no_verdict_of_one(code: Any) -> None:
    """Once every criterion was given a 1, and the report was written."""
    court = Court()
    court.clone = lambda event: AuditSourceFailed(request=event.position, code=code, text="no", mend="look")
    court.ask()
    assert isinstance(court.audit(), AuditFailed)
    left = shown(folded(court.history))
    assert set(left) == {JOB}
    assert json.loads(left[JOB])["status"] == "failed"
    assert not {REPORT, DOCUMENT} & set(left)


# --- the chief justice -----------------------------------------------------------------------------------------------


def test_facts_stay_above_opinions_when_judges_are_far_apart() -> None:
    """Once a wide spread put the Tech Lead's score in the place of what the facts had decided."""
    lead = gives("TechLead", 5, cited=["one#9"])
    result = ruling([gives("Prosecutor", 1), gives("Defense", 2), lead])
    assert (result.set_aside, result.final_score) == (["TechLead"], 2)
    assert result.dissent_summary is not None


def test_the_rubrics_rules_and_numbers_are_what_is_applied() -> None:
    """Once the rules were handed over, and never read: whatever they said, the score was the same."""
    flawed = {"one": scoped(item("security.shell"))}
    total = {**RULES, "security_override": "A confirmed flaw caps the total score at 3."}
    plain, capped = (
        judged(rubric_of(rubric(dimension("one"), dimension("two"), synthesis_rules=texts)),
               {**flawed, "two": scoped()}, [*bench(5, 5, 5), *bench(5, 5, 5, "two")])
        for texts in (RULES, total)
    )  # fmt: skip
    assert (plain.overall_score, capped.overall_score) == (4.0, 3.0)
    for cap in (2, 4):
        assert judged(case(security_cap=cap), flawed, bench(5, 5, 5)).criteria[0].final_score == cap


def test_a_name_makes_no_architecture() -> None:
    """Once "graph" or "architecture" in a criterion's name gave it to the Tech Lead alone."""
    named_so = rubric(dimension("one", name="Graph and architecture of the documents"))
    result = ruling(bench(2, 2, 4), rubric=rubric_of(named_so))
    assert (result.final_score, "functionality_weight" in rules(result)) == (2, False)
    assert ruling(bench(2, 2, 4), rubric=case(architecture=["one"])).final_score == 3


def test_half_a_point_goes_up() -> None:
    """Once 2.5 was 2, because it is even."""
    aside = gives("Prosecutor", 1, cited=[])
    assert ruling([aside, gives("Defense", 3), gives("TechLead", 2)]).final_score == 3


def test_the_report_prints_what_each_opinion_cites_in_the_order_of_the_personas() -> None:
    """Once citations were left out, and opinions stood as the threads had ended."""
    report = judged(case(), {"one": scoped()}, list(reversed(bench(2, 3, 4))))
    told = report_markdown(report)
    places = [told.index(f"**{name}:") for name in ("Prosecutor", "Defense", "Tech Lead")]
    assert places == sorted(places)
    assert told.count("Cites: `one#1`") == len(JUDGES)


# --- settings --------------------------------------------------------------------------------------------------------


def test_every_key_that_is_offered_is_one_that_is_used() -> None:
    """Once three providers were offered, of which one worked."""
    from pmagent.actors.model.models import PROVIDERS

    used = {name for provider in PROVIDERS.values() for name in provider.keys}
    example = Path(__file__).parents[3].joinpath(".env.example").read_text()
    offered = {line.strip("#= ") for line in example.splitlines() if line.endswith("_API_KEY=")}
    assert offered - {"LANGCHAIN_API_KEY"} == used
