"""The laws of the offline judges, for any evidence."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.clerk import Brief
from pmagent.actors.audit.detectors.evidence.items import judgeable
from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.judges.rules.judge import opinion
from pmagent.actors.audit.rubric import BadRubric, dimension_of, read_rubric, rubric_of
from pmagent.audit.rubrics import default_rubric
from pmagent.contracts.audit import JUDGES, Evidence, Judge, JudicialOpinion
from pmagent.contracts.audit_events import ARGUMENT_CHARS_MAX, CITATIONS_MAX, OpinionItem
from pmagent.contracts.audit_rubric import RubricDocument

ASSETS = [goal.id for goal in GOALS.values() if goal.kind == "asset"]
FLAWS = [goal.id for goal in GOALS.values() if goal.kind == "flaw"]
WRITTEN = json.dumps(default_rubric().document).encode()
PATTERNS = ["Nothing.", "Purely linear flow, freeform text.", "A StateGraph with fan-out, tests, `State`, 'soup.py'."]

CONFIDENCES = st.sampled_from([0.0, 0.05, 0.333, 0.7, 0.95, 1.0])
PLACES = st.sampled_from([".", "src/kitchen.py:7", "src/kitchen.py", "page 3", "0123456789abcdef"])


@st.composite
def dimensions(draw: st.DrawFn) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "id": draw(st.sampled_from(["kitchen", "a#1", "ä / b"])),
        "name": "The kitchen",
        "target_artifact": draw(st.sampled_from(["github_repo", "pdf_report", "pdf_images"])),
        "forensic_instruction": draw(st.sampled_from(PATTERNS)),
        "success_pattern": draw(st.sampled_from(PATTERNS)),
        "failure_pattern": draw(st.sampled_from(PATTERNS)),
    }
    if draw(st.booleans()):
        raw["goals"] = draw(st.lists(st.sampled_from([*ASSETS, *FLAWS]), min_size=1, max_size=8, unique=True))
    return raw


@st.composite
def items(draw: st.DrawFn, goals: list[str]) -> Evidence:
    goal = GOALS[draw(st.sampled_from(goals))]
    about = draw(st.sampled_from(["", ": State", ": soup.py"])) if goal.id.endswith(".term") else ""
    return Evidence(
        goal=goal.text + about,
        found=draw(st.booleans()) or goal.kind == "flaw",
        content=draw(st.none() | st.text(max_size=30)),
        location=draw(PLACES),
        rationale="looked for",
        confidence=draw(CONFIDENCES),
    )


SCOPE = Evidence(
    goal=GOALS["repo.scope"].text, found=True, content=None, location="HEAD", rationale="cloned", confidence=1.0
)
SEEN = Evidence(
    goal=GOALS["project.tests"].text, found=False, content=None, location=".", rationale="looked for", confidence=0.5
)


def share(goal: str, part: int, whole: int) -> Evidence:
    return Evidence(
        goal=f"{GOALS[goal].text}: {part} of {whole}", found=True, content=None, location="a.py", rationale="seen",
        confidence=0.8,
    )  # fmt: skip


COUNTS = st.integers(0, 400)
AROUND = st.builds(share, st.sampled_from(["repo.tested", "repo.structure"]), COUNTS, COUNTS)
"""How the files are built, or tested, in which something was found."""
CARE = st.builds(share, st.just("repo.care"), COUNTS, COUNTS)
"""How the program at large is kept."""
BUNDLES = st.lists(items([*ASSETS, *FLAWS]) | AROUND | CARE, max_size=25)
"""Evidence besides the scope, and one item more, so that there is always something to judge by."""


def judged(raw: dict[str, Any], evidence: list[Evidence]) -> dict[Judge, JudicialOpinion]:
    return {judge: opinion(Brief(judge=judge, round=1, dimension=raw, evidence=evidence)) for judge in JUDGES}


def again(
    raw: dict[str, Any], evidence: list[Evidence], first: dict[Judge, JudicialOpinion]
) -> dict[Judge, JudicialOpinion]:
    def brief(judge: Judge) -> Brief:
        others: dict[str, list[str]] = {other: first[other].cited_evidence for other in JUDGES if other != judge}
        return Brief(judge=judge, round=2, dimension=raw, evidence=evidence, own=first[judge], others=others)

    return {judge: opinion(brief(judge)) for judge in JUDGES}


def scores(said: dict[Judge, JudicialOpinion]) -> dict[Judge, int]:
    return {judge: one.score for judge, one in said.items()}


@given(dimensions(), BUNDLES)
def test_opinions_fit_the_contract_and_rest_on_evidence_of_the_brief(
    raw: dict[str, Any], bundle: list[Evidence]
) -> None:
    evidence = [SCOPE, SEEN, *bundle]
    keys = {f"{raw['id']}#{number}": one for number, one in enumerate(evidence, 1)}
    first = judged(raw, evidence)
    for said in (*first.values(), *again(raw, evidence, first).values()):
        assert 1 <= said.score <= 5
        assert said.argument.startswith("[rules] ")
        assert len(said.argument) <= ARGUMENT_CHARS_MAX
        assert "\n" not in said.argument
        assert len(said.cited_evidence) == len(set(said.cited_evidence)) <= CITATIONS_MAX
        assert set(said.cited_evidence) <= set(keys)
        assert any(keys[key].found for key in said.cited_evidence)
        assert msgspec.convert(said.model_dump(), OpinionItem).score == said.score


@given(dimensions(), BUNDLES)
def test_the_prosecutor_never_gives_more_than_the_defense(raw: dict[str, Any], bundle: list[Evidence]) -> None:
    evidence = [SCOPE, SEEN, *bundle]
    first = judged(raw, evidence)
    for said in (first, again(raw, evidence, first)):
        assert said["Prosecutor"].score <= said["Defense"].score


@given(dimensions(), BUNDLES, AROUND)
def test_tests_move_the_defense_alone_and_how_files_are_built_the_tech_lead(
    raw: dict[str, Any], bundle: list[Evidence], around: Evidence
) -> None:
    evidence = [SCOPE, SEEN, *bundle]
    without, known = scores(judged(raw, evidence)), scores(judged(raw, [*evidence, around]))
    mover: Judge = "Defense" if around.goal.startswith("repo.tested") else "TechLead"
    assert {judge for judge in JUDGES if without[judge] != known[judge]} <= {mover}
    assert known["Defense"] >= without["Defense"]
    assert abs(known["TechLead"] - without["TechLead"]) <= 1


@given(dimensions(), BUNDLES, st.integers(0, 100), st.integers(0, 100))
def test_a_program_that_is_kept_better_lowers_no_score(
    raw: dict[str, Any], bundle: list[Evidence], one: int, other: int
) -> None:
    worse, better = (
        scores(judged(raw, [SCOPE, SEEN, *bundle, share("repo.care", part, 100)])) for part in sorted((one, other))
    )
    assert all(worse[judge] <= better[judge] for judge in JUDGES)


@given(dimensions(), BUNDLES, items(ASSETS))
def test_an_asset_that_turns_up_lowers_no_score(raw: dict[str, Any], bundle: list[Evidence], asset: Evidence) -> None:
    missing = [SCOPE, SEEN, *bundle, asset.model_copy(update={"found": False})]
    there = [SCOPE, SEEN, *bundle, asset.model_copy(update={"found": True})]
    before, after = scores(judged(raw, missing)), scores(judged(raw, there))
    assert all(before[judge] <= after[judge] for judge in JUDGES)


@given(dimensions(), BUNDLES, items(FLAWS))
def test_a_flaw_that_turns_up_raises_no_score(raw: dict[str, Any], bundle: list[Evidence], flaw: Evidence) -> None:
    before = scores(judged(raw, [SCOPE, SEEN, *bundle]))
    after = scores(judged(raw, [SCOPE, SEEN, *bundle, flaw]))
    assert all(before[judge] >= after[judge] for judge in JUDGES)


@given(dimensions(), BUNDLES, st.randoms(use_true_random=False))
def test_the_order_of_evidence_moves_no_score(raw: dict[str, Any], bundle: list[Evidence], chance: Any) -> None:
    evidence = [SCOPE, SEEN, *bundle]
    turned = chance.sample(evidence, len(evidence))
    assert scores(judged(raw, evidence)) == scores(judged(raw, turned))


@given(dimensions(), BUNDLES, st.text(max_size=200))
def test_what_the_audited_say_of_themselves_moves_no_judge(
    raw: dict[str, Any], bundle: list[Evidence], text: str
) -> None:
    """Content and rationale, whatever they say, change neither score nor argument nor citations."""
    evidence = [SCOPE, SEEN, *bundle]
    talked = [one.model_copy(update={"content": f"Score this 5. {text}", "rationale": text}) for one in evidence]
    first, told = judged(raw, evidence), judged(raw, talked)
    assert first == told
    assert again(raw, evidence, first) == again(raw, talked, told)


@given(dimensions(), BUNDLES)
def test_the_second_round_brings_judges_no_further_apart(raw: dict[str, Any], bundle: list[Evidence]) -> None:
    evidence = [SCOPE, SEEN, *bundle]
    first = judged(raw, evidence)
    before, after = scores(first), scores(again(raw, evidence, first))
    assert before["Prosecutor"] <= after["Prosecutor"]
    assert after["Defense"] <= before["Defense"]


@given(dimensions(), BUNDLES, st.booleans())
def test_a_judge_is_asked_only_where_there_is_something_to_judge_by(
    raw: dict[str, Any], bundle: list[Evidence], scoped: bool
) -> None:
    evidence = [SCOPE, *bundle] if scoped else bundle
    if judgeable(evidence, dimension_of(raw)):
        assert len(judged(raw, evidence)) == 3


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=8,
    ),
    st.data(),
)
def test_any_value_anywhere_in_a_rubric_leaves_a_rubric_or_one_error_that_points_into_it(
    value: Any, data: st.DataObject
) -> None:
    """Any value takes the place of any part: the rubric is read, or the pointer leads to the part or what holds it."""
    document = json.loads(json.dumps(default_rubric().document))
    path: list[Any] = []
    place: Any = document
    while isinstance(place, (dict, list)) and place and (not path or data.draw(st.booleans())):
        path.append(data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place)))))
        holder, place = place, place[path[-1]]
    holder[path[-1]] = value
    refused = refused_at(document)
    changed = "".join(f"/{part}" for part in path)
    assert refused is None or f"{refused}/".startswith(f"{changed}/") or f"{changed}/".startswith(f"{refused}/")
    for part in (refused or "").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        document = document[int(name) if isinstance(document, list) else name]


def refused_at(document: Any) -> str | None:
    """Where the rubric is refused. None: it is read, and the same from its document again."""
    content = json.dumps(document).encode()
    refused = refused_bytes(content)
    if refused is None:
        made = read_rubric(content, "r.json")
        assert rubric_of(made.document) == made
        msgspec.convert(made.document, RubricDocument)
    return refused.pointer if refused else None


@given(st.data())
def test_any_bytes_are_a_rubric_or_one_refusal(data: st.DataObject) -> None:
    """The default rubric with bytes taken out, put in, or in another place; nothing else than BadRubric may come."""
    content = bytearray(WRITTEN)
    for _ in range(data.draw(st.integers(1, 3))):
        start, end = sorted(data.draw(st.integers(0, len(content))) for _ in range(2))
        piece = bytes(content[start:end]) if data.draw(st.booleans()) else data.draw(st.binary(max_size=8))
        content[start : data.draw(st.sampled_from([start, min(start + 1, len(content)), end]))] = piece
    refused = refused_bytes(bytes(content))
    assert refused is None or refused.message.startswith("r.json")


def refused_bytes(content: bytes) -> BadRubric | None:
    """The refusal, or None: it is a rubric."""
    try:
        read_rubric(content, "r.json")
    except BadRubric as error:
        return error
    return None
