"""``pmagent pla`` beside a daemon that holds the line to a device: what is approved is typed, and nothing else.

One lab for all of these tests; each begins in EXECUTE, armed, with nothing open.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pmagent.contracts.pla import TypeText, digest
from pmagent.events.event import parse_time
from tests.conftest import fresh_example
from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment, pmagent, spawn
from tests.support.pla_live import Lab, await_event, end_of_log, events, on_terminal
from tests.support.pla_live import lab as live_lab

SECRET = "hunter2-hunter2-hunter2"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab."""
    folder = tmp_path_factory.mktemp("lab")
    with live_lab(folder, fresh_example(folder / "workspace")) as made:
        yield made


@pytest.fixture
def lab(held: Lab) -> Lab:
    """The lab, ready to type."""
    held.ready()
    return held


def approved(lab: Lab, proposed: dict[str, Any], *more: str, expect: int = 0) -> Any:
    """The answer to an approval of just this."""
    return lab.asked("approve", proposed["proposal_id"], "--digest", proposed["digest"], *more, expect=expect)


def test_what_is_approved_is_typed_and_an_approval_is_used_once(lab: Lab) -> None:
    before = lab.device.typed
    proposed = lab.proposed("type: \"echo 'a|b' && ls\\n\"")
    answer = approved(lab, proposed)
    assert answer["outcome"]["outcome"] == "executed"
    assert lab.device.typed == before + "echo 'a|b' && ls\n"
    assert approved(lab, proposed, expect=1)["decision"]["code"] == "decided"
    assert lab.device.typed == before + "echo 'a|b' && ls\n"


def test_of_many_who_approve_and_propose_at_once_one_counts(lab: Lab) -> None:
    before, commits = lab.device.typed, lab.device.heard("commit")
    goals = [f"type: {name}" for name in ("a", "b", "c", "d")]
    ended = at_once(lab, [("propose", goal, "--format", "json") for goal in goals])
    assert sorted(code for code, _ in ended) == [0, 1, 1, 1], "one proposal is open at a time"
    (proposed,) = [json.loads(out) for code, out in ended if code == 0]
    approving = ("approve", proposed["proposal_id"], "--digest", proposed["digest"], "--format", "json")
    ended = at_once(lab, [(*approving, "--operator", name) for name in ("ada", "grace", "edsger", "barbara")])
    assert sorted(code for code, _ in ended) == [0, 1, 1, 1], "an approval is used once"
    assert lab.device.typed == before + proposed["payload"]["text"]
    assert lab.device.heard("commit") == commits + 1


def at_once(lab: Lab, commands: list[tuple[str, ...]]) -> list[tuple[int, str]]:
    """Run ``pmagent pla …`` several times, side by side: exit code and stdout of each."""
    processes = [
        warm.Popen(
            [*PMAGENT, "pla", *words], cwd=lab.workspace, env=clean_environment(), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True,
        )
        for words in commands
    ]  # fmt: skip
    return [(process.wait(SECONDS), process.communicate(timeout=SECONDS)[0]) for process in processes]


def test_status_list_show_and_device_tell_how_it_stands(lab: Lab) -> None:
    proposed = lab.proposed("type: ls")
    status = lab.asked("status")
    assert (status["running"], status["mode"], status["armed"]) == (True, "EXECUTE", True)
    assert status["device"]["device_id"] == "pretend-device"
    assert status["proposal"]["proposal_id"] == proposed["proposal_id"]
    assert 0 < status["proposal"]["seconds_left"] <= 300
    text = lab.pla("status").text
    assert "kill switch: ready" in text
    assert "│ls│" in text
    assert lab.asked("show", proposed["proposal_id"][:14])["digest"] == proposed["digest"]
    linked = lab.asked("device")
    assert (linked["linked"]["compatible"], linked["probed"]) == (True, None)
    assert "held by the daemon" in lab.pla("device").text
    assert "▸ open" in lab.pla("list").text


