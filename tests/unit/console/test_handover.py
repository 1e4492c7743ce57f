"""Hand-over notes: each heads the first page until an operator acknowledges it; a command leaves and reads them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import fresh_example
from tests.support.approving import APPROVING, ASKING, forms, page_of, proposed, told
from tests.support.commands import pmagent
from tests.support.consoles import Console, LiveHost


def left(host: LiveHost, text: str) -> int:
    """The position of a note of ada's."""
    return int(host.perform("alerts.handover", operator=ASKING, channel="cli", text=text).document["position"])


def test_each_note_heads_the_page_whole_until_it_is_acknowledged(host: LiveHost, bob: Console, eve: Console) -> None:
    long = "Watch rack-3 <b>\n" + "x" * 1500
    first, second = left(host, long), left(host, "nothing else")
    page = page_of(bob.get("/"), 200)
    text = told(page)
    assert " ".join(long.split()) in text
    assert text.index("nothing else") < text.index("Stop switch")
    assert "Handed over by ada" in text
    ours = [form for form in forms(page.source, "/alerts/acknowledge") if f"alert-{first}" in form]
    assert not forms(page_of(eve.get("/"), 200).source, "/alerts/acknowledge"), "who may look reads it alone"
    answer = bob.post("/alerts/acknowledge", **ours[0])
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    rest = told(page_of(bob.get("/"), 200))
    assert "Watch rack-3" not in rest
    assert "nothing else" in rest
    assert host.perform("alerts.list").document["open"][0]["position"] == second
    assert "taken over" in told(page_of(bob.get("/alerts"), 200))
    host.perform("alerts.acknowledge", operator=APPROVING, channel="cli", alert=second, note="read")


def test_the_form_begins_with_what_is_open_and_leaves_one_note(host: LiveHost, bob: Console) -> None:
    proposed(host)
    (form,) = forms(page_of(bob.get("/?change=handover"), 200).source, "/alerts/handover")
    assert "Decisions that wait: 1." in form["text"]
    assert "The lab assistant is in SUGGEST." in form["text"]
    form["text"] += "it is the disk again"
    for _ in range(2):  # a double click
        assert bob.post("/alerts/handover", **form).status_code == 303
    (note,) = [one for one in host.perform("alerts.list").document["open"] if one["kind"] == "handed_over"]
    assert "it is the disk again" in told(page_of(bob.get("/"), 200))
    page_of(bob.post("/alerts/handover", **{**form, "text": " "}), 400)
    page_of(bob.post("/alerts/handover", **{**form, "text": "x" * 2001}), 400)
    host.perform("alerts.acknowledge", operator=APPROVING, channel="cli", alert=note["position"], note="read")


def test_the_command_leaves_and_shows_notes(tmp_path: Path) -> None:
    workspace = fresh_example(tmp_path / "workspace")
    done = pmagent(workspace, "handover", "look at rack-3", "--operator", "ada", "--format", "json")
    assert done.code == 0, done.errors
    position = json.loads(done.out)["position"]
    (note,) = json.loads(pmagent(workspace, "handover", "--format", "json").out)["notes"]
    assert (note["position"], note["operator_id"], note["text"]) == (position, "ada", "look at rack-3")
    pmagent(workspace, "alerts", "--ack", str(position), "--note", "taken over", "--operator", "bert")
    assert json.loads(pmagent(workspace, "handover", "--format", "json").out) == {"notes": []}
    assert pmagent(workspace, "handover", "x" * 2001).code == 2
    assert pmagent(workspace, "handover", "--operator", "ada").code == 2
