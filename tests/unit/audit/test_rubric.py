"""Rubrics are read as the ruling says, and refused with the file, the JSON pointer and the rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pmagent.actors.audit.rubric import BadRubric, logic_for, questions, read_rubric, rubric_of
from pmagent.contracts.audit import JUDGES
from pmagent.contracts.audit_events import DIMENSIONS_MAX, RUBRIC_BYTES_MAX
from tests.support.cases import each

GIVEN = Path(__file__).resolve().parents[4] / "shared" / "data" / "auditor"
RULES = (
    "security_override", "fact_supremacy", "functionality_weight", "dissent_requirement", "variance_re_evaluation",
)  # fmt: skip


def dimension(of: str = "kitchen", **changes: Any) -> dict[str, Any]:
    made = {
        "id": of,
        "name": f"The {of}",
        "target_artifact": "github_repo",
        "forensic_instruction": "Look into `soup.py`.",
        "success_pattern": "There is a StateGraph.",
        "failure_pattern": "There is nothing.",
    }
    return {key: value for key, value in (made | changes).items() if value is not None}


def document(*dimensions: Any, **changes: Any) -> dict[str, Any]:
    made = {
        "rubric_metadata": {"rubric_name": "Kitchens", "grading_target": "a kitchen", "version": "2.1"},
        "dimensions": list(dimensions) or [dimension()],
        "synthesis_rules": {name: f"what {name} says" for name in RULES},
    }
    return {key: value for key, value in (made | changes).items() if value is not None}


def refusal(value: Any) -> BadRubric:
    with pytest.raises(BadRubric) as caught:
        read_rubric(value if isinstance(value, bytes) else json.dumps(value).encode(), "kitchen.json")
    assert caught.value.exit_code == 2
    return caught.value


# --- what is read --------------------------------------------------------------------------------------------------


def test_a_rubric_is_read_whole_and_its_further_keys_are_kept() -> None:
    given = document(dimension(levels=[{"points": 3}], note="kept"), audience="cooks")
    rubric = read_rubric(json.dumps(given).encode(), "kitchen.json")
    assert (rubric.name, rubric.version, rubric.target) == ("Kitchens", "2.1", "a kitchen")
    assert rubric.document == given
    assert rubric.dimensions[0].raw == given["dimensions"][0]
    assert rubric.rules == given["synthesis_rules"]
    assert rubric_of(given) == rubric


def test_a_rubric_may_say_nothing_of_itself_and_begin_with_a_byte_order_mark() -> None:
    content = b"\xef\xbb\xbf" + json.dumps(document(rubric_metadata={"version": 3})).encode()
    rubric = read_rubric(content, "kitchen.json")
    assert (rubric.name, rubric.version, rubric.target) == ("", "3", "")


def test_the_numbers_of_synthesis_are_the_rubrics_or_the_rulings() -> None:
    plain = rubric_of(document()).parameters
    assert (plain.security_cap, plain.spread, plain.tech_lead_weight, plain.total_cap) == (3, 2, 2, False)
    own = rubric_of(document(synthesis_parameters={"security_cap": 2, "spread": 1})).parameters
    assert (own.security_cap, own.spread, own.tech_lead_weight) == (2, 1, 2)
    whole = rubric_of(document(synthesis_parameters={"tech_lead_weight": 4.0})).parameters.tech_lead_weight
    assert (whole, type(whole)) == (4, int)


@each(
    "text, capped",
    [
        ("Flaws cap the total score at 3.", True),
        ("Flaws cap the Overall score.", True),
        ("Flaws cap the score, whatever totally different things say.", False),
        ("Flaws cap the criterion.", False),
    ],
)
def test_security_caps_the_total_where_the_rubric_says_so(text: str, capped: bool) -> None:
    rules = dict.fromkeys(RULES, "words") | {"security_override": text}
    assert rubric_of(document(synthesis_rules=rules)).parameters.total_cap is capped
    told = rubric_of(document(synthesis_rules=rules, synthesis_parameters={"total_cap": not capped}))
    assert told.parameters.total_cap is not capped


def test_architecture_is_the_criterion_of_that_id_or_what_the_rubric_flags() -> None:
    rubric = rubric_of(
        document(
            dimension("graph_orchestration"), dimension("other"), dimension("flagged", architecture=True),
        )
    )  # fmt: skip
    assert [one.architecture for one in rubric.dimensions] == [True, False, True]
    assert not rubric_of(document(dimension("graph_orchestration", architecture=False))).dimensions[0].architecture


def test_judicial_logic_goes_to_all_judges_or_to_the_one_it_names() -> None:
    for_all = rubric_of(document(dimension(judicial_logic="Taste it."))).dimensions[0]
    assert [logic_for(for_all, judge) for judge in JUDGES] == ["Taste it."] * 3
    logic = {"prosecutor": "Find the hair.", "TechLead": "Ask for the recipe.", "waiter": "Wait."}
    by_persona = rubric_of(document(dimension(judicial_logic=logic))).dimensions[0]
    assert [logic_for(by_persona, judge) for judge in JUDGES] == ["Find the hair.", "", "Ask for the recipe."]
    assert [logic_for(rubric_of(document()).dimensions[0], judge) for judge in JUDGES] == [""] * 3


@each("name", ["tech_lead", "TechLead", "Tech Lead", "tech-lead", "TECH_LEAD"])
def test_a_persona_is_known_however_it_is_written(name: str) -> None:
    one = rubric_of(document(dimension(judicial_logic={name: "Ask."}))).dimensions[0]
    assert logic_for(one, "TechLead") == "Ask."


def test_detectives_are_asked_about_the_dimensions_of_their_artifact_only() -> None:
    rubric = rubric_of(document(dimension("a"), dimension("b", target_artifact="pdf_report"), dimension("c")))
    assert [one.dimension_id for one in questions(rubric, "github_repo")] == ["a", "c"]
    asked = questions(rubric, "github_repo")[0]
    assert (asked.instruction, asked.terms) == ("Look into `soup.py`.", ["soup.py"])
    assert questions(rubric, "pdf_images") == []


# --- what is refused -----------------------------------------------------------------------------------------------


@each("key", ["rubric_metadata", "dimensions", "synthesis_rules"])
def test_a_missing_part_is_named(key: str) -> None:
    error = refusal(document(**{key: None}) if key != "dimensions" else {**document(), "dimensions": None})
    if key != "dimensions":
        assert (error.pointer, error.rule) == ("", "missing key")
        assert error.message == f"kitchen.json: {key} is missing"
    else:
        assert (error.pointer, error.message) == ("/dimensions", "kitchen.json: /dimensions: it is nothing (null)")


@each(
    "key", ["id", "name", "target_artifact", "forensic_instruction", "success_pattern", "failure_pattern"]
)
def test_a_missing_key_of_a_dimension_is_named_with_its_place(key: str) -> None:
    error = refusal(document(dimension("a"), dimension("b", **{key: None})))
    assert (error.pointer, error.rule) == ("/dimensions/1", "missing key")
    assert error.message == f"kitchen.json: /dimensions/1: {key} is missing"
    assert error.hint.startswith(f"add {key}: ")


@each("name", RULES)
def test_no_rule_of_synthesis_may_be_missing(name: str) -> None:
    rules = {one: "words" for one in RULES if one != name}
    error = refusal(document(synthesis_rules=rules))
    assert (error.pointer, error.rule) == ("/synthesis_rules", "missing key")
    assert f"{name} is missing" in error.message


def test_an_artifact_that_nobody_looks_at_is_refused_with_those_that_somebody_does() -> None:
    error = refusal(document(dimension("a"), dimension("b", target_artifact="manual")))
    assert error.pointer == "/dimensions/1/target_artifact"
    assert error.message == 'kitchen.json: /dimensions/1/target_artifact: it is "manual"'
    assert error.hint == "it must be github_repo, pdf_report or pdf_images; or: pmagent rubric convert IN OUT"


def test_an_id_given_twice_is_refused_at_the_second_naming_the_first() -> None:
    error = refusal(document(dimension("a"), dimension("b"), dimension("a")))
    assert (error.pointer, error.rule) == ("/dimensions/2/id", "duplicate id")
    assert "/dimensions/0" in error.message


def test_there_is_at_least_one_dimension_and_not_too_many() -> None:
    assert refusal({**document(), "dimensions": []}).pointer == "/dimensions"
    many = [dimension(f"d{number}") for number in range(DIMENSIONS_MAX + 1)]
    error = refusal(document(*many))
    assert (error.pointer, error.rule) == ("/dimensions", "too many")
    assert len(rubric_of(document(*many[:-1])).dimensions) == DIMENSIONS_MAX


@each(
    "changes, pointer",
    [
        ({"name": 5}, "/dimensions/0/name"),
        ({"id": "two\nlines"}, "/dimensions/0/id"),
        ({"success_pattern": "  "}, "/dimensions/0/success_pattern"),
        ({"judicial_logic": 3}, "/dimensions/0/judicial_logic"),
        ({"judicial_logic": {"a/b~c": ["no"]}}, "/dimensions/0/judicial_logic/a~1b~0c"),
        ({"judicial_logic": {"defense": "a", "Defense": "b"}}, "/dimensions/0/judicial_logic/Defense"),
        ({"goals": []}, "/dimensions/0/goals"),
        ({"goals": ["graph.builder", 7]}, "/dimensions/0/goals/1"),
        ({"goals": ["graph.builder", "graph.bilder"]}, "/dimensions/0/goals/1"),
        ({"goals": ["graph.builder", "report.term"]}, "/dimensions/0/goals/1"),
        ({"architecture": "yes"}, "/dimensions/0/architecture"),
    ],
)
def test_each_error_points_at_its_place(changes: dict[str, Any], pointer: str) -> None:
    assert refusal(document(dimension(**changes))).pointer == pointer


def test_a_goal_that_there_is_not_is_refused_with_the_nearest_one() -> None:
    assert refusal(document(dimension(goals=["graph.bilder"]))).hint == "did you mean graph.builder?"


@each(
    "parameters, pointer, said",
    [
        ({"security_cap": 6}, "/synthesis_parameters/security_cap", "from 1 to 5"),
        ({"spread": -1}, "/synthesis_parameters/spread", "from 0 to 4"),
        ({"tech_lead_weight": 1.5}, "/synthesis_parameters/tech_lead_weight", "from 1 to 10"),
        ({"total_cap": 1}, "/synthesis_parameters/total_cap", "true or false"),
        ({"security_caps": 2}, "/synthesis_parameters", "did you mean security_cap?"),
    ],
)
def test_a_parameter_is_in_its_range_and_there_is_one_of_that_name(
    parameters: dict[str, Any], pointer: str, said: str
) -> None:
    error = refusal(document(synthesis_parameters=parameters))
    assert error.pointer == pointer
    assert said in error.hint


def test_the_first_error_in_the_documents_order_is_told_and_how_many_more_there_are() -> None:
    broken = document(dimension("a", name=5), dimension("a", goals=["none"]), synthesis_rules={})
    first, *others = refusal(broken).message.split("\n")
    assert (first, len(others)) == ("kitchen.json: /dimensions/0/name: it is 5 (and 7 more)", 7)
    turned = {"synthesis_rules": {}, **{key: broken[key] for key in ("dimensions", "rubric_metadata")}}
    error = refusal(turned)
    assert (error.pointer, error.message.split("\n")[0]) == (
        "/synthesis_rules", "kitchen.json: /synthesis_rules: security_override is missing (and 7 more)",
    )  # fmt: skip


@each(
    "content, said",
    [
        (b"", "is not JSON: line 1, column 1"),
        (b'{"a": 1,\n "b": }', "is not JSON: line 2"),
        (b"\xff\xfe{}", "is not UTF-8"),
        (b'{"a": 1, "a": 2}', 'the key "a" is given twice'),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": 1e999}', "is not JSON"),
        (b'{"a": "\\ud800"}', "half a character"),
        (b"[" * 100_000, "nested deeper than"),
        (b" " * (RUBRIC_BYTES_MAX + 1), f"larger than {RUBRIC_BYTES_MAX} bytes"),
        (b"[]", "it is an empty list"),
        (b"null", "it is nothing (null)"),
    ],
)
def test_what_is_no_json_object_is_refused_in_one_line(content: bytes, said: str) -> None:
    error = refusal(content)
    assert error.message.startswith(("kitchen.json is ", "kitchen.json holds ", "kitchen.json: "))
    assert said in error.message
    assert "\n" not in error.message
    assert error.pointer == ""
    assert error.hint


@each("version", [{}, {"a": "b"}, ["1"], True, None])
def test_a_version_is_a_text_or_a_number(version: Any) -> None:
    error = refusal(document(rubric_metadata={"version": version}))
    assert (error.pointer, error.hint) == ("/rubric_metadata/version", "it must be a text or a number")


# --- rubrics that were not written for this program ----------------------------------------------------------------


def given(name: str) -> bytes:
    path = GIVEN / name
    if not path.exists():
        pytest.skip("the given rubrics are not here")
    return path.read_bytes()


def test_the_official_rubric_is_read_and_every_dimension_knows_what_to_look_for() -> None:
    rubric = read_rubric(given("rubric.official.v3.0.0.json"), "official")
    assert (rubric.version, len(rubric.dimensions)) == ("3.0.0", 10)
    assert rubric.parameters.total_cap  # "cap the total score at 3"
    families = {one.id: {goal.partition(".")[0] for goal in one.goals} for one in rubric.dimensions}
    assert families == {
        "git_forensic_analysis": {"history"},
        "state_management_rigor": {"state", "repo"},
        "graph_orchestration": {"graph", "repo"},
        "safe_tool_engineering": {"tools", "security", "repo"},
        "structured_output_enforcement": {"output", "repo"},
        "judicial_nuance": {"judges", "repo"},
        "chief_justice_synthesis": {"justice", "repo"},
        "theoretical_depth": {"report"},
        "report_accuracy": {"report"},
        "swarm_visual": {"images"},
    }
    assert [one.id for one in rubric.dimensions if one.architecture] == ["graph_orchestration"]
    depth = next(one for one in rubric.dimensions if one.id == "theoretical_depth")
    assert depth.terms == ("Dialectical Synthesis", "Fan-In / Fan-Out", "Metacognition", "State Synchronization")


def test_the_rubric_without_patterns_is_refused_at_its_first_dimension() -> None:
    with pytest.raises(BadRubric, match="success_pattern is missing") as caught:
        read_rubric(given("rubric.v2.0.0.json"), "v2")
    assert caught.value.pointer == "/dimensions/0"


def test_the_rubric_of_points_is_refused_for_what_only_people_can_look_at() -> None:
    with pytest.raises(BadRubric, match='"manual"') as caught:
        read_rubric(given("rubric_peer_grading.points.gemechisworku.json"), "points")
    assert caught.value.pointer == "/dimensions/1/target_artifact"


def test_a_rubric_with_typed_rules_and_targets_of_its_own_is_refused_at_the_first_of_them() -> None:
    own = document(
        dimension(target_artifact="repo"),
        rubric_metadata={"name": "ours"},
        synthesis_rules={"security_override_cap": 3, "fact_supremacy": True},
    )
    assert refusal(own).pointer == "/dimensions/0/target_artifact"


def test_a_rubric_of_logic_without_patterns_is_refused_where_the_first_pattern_is_missing() -> None:
    logic = {"prosecutor": "Find it.", "defense": "Excuse it.", "tech_lead": "Mend it."}
    first = dimension("a", success_pattern=None, failure_pattern=None, judicial_logic=logic)
    rules = {name: "words" for name in RULES if not name.startswith(("functionality", "variance"))}
    error = refusal(document(first, {**first, "id": "b"}, synthesis_rules=rules))
    assert error.message.split("\n")[0] == "kitchen.json: /dimensions/0: success_pattern is missing (and 5 more)"


def test_a_rubric_of_points_is_refused_where_only_people_can_look() -> None:
    levels = [{"id": "all", "points": 20}, {"id": "none", "points": 0}]
    rubric = document(dimension("a", levels=levels), dimension("b", target_artifact="manual", levels=levels))
    rubric["synthesis_rules"]["points_aggregation"] = "sum them up"
    assert refusal(rubric).message == 'kitchen.json: /dimensions/1/target_artifact: it is "manual"'
    rubric["dimensions"].pop()
    assert read_rubric(json.dumps(rubric).encode(), "kitchen.json").dimensions[0].raw["levels"] == levels
