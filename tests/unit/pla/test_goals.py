"""Goals: what states an action literally, and what is told about a goal that nearly does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.pla.goals import GoalError, nearest, parse_goal
from pmagent.contracts.pla import KEYS, Action, KeyCombo, MouseClick, MouseMove, TypeText, objections
from tests.support.cases import each


@each(
    "goal, action",
    [
        ("type: hello", TypeText(text="hello")),
        ("type:hello", TypeText(text="hello")),
        ("type:  two blanks ", TypeText(text=" two blanks ")),
        ("type: a\nb\t", TypeText(text="a\nb\t")),
        (r"type: a\n", TypeText(text=r"a\n")),
        (r'type: "a\n\t\"\\"', TypeText(text='a\n\t"\\')),
        ('type: ""', TypeText(text="")),
        ("type:", TypeText(text="")),
        ('type: say "hi"', TypeText(text='say "hi"')),
        ("type: keys: a", TypeText(text="keys: a")),
        ("keys: ctrl+alt+t", KeyCombo(keys=["ctrl", "alt", "t"])),
        ("keys:  ctrl + c ", KeyCombo(keys=["ctrl", "c"])),
        ("keys: page_up", KeyCombo(keys=["page_up"])),
        ("move: 10 -5", MouseMove(x=10, y=-5)),
        ("move:\t+0  07 ", MouseMove(x=0, y=7)),
        ("move: 999999999 0", MouseMove(x=999_999_999, y=0)),
        ("click: left", MouseClick(button="left")),
    ],
)
def test_a_goal_is_taken_by_the_letter(goal: str, action: Action) -> None:
    assert parse_goal(goal) == action


@each("goal", ["", "open a terminal", "fix: the build", "https://example.org", ": x", "größe: 1"])
def test_what_states_no_action_is_left_to_a_model(goal: str) -> None:
    assert parse_goal(goal) is None


@each(
    "goal, message, hint, kind",
    [
        ("Type: x", "begins with 'Type'", "type", "schema_validation"),
        ("tpye: x", "begins with 'tpye'", "type", "schema_validation"),
        ("press: x", "begins with 'press'", "keys", "schema_validation"),
        ("type : x", "blank between 'type' and its colon", "type", "schema_validation"),
        ('type: "a', "no quote ends it", "", "schema_validation"),
        ('type: "a" b', "ends at character 3 of 5", "", "schema_validation"),
        (r'type: "a\x"', "character 3 of the quoted text", "escapes", "schema_validation"),
        ('type: "a\\', "character 3 of the quoted text", "escapes", "schema_validation"),
        ("keys:", "no key", "", "missing_field"),
        ("keys: ctrl++", "key 2 of 3 is missing", "", "missing_field"),
        ("keys: control+c", "key 1 of 2 is 'control'", "did you mean ctrl?", "schema_validation"),
        ("keys: shift+A", "key 2 of 2 is 'A'", "did you mean a?", "schema_validation"),
        ("keys: esc", "'esc'", "did you mean escape?", "schema_validation"),
        ("keys: delte", "'delte'", "did you mean delete?", "schema_validation"),
        ("keys: f13", "'f13'", "did you mean f1", "schema_validation"),
        ("keys: nothing", "key 1 of 1 is none that can be pressed", "", "schema_validation"),
        ("move: 1", "two whole numbers", "move: 10 -5", "missing_field"),
        ("move: 1 2 3", "two whole numbers", "", "schema_validation"),
        ("move: 1.5 2", "two whole numbers", "", "schema_validation"),
        ("move: 1 2\n", "two whole numbers", "", "schema_validation"),
        ("move: \u0661 \u0662", "two whole numbers", "", "schema_validation"),
        ("move: 1\u00a02", "two whole numbers", "", "missing_field"),
        ("click:", "none of left, right, middle", "", "missing_field"),
        ("click: lft", "none of left, right, middle", "did you mean left?", "schema_validation"),
        ("click: LEFT", "none of left, right, middle", "did you mean left?", "schema_validation"),
    ],
)
def test_a_goal_that_nearly_states_one_is_told_where_it_fails(goal: str, message: str, hint: str, kind: str) -> None:
    with pytest.raises(GoalError) as caught:
        parse_goal(goal)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.kind == kind


def test_what_is_no_name_is_not_quoted() -> None:
    with pytest.raises(GoalError) as caught:
        parse_goal("keys: ctrl+hunter2")
    assert "hunter2" not in caught.value.message + caught.value.hint


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_every_typable_text_can_be_stated_in_quotes(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_goal(f'type: "{quoted}"') == TypeText(text=text)


@given(st.text(max_size=60).filter(lambda text: not text.startswith('"')))
def test_every_other_text_is_taken_as_it_stands(text: str) -> None:
    assert parse_goal(f"type: {text}") == TypeText(text=text)


@given(st.lists(st.sampled_from(KEYS), min_size=1, max_size=6))
def test_every_key_can_be_stated(keys: list[str]) -> None:
    assert parse_goal(f"keys: {'+'.join(keys)}") == KeyCombo(keys=keys)


@given(st.text(max_size=40))
def test_whatever_is_written_is_an_action_or_one_clear_error(rest: str) -> None:
    for word in ("type", "keys", "move", "click"):
        said = _said(f"{word}:{rest}")
        assert said


def _said(goal: str) -> str:
    """The verdict on a goal: the error's message, or that there is an action."""
    try:
        action = parse_goal(goal)
    except GoalError as error:
        return error.message
    return "" if action is None else f"an action, with {len(objections(action))} objections"


@each("word, meant", [("lef", "left"), ("leftt", "left"), ("lfet", "left"), ("kept", ""), ("", ""), ("l", "")])
def test_the_nearest_word_is_at_most_one_slip_away(word: str, meant: str) -> None:
    assert nearest(word, ("left", "right", "middle")) == meant