def test_an_approval_without_waiting_answers_at_once_and_is_carried_out_all_the_same(lab: Lab) -> None:
    before, after = lab.device.typed, end_of_log(lab.workspace)
    answer = approved(lab, lab.proposed("type: later"), "--no-wait")
    assert answer["outcome"] is None
    await_event(lab.workspace, "pla.proposal_closed", after=after)
    assert lab.device.typed == before + "later"


def test_nothing_is_approved_while_the_device_is_not_armed(lab: Lab) -> None:
    proposed = lab.proposed("type: x")
    lab.pla("disarm", "--reason", "a break")
    assert lab.asked("status")["armed"] is False
    assert approved(lab, proposed, expect=1)["decision"]["code"] == "not_armed"
    lab.pla("arm")
    approved(lab, proposed)


def test_disarming_ends_what_is_typed(lab: Lab) -> None:
    before = lab.device.typed
    long = "abcdefghij" * 100
    proposed = lab.proposed(f"type: {long}")
    lab.device.pass_over()
    approving = warm.Popen(
        [*PMAGENT, "pla", "approve", proposed["proposal_id"], "--digest", proposed["digest"], "--format", "json"],
        cwd=lab.workspace, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lab.device.wait(lambda told: bool(told.get("text")))
    lab.pla("disarm")
    out, _ = approving.communicate(timeout=SECONDS)
    assert approving.returncode == 1
    assert json.loads(out)["outcome"]["outcome"] == "aborted"
    typed = lab.device.typed.removeprefix(before)
    assert typed != long
    assert long.startswith(typed)


def test_credentials_are_typed_only_when_acknowledged_after_five_seconds_and_stand_nowhere(lab: Lab) -> None:
    lab.configure(credentials="acknowledge")
    before = lab.device.typed
    proposed = lab.proposed(f"type: {SECRET} is the password")
    assert proposed["credential_warning"]
    assert proposed["masked"]
    assert proposed["digest"] == digest(TypeText(text=f"{SECRET} is the password"))
    assert approved(lab, proposed, expect=1)["decision"]["code"] == "credential"
    assert SECRET not in lab.pla("show").text
    assert f"│{SECRET} is the password│" in lab.pla("show", "--reveal").text
    code, seen = on_terminal(lab.workspace, "approve", "--acknowledge-credentials")
    assert code == 2, "nobody approves what they have not seen"
    assert "--reveal shows it" in seen
    code, seen = on_terminal(lab.workspace, "approve", "--reveal", "--acknowledge-credentials")
    assert code == 0, seen
    assert f"│{SECRET} is the password│" in seen.partition("type yes and Enter")[0]
    assert lab.device.typed == before + f"{SECRET} is the password"
    (asked,) = [one for one in events(lab.workspace, "pla.proposed") if one["proposal_id"] == proposed["proposal_id"]]
    (approval,) = [
        one for one in events(lab.workspace, "pla.approved") if one["proposal_id"] == proposed["proposal_id"]
    ]
    assert approval["credential_acknowledged"]
    assert asked["findings"]
    assert approved_at(lab.workspace, asked) >= 5.0
    told = [one for one in events(lab.workspace, "pla.revealed") if one["proposal_id"] == proposed["proposal_id"]]
    assert [one["channel"] for one in told] == ["cli", "cli"], "each time it was seen is in the log"
    assert "the text is not held" in lab.pla("show", proposed["proposal_id"], "--reveal").errors, "it is typed"
    for path in lab.workspace.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def approved_at(workspace: Path, asked: dict[str, Any]) -> float:
    """How many seconds after its proposal it was approved, by the log."""
    shown = pmagent(workspace, "pla", "show", asked["proposal_id"], "--format", "json").document
    return (parse_time(shown["decided_at"]) - parse_time(shown["proposed_at"])).total_seconds()


def test_a_rejected_secret_is_forgotten(lab: Lab) -> None:
    lab.configure(credentials="acknowledge")
    proposed = lab.proposed(f"type: password: {SECRET}")
    lab.pla("reject", "--reason", "not here")
    assert lab.asked("show", proposed["proposal_id"], "--reveal")["plain"] is None


def test_the_environment_of_who_asks_does_not_loosen_the_daemon_s_policy(lab: Lab) -> None:
    done = spawn(
        "pla", "propose", f"type: password: {SECRET}", "--format", "json", cwd=lab.workspace,
        PMAGENT_PLA_CREDENTIALS="acknowledge",
    )  # fmt: skip
    assert done.code == 1
    assert json.loads(done.out)["code"] == "credential"


def test_the_mode_falls_when_the_kernel_is_blocked_and_typing_is_over(lab: Lab) -> None:
    proposed = lab.proposed("type: x")
    surface = lab.workspace / "share" / "REALITY_GREEN_SUMMARY.json"
    content = surface.read_bytes()
    after, before = end_of_log(lab.workspace), lab.device.typed
    surface.unlink()
    try:
        await_event(lab.workspace, "pla.mode_changed", after=after)
        status = lab.asked("status")
        assert (status["mode"], status["armed"], status["proposal"]) == ("OBSERVE", False, None)
        assert approved(lab, proposed, expect=1)["decision"]["code"] == "decided"
        assert lab.asked("mode", "SUGGEST", expect=1)["mode"] == "OBSERVE"
        assert lab.device.typed == before
    finally:
        after = end_of_log(lab.workspace)
        surface.write_bytes(content)
        await_event(lab.workspace, "kernel.mode_decided", after=after)


def test_an_expired_proposal_is_closed_by_itself(lab: Lab) -> None:
    lab.configure(proposal_seconds=0.3)
    after = end_of_log(lab.workspace)
    proposed = lab.proposed("type: x")
    await_event(lab.workspace, "pla.proposal_closed", after=after)
    assert approved(lab, proposed, expect=1)["decision"]["code"] in ("decided", "expired")
    assert lab.asked("show", proposed["proposal_id"])["outcome"] == "expired"


def test_the_session_log_beside_a_running_daemon_is_intact_and_the_log_replays(lab: Lab) -> None:
    approved(lab, lab.proposed("type: x"))
    assert lab.asked("verify-log")["ok"]
    assert pmagent(lab.workspace, "replay").code == 0


def test_a_frame_is_looked_at(lab: Lab, tmp_path: Path) -> None:
    from pmagent.pla.demo.picture import HEIGHT, WIDTH, picture

    (tmp_path / "frame.png").write_bytes(picture())
    seen = lab.asked("observe", "--frames", str(tmp_path))
    assert (seen["observed"]["width"], seen["observed"]["height"]) == (WIDTH, HEIGHT)
    assert "✓ observed" in lab.pla("observe", "--frames", str(tmp_path)).text
    proposed = lab.proposed("type: ls", "--frames", str(tmp_path))
    assert proposed["frame"] > 0
    assert "it is not said where frames come from" in lab.pla("observe", expect=2).errors
    nothing = lab.asked("observe", "--frames", str(tmp_path / "none"), expect=1)
    assert nothing["reasons"]


def test_on_one_pipe_the_end_comes_last_and_a_linked_device_is_not_said_to_be_missing(lab: Lab) -> None:
    assert "no serial device" not in lab.pla("device").text
    proposed = lab.proposed("type: in order")
    done = warm.run(
        [*PMAGENT, "pla", "approve", proposed["proposal_id"], "--digest", proposed["digest"]], cwd=lab.workspace,
        env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
    )  # fmt: skip
    told = done.stdout.decode()
    assert -1 < told.index("it is being typed") < told.index("executed"), told


def test_a_second_look_at_the_device_does_not_disturb_the_daemon(lab: Lab) -> None:
    lab.proposed("type: x")
    assert lab.asked("device")["linked"]
    assert lab.asked("status")["armed"]


def test_what_was_shown_in_another_mode_is_not_typed(lab: Lab) -> None:
    """An operator who says yes to a mere record has not said yes to typing."""
    before = lab.device.typed
    lab.pla("mode", "SUGGEST")
    lab.proposed("type: later")

    def raised() -> None:
        lab.pla("mode", "EXECUTE", "--operator", "grace")
        lab.pla("arm", "--operator", "grace")

    code, seen = on_terminal(lab.workspace, "approve", meanwhile=raised)
    assert "In SUGGEST " in seen
    assert (code, lab.device.typed) == (1, before)
    code, seen = on_terminal(lab.workspace, "approve")
    assert "In EXECUTE " in seen
    assert (code, lab.device.typed) == (0, before + "later")


def test_an_armed_device_types_nothing_of_what_was_shown_before_it_was_armed(lab: Lab) -> None:
    before = lab.device.typed
    lab.pla("disarm")
    lab.proposed("type: later")

    def armed() -> None:
        lab.pla("arm", "--operator", "grace")

    code, seen = on_terminal(lab.workspace, "approve", meanwhile=armed)
    assert "Approve and type now on " in seen
    assert (code, lab.device.typed) == (1, before)
    assert lab.asked("status")["proposal"]["stands"] == "open"
    lab.pla("reject", "--reason", "enough")


def test_a_refused_request_to_arm_leaves_mode_and_proposal_as_they_are(lab: Lab) -> None:
    lab.pla("mode", "SUGGEST")
    proposed = lab.proposed("type: still here")
    after = end_of_log(lab.workspace)
    refused = lab.pla("arm", expect=1)
    assert "the mode stays SUGGEST" in refused.text
    status = lab.asked("status")
    assert (status["mode"], status["proposal"]["proposal_id"]) == ("SUGGEST", proposed["proposal_id"])
    assert [one for one in events(lab.workspace, "pla.violation") if one["position"] > after] == []
    (hint,) = [line for line in refused.errors.splitlines() if "hint:" in line]
    for command in hint.partition("hint: ")[2].split(", then "):
        lab.pla(*command.removeprefix("pmagent pla ").split())
    assert lab.asked("status")["armed"]
    lab.pla("reject", "--reason", "enough")


def test_what_the_device_reports_of_itself_is_shown(lab: Lab) -> None:
    before = lab.device.typed
    after = end_of_log(lab.workspace)
    lab.device.do("caps")
    await_event(lab.workspace, "hid.reported", "data.caps_lock=true", after=after)
    assert "Caps Lock is on" in lab.pla("status").text
    assert "Caps Lock   on" in lab.pla("device").text
    assert approved(lab, lab.proposed("type: later"), expect=1)["outcome"]["outcome"] != "executed"
    await_event(lab.workspace, "hid.reported", "data.error_code=UNKNOWN_ERROR", after=after)
    assert "its last error: CAPS_LOCK: the machine's Caps Lock is on" in lab.pla("status").text
    assert "last error  CAPS_LOCK" in lab.pla("device").text
    after = end_of_log(lab.workspace)  # an earlier report, from before it was on, is not meant
    lab.device.do("caps")
    await_event(lab.workspace, "hid.reported", "data.caps_lock=false", after=after)
    assert "Caps Lock" not in lab.pla("device").text.split("last error")[0]
    assert lab.device.typed == before


def test_a_board_is_not_even_proposed_what_needs_a_layout_before_one_is_declared(tmp_path: Path) -> None:
    with live_lab(tmp_path, fresh_example(tmp_path / "workspace"), "--board", "--layout", "de") as lab:
        for mode in ("SUGGEST", "EXECUTE"):
            lab.pla("mode", mode)
        lab.pla("arm")
        for goal in ("type: zy", "keys: ctrl+c"):
            refused = lab.pla("propose", goal, expect=1)
            assert "layout is not declared" in refused.text
            assert 'layout = "us"' in refused.errors, "the line that mends it"
        assert lab.asked("status")["violations"] is None, "nobody violated a contract"
        approved(lab, lab.proposed("click: left"))
        lab.configure(layout="de")
        approved(lab, lab.proposed("keys: shift+z"))
        approved(lab, lab.proposed("type: zy"))
        assert lab.device.typed == "Zzy"
