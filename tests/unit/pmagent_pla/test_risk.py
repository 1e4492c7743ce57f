"""How much an action may do: tiers and reasons, what it takes, whether it can be taken back, what approving means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.contracts.pla import KEYS
from pmagent.firmware.actions import Click, Keys, Move, keystrokes
from pmagent.pla.consequences import cost, means, reversal
from pmagent.pla.risk import TIERS, risk
from tests.support.cases import each
from tests.support.proposals import clicked, moved, pressed, proposal, status, typed


@each("text, reason", [
    ("rm -rf x\n", "a line break"),
    ("format c:", "it writes to disks"),
    ("diskpart\n", "it writes to disks"),
    ("Remove-Item -Recurse -Force x", "it deletes files or data"),
    ("rd /s /q x", "it deletes files or data"),
    ("net user bob pw /add", "it changes services or permissions"),
    ("reg delete HKLM\\x", "it changes services or permissions"),
    ("iex (iwr x)", "it runs a text as a program"),
    ("powershell -enc AAAA", "it runs a text as a program"),
    ("drop\ttable users;", "it deletes files or data"),
    ("DELETE FROM users;", "it deletes files or data"),
    ("update users set a = 1", "it rewrites what others rely on"),
    ("kubectl -n prod delete pod x", "it deletes files or data"),
    ("terraform destroy", "it deletes files or data"),
    ("aws s3 rb s3://x", "it deletes files or data"),
    ("docker container rm x", "it deletes files or data"),
    ("docker system prune -a", "it deletes files or data"),
    ("git push --force-with-lease", "it rewrites what others rely on"),
    ("git push origin main -f", "it rewrites what others rely on"),
    ("git push origin +main", "it rewrites what others rely on"),
    ("git reset --hard", "it deletes files or data"),
    ("true; /bin/rm -rf y", "it deletes files or data"),
    ("echo $(reboot)", "it runs a text as a program"),
    ("x" * 300 + "\n", "a line break"),
    ("sudo ls", "it acts as another user"),
    ("rm -rf /", "it deletes files or data"),
    ("git clean -fdx", "it deletes files or data"),
    ("dd if=/dev/zero of=/dev/sda", "it writes to disks"),
    ("SHUTDOWN /s", "it stops the machine"),
    ("curl x | sh", "it runs a text as a program"),
    ("python3 -c 1", "it runs a text as a program"),
    ("wget x", "it reaches another machine"),
    ("https://example.org", "it reaches another machine"),
    ("chmod 777 x", "it changes services or permissions"),
])
def test_a_text_that_may_do_something_is_of_high_risk(text: str, reason: str) -> None:
    found = risk(typed(text))
    assert found.tier == "high"
    assert any(reason in one for one in found.reasons)


@each("text", ["ls\n", "ls -la\n", "cd /tmp\ngit status\n", "docker ps\n", "kubectl get pods\n", "git log\n", "dir\n"])
def test_a_harmless_command_with_enter_is_of_medium_risk_unless_others_propose_it(text: str) -> None:
    """The digest is typed for what needs it, so that it stays a sign."""
    assert risk(typed(text)).tier == "medium"
    assert risk({**typed(text), "proposed_by": "anthropic:m"}).tier == "high"
    assert risk({**typed(text), "channel": "document"}).tier == "high"


@each("text", ["hello", "informed", "the perimeter", "a forum", "sums: 1, 2", "ascii", "x" * 200])
def test_a_short_text_that_runs_nothing_is_of_low_risk(text: str) -> None:
    assert risk(typed(text)).tier == "low"


@each("text", ["name\tvalue", "x" * 201])
def test_a_tab_or_a_long_text_is_of_medium_risk(text: str) -> None:
    assert risk(typed(text)).tier == "medium"


@each("keys, tier", [
    ("gui", "high"),
    ("gui+r", "high"),
    ("ctrl+alt+delete", "high"),
    ("ctrl+alt+t", "high"),
    ("alt+f4", "high"),
    ("alt+tab", "high"),
    ("ctrl+shift+escape", "high"),
    ("enter", "high"),
    ("shift+enter", "high"),
    ("shift+insert", "high"),
    ("ctrl+v", "high"),
    ("ctrl+shift+v", "high"),
    ("insert", "medium"),
    ("ctrl+c", "medium"),
    ("alt+d", "medium"),
    ("f5", "medium"),
    ("delete", "medium"),
    ("escape", "medium"),
    ("a", "low"),
    ("shift+a", "low"),
    ("left", "low"),
    ("page_down", "low"),
])
def test_keys_are_judged_by_who_takes_them(keys: str, tier: str) -> None:
    assert risk(pressed(*keys.split("+"))).tier == tier


def test_keys_that_do_nothing_of_their_own_are_counted() -> None:
    assert risk(pressed("a")).reasons == ["one key, that runs or sends nothing"]
    assert risk(pressed("a", "b")).reasons == ["keys that run or send nothing"]


def test_a_click_is_never_of_low_risk_and_a_move_is() -> None:
    assert risk(clicked("left")).tier == "medium"
    assert risk(moved(10, -5)).tier == "low"


@each("more, tier, reason", [
    ({"credential_warning": True, "findings": ["password"]}, "high", "credentials: password"),
    ({"credential_warning": True, "findings": []}, "high", "not said which"),
    ({"masked": True}, "high", "masked"),
    ({"proposed_by": "anthropic:m"}, "medium", "a model proposes it"),
    ({"channel": "document"}, "medium", "another program"),
])
def test_where_it_comes_from_raises_the_risk(more: dict[str, Any], tier: str, reason: str) -> None:
    found = risk({**typed("hello"), **more})
    assert found.tier == tier
    assert any(reason in one for one in found.reasons)


def test_the_reasons_of_the_highest_tier_come_first() -> None:
    found = risk({**typed("a\tb"), "channel": "document", "masked": True})
    assert found.tier == "high"
    assert found.reasons[0] == "part of it is masked"
    assert len(found.reasons) == 3


def test_what_is_revealed_is_judged_in_place_of_its_mask() -> None:
    hidden = proposal("TYPE_TEXT", {"text": "***REDACTED***"}, masked=True, chars=5)
    assert not any("line break" in one for one in risk(hidden).reasons)
    assert any("line break" in one for one in risk({**hidden, "plain": {"text": "abcd\n"}}).reasons)


@each("shown", ["***REDACTED***", "sshpass -p ***REDACTED*** ssh lab"])
def test_of_what_is_masked_nobody_says_that_it_runs_nothing(shown: str) -> None:
    hidden = proposal("TYPE_TEXT", {"text": shown}, masked=True, chars=40)
    assert not any("nothing is run" in one for one in risk(hidden).reasons)
    assert any("nothing is run" in one for one in risk({**hidden, "plain": {"text": "abcd"}}).reasons)


@each("document, reports", [
    (typed("ls\n"), 6),
    (proposal("TYPE_TEXT", {"text": "***"}, masked=True, chars=11), 22),
    (pressed("ctrl", "c"), 2),
    (clicked("left"), 2),
    (moved(0, 0), 1),
    (moved(127, 0), 1),
    (moved(-128, 127), 2),
    (moved(5000, -1000), 40),
])
def test_it_takes_as_many_reports_as_the_firmware_sends(document: dict[str, Any], reports: int) -> None:
    found = cost(document)
    assert found.reports == reports
    assert found.seconds == pytest.approx(0.1 + reports * 0.008)


@each("document, can", [
    (typed("hello"), "yes"),
    (typed("hello\n"), "no"),
    (proposal("TYPE_TEXT", {"text": "***"}, masked=True), "not known"),
    ({**proposal("TYPE_TEXT", {"text": "***"}, masked=True), "plain": {"text": "a\n"}}, "no"),
    ({**proposal("TYPE_TEXT", {"text": "***"}, masked=True), "plain": {"text": "a"}}, "yes"),
    (pressed("ctrl", "s"), "not known"),
    (pressed("a"), "not known"),
    (moved(1, 1), "yes"),
    (clicked("right"), "not known"),
])
def test_what_enter_has_run_cannot_be_taken_back(document: dict[str, Any], can: str) -> None:
    assert reversal(document).can == can


@each("mode", ["OBSERVE", "SUGGEST"])
def test_below_execute_an_approval_is_recorded_only(mode: str) -> None:
    found = means(status(mode=mode), paused=False)
    assert "recorded" in found.text
    assert found.hindered == []


@each("more, paused, hindrance", [
    ({"device": None}, False, "no device is linked"),
    ({"armed": False}, False, "the device is not armed"),
    ({}, True, "effects are paused"),
    ({"device": {"kill_switch_state": "DISABLED"}}, False, "the kill switch is hit: nothing can be typed"),
    ({"device": {"caps_lock": True}}, False, "Caps Lock is on, and with it no letter is typed"),
    ({"device": {"compatible": False, "text": "older"}}, False, "the device's contract is another: older"),
])
def test_in_execute_what_stands_against_typing_is_named(more: dict[str, Any], paused: bool, hindrance: str) -> None:
    found = means(status(**{"mode": "EXECUTE", "armed": True, **more}), paused=paused)
    assert found.hindered == [hindrance]
    assert means(status(mode="EXECUTE", armed=True), paused=False).hindered == []


@each("more, act", [
    ({"mode": "SUGGEST"}, "Approve, record only"),
    ({"mode": "EXECUTE"}, "Approve and type now on pla-7"),
    ({"mode": "EXECUTE", "device": None}, "Approve and type now"),
])
def test_the_words_of_who_approves_say_what_it_does_and_where(more: dict[str, Any], act: str) -> None:
    about = status(**more)
    if about["device"] is not None:
        about["device"]["device_id"] = "pla-7"
    assert means(about, paused=False).act == act
    assert means(about, "rack-3", paused=False).act == act.replace("pla-7", "rack-3")


TYPED = st.text(st.sampled_from("\t\n" + "".join(map(chr, range(32, 127)))), max_size=60)
ANY = st.one_of(
    TYPED.map(typed),
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=6, unique=True).map(lambda keys: pressed(*keys)),
    st.tuples(st.integers(-1000, 5000), st.integers(-1000, 5000)).map(lambda way: moved(*way)),
    st.sampled_from(["left", "right", "middle"]).map(clicked),
)


@given(ANY)
def test_every_action_has_a_tier_with_its_reasons_and_a_cost(document: dict[str, Any]) -> None:
    found = risk(document)
    assert found.tier in TIERS
    assert found.reasons
    assert all(found.reasons)
    assert cost(document).reports == firmware_reports(document)
    assert reversal(document).why


def firmware_reports(document: dict[str, Any]) -> int:
    """As many as the firmware's own reading of the action gives."""
    shown = document["payload"]
    match document["action_type"]:
        case "TYPE_TEXT":
            return keystrokes(shown["text"], shown.get("layout", "us")).of
        case "KEY_COMBO":
            return Keys(0, []).of
        case "MOUSE_MOVE":
            return Move(shown["x"], shown["y"]).of
    return Click(1).of


@given(TYPED, TYPED)
def test_with_a_line_break_a_text_is_never_of_low_risk_and_of_high_risk_where_others_state_it(
    before: str, behind: str
) -> None:
    assert risk(typed(f"{before}\n{behind}")).tier != "low"
    assert risk({**typed(f"{before}\n{behind}"), "proposed_by": "anthropic:m"}).tier == "high"
    assert reversal(typed(f"{before}\n{behind}")).can == "no"


@given(TYPED, TYPED)
def test_with_a_tab_a_text_is_never_of_low_risk(before: str, behind: str) -> None:
    assert risk(typed(f"{before}\t{behind}")).tier != "low"


@given(
    ANY,
    st.sampled_from([{"masked": True}, {"credential_warning": True}, {"proposed_by": "m:x"}, {"channel": "document"}]),
)
def test_what_speaks_against_it_never_lowers_the_risk(document: dict[str, Any], more: dict[str, Any]) -> None:
    assert TIERS.index(risk({**document, **more}).tier) <= TIERS.index(risk(document).tier)
