"""The pages of proposals over a live host: masked text, frames, what was forgotten, and two who decide at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pmagent.pla import reading
from pmagent.pla.demo.picture import picture
from pmagent.pla.vault import Vault
from tests.conftest import fresh_example
from tests.support.approving import (
    APPROVING,
    Approver,
    configure,
    forms,
    main_of,
    page_of,
    proposed,
    stand_by,
    told,
    until,
    view_of,
)
from tests.support.consoles import LiveHost, console, live_host

SECRET = "hunter2-correct-horse"


def credential(host: LiveHost) -> str:
    """An open proposal whose text is masked in the log."""
    made = proposed(host, f'type: "password: {SECRET}\\n"')
    assert made["masked"]
    return str(made["proposal_id"])


def revealed(bob: Approver, name: str) -> Any:
    """The page that shows it in plain."""
    (fields,) = forms(bob.card(name).source, f"/approvals/{name}/reveal")
    return bob.send(name, "reveal", fields)


def test_masked_text_is_shown_to_who_may_approve_when_they_ask(host: LiveHost, bob: Approver, eve: Approver) -> None:
    name = credential(host)
    for page in (bob.card(name), bob.card(name, "?decide=approve"), eve.card(name)):
        assert SECRET not in page.source
        assert "this is not what would be typed" in told(page)
        assert forms(page.source, f"/approvals/{name}/approve") == []
    answer = revealed(bob, name)
    page = page_of(answer, 200)
    assert SECRET in told(page)
    assert "--acknowledge-credentials" in page.source, "the command beside the form is refused without it"
    assert answer.headers["cache-control"] == "no-store"
    assert SECRET not in bob.card(name).source


def test_masked_text_is_not_revealed_on_a_machine_that_stands_by(
    host: LiveHost, bob: Approver, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = credential(host)
    stand_by(monkeypatch)
    page = bob.card(name)
    assert "reveal it on the holder's machine" in told(page)
    assert not forms(page.source, f"/approvals/{name}/reveal")


def test_masked_text_is_approved_only_where_it_was_revealed_and_acknowledged(
    host: LiveHost, bob: Approver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pmagent.actors.pla.warden.approvals.CREDENTIAL_SECONDS", 0.0)
    name = credential(host)
    (fields,) = forms(revealed(bob, name).text, f"/approvals/{name}/approve")
    fields |= {"read": "yes", "first": fields["digest"][:6]}
    hidden = {key: value for key, value in fields.items() if key != "revealed"}
    assert "reveal it" in told(page_of(bob.send(name, "approve", {**hidden, "acknowledged": "yes"}), 422))
    again = page_of(bob.send(name, "approve", fields), 422)
    assert "Confirm that you know" in told(again)
    assert SECRET in told(again)
    assert bob.send(name, "approve", {**fields, "acknowledged": "yes"}).status_code == 303
    assert view_of(host, name)["outcome"] == "recorded"
    assert "Credentials acknowledged" in told(bob.card(name))


def test_credentials_stand_for_a_while_before_they_are_approved(host: LiveHost, bob: Approver) -> None:
    name = credential(host)
    (fields,) = forms(revealed(bob, name).text, f"/approvals/{name}/approve")
    fields |= {"read": "yes", "first": fields["digest"][:6], "acknowledged": "yes"}
    page = page_of(bob.send(name, "approve", fields), 409)
    assert "Not yet" in told(page)
    assert SECRET not in page.source
    assert view_of(host, name)["stands"] == "open"


def test_what_nobody_holds_any_more_cannot_be_revealed_or_approved(host: LiveHost, bob: Approver) -> None:
    name = credential(host)
    host.host.resources[Vault].drop(view_of(host, name)["digest"])
    page = page_of(revealed(bob, name), 200)
    assert "propose it again" in told(page)
    assert forms(page.source, f"/approvals/{name}/approve") == []


# --- when something is away -----------------------------------------------------------------------------------------


def test_a_proposal_that_the_warden_forgot_is_read_from_the_log(
    host: LiveHost, bob: Approver, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = proposed(host, "type: long ago")["proposal_id"]
    assert bob.approve(name).status_code == 303
    before = main_of(bob.card(name))
    state = reading.warden(host.host.runtime.engine)
    monkeypatch.delitem(state.proposals, name)
    assert main_of(bob.card(name)) == before


def test_without_a_daemon_the_page_says_so(tmp_path: Path) -> None:
    workspace = configure(fresh_example(tmp_path / "workspace"))
    with ExitStack() as daemon:
        daemon.enter_context(live_host(workspace))
        with console(workspace, APPROVING) as browser:
            daemon.close()
            assert "The daemon is not reachable" in told(page_of(browser.get("/approvals"), 503))


def test_the_frame_that_it_rests_on_is_shown_with_what_was_read(host: LiveHost, bob: Approver, tmp_path: Path) -> None:
    (tmp_path / "screen.png").write_bytes(picture())
    made = proposed(host, "type: seen", look=True, frames=str(tmp_path))
    page = bob.card(made["proposal_id"])
    (image,) = [attributes for attributes in page.all("img") if attributes.get("class") == "frame-picture"]
    assert image["src"] == f"/sessions/{made['session_id']}/frames/{made['frame']}"
    assert (image["width"], image["height"]) == ("64", "40")
    assert image["alt"]
    answer = bob.console.get(image["src"])
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    assert answer.content == picture()
    assert "nothing of it is obeyed" in told(page)


def test_what_comes_after_the_time_is_told_so_and_nothing_is_approved(tmp_path: Path) -> None:
    workspace = configure(fresh_example(tmp_path / "workspace"), "proposal_seconds = 0.5")
    with live_host(workspace) as host, console(workspace, APPROVING) as browser:
        bob = Approver(browser)
        name = proposed(host, "type: late")["proposal_id"]
        fields = bob.filled(name)
        state = host.host.runtime.engine
        until(host, lambda: reading.called(state, name).stands == "closed")
        page = page_of(bob.send(name, "approve", fields), 409)
        assert "Too late: it has expired" in told(page)
        assert "state open expired" in told(page)
        assert "Expired Nobody decided in time. Nothing was typed." in told(bob.card(name))
        assert "counts for nothing" in told(page_of(bob.send(name, "reject", {**fields, "reason": "late"}), 409))


def test_of_two_who_approve_at_the_same_time_one_does(host: LiveHost, bob: Approver) -> None:
    with console(host.workspace, "cleo") as browser, ThreadPoolExecutor(4) as threads:
        cleo = Approver(browser)
        for _ in range(3):
            name = proposed(host, "type: together")["proposal_id"]
            forms_ = {approver: approver.filled(name) for approver in (bob, cleo)}
            sent = {
                approver: [threads.submit(approver.send, name, "approve", form) for _ in range(2)]  # a double click
                for approver, form in forms_.items()
            }
            statuses = {approver: {one.result().status_code for one in answers} for approver, answers in sent.items()}
            winner = {APPROVING: bob, "cleo": cleo}[view_of(host, name)["decided_by"]]
            assert statuses == {approver: {303} if approver is winner else {409} for approver in (bob, cleo)}
