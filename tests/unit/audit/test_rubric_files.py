"""Rubrics from files, and the one that ships with the program."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.rubric import BadRubric, read_rubric
from pmagent.audit.rubrics import default_rubric, load_rubric
from pmagent.contracts.audit_events import RUBRIC_BYTES_MAX


def test_the_default_rubric_looks_at_all_three_artifacts_with_goals_of_its_own() -> None:
    rubric = default_rubric()
    assert load_rubric() == rubric
    assert {one.target_artifact for one in rubric.dimensions} == {"github_repo", "pdf_report", "pdf_images"}
    assert all(one.explicit and one.goals for one in rubric.dimensions)
    assert [one.id for one in rubric.dimensions if one.architecture] == ["orchestration"]
    assert not rubric.parameters.total_cap


def test_the_default_rubric_asks_in_each_dimension_for_something_that_can_be_there() -> None:
    for one in default_rubric().dimensions:
        assert any(GOALS[goal].kind == "asset" for goal in one.goals), one.id


def test_every_flaw_of_security_is_looked_for_by_the_default_rubric() -> None:
    sought = {goal for one in default_rubric().dimensions for goal in one.goals}
    assert {goal.id for goal in GOALS.values() if goal.security} <= sought


def test_a_rubric_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(default_rubric().document))
    assert load_rubric(path) == load_rubric(str(path)) == default_rubric()


def test_a_file_that_is_not_there_or_none_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(BadRubric, match="there is no such file"):
        load_rubric(tmp_path / "none.json")
    with pytest.raises(BadRubric, match="it is no file"):
        load_rubric(tmp_path)
    with pytest.raises(BadRubric, match="cannot be read"):
        load_rubric("a\0b")


def test_a_pipe_is_not_opened_and_a_file_without_end_not_read_to_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BadRubric, match="it is no file"):
        load_rubric(pipe)
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(2**40)  # takes no space
    with pytest.raises(BadRubric, match=f"larger than {RUBRIC_BYTES_MAX} bytes"):
        load_rubric(large)


# --- what is written about rubrics ---------------------------------------------------------------------------------

PAGE = Path(__file__).resolve().parents[3] / "docs" / "rubrics.md"


def test_the_page_about_rubrics_lists_every_goal_with_its_kind_and_meaning() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| `[a-z_]+\.[a-z_]+` \|", line)]
    kinds = {goal.id: "security" if goal.security else goal.kind for goal in GOALS.values()}
    assert rows == [
        f"| `{goal.id}` | {kinds[goal.id]} | {goal.title} |" for goal in GOALS.values() if goal.kind != "context"
    ]


def test_the_rubric_on_the_page_is_one() -> None:
    written = re.search(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert written is not None
    rubric = read_rubric(written[1].encode(), "the page")
    assert rubric.dimensions[0].terms == ("src/graph.py",)
    assert {"graph.builder", "graph.fan_out", "graph.fan_in", "graph.linear"} <= set(rubric.dimensions[0].goals)


def test_the_error_on_the_page_is_the_one_that_is_told() -> None:
    document = default_rubric().document
    broken = json.loads(json.dumps(document))
    broken["dimensions"][1]["target_artifact"] = "manual"
    with pytest.raises(BadRubric) as caught:
        read_rubric(json.dumps(broken).encode(), "mine.json")
    page = PAGE.read_text()
    assert caught.value.message in page
    assert caught.value.hint in page


def test_the_limits_on_the_page_are_the_judges() -> None:
    written: dict[str, dict[str, int]] = {}
    for row in re.findall(r"^  \| (`[a-z._`, ]+`) \|([^|]*)\|([^|]*)\|([^|]*)\|$", PAGE.read_text(), re.MULTILINE):
        told = zip(("Prosecutor", "TechLead", "Defense"), row[1:], strict=True)
        limits = {judge: int(cell) for judge, cell in told if cell.strip()}
        written |= dict.fromkeys(re.findall(r"`([a-z._]+)`", row[0]), limits)
    assert written == {goal.id: goal.limits for goal in GOALS.values() if goal.limits}
