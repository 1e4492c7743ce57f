"""The pages of proposals over a live host: what they show, what their forms do, and what is refused how."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pmagent.pla import reading
from pmagent.pla.demo.picture import picture
from tests.conftest import fresh_example
from tests.support.approving import (
    APPROVING,
    ASKING,
    LOOKING,
    Desk,
    buttons,
    configure,
    forms,
    page_of,
    proposed,
    told,
    until,
)
from tests.support.console_pages import Page
from tests.support.consoles import LiveHost, console, live_host


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHost]:
    """A live host; each test makes a proposal of its own."""
    workspace = fresh_example(tmp_path_factory.mktemp("approvals") / "workspace")
    with live_host(configure(workspace, 'credentials = "acknowledge"')) as live:
        yield live


@pytest.fixture(scope="module")
def bob(host: LiveHost) -> Iterator[Desk]:
    """Somebody who may approve, and asks for nothing."""
    with console(host.workspace, APPROVING) as browser:
        yield Desk(browser)


@pytest.fixture(scope="module")
def ada(host: LiveHost) -> Iterator[Desk]:
    """Somebody who may approve, and asks for all of it."""
    with console(host.workspace, ASKING) as browser:
        yield Desk(browser)


@pytest.fixture(scope="module")
def eve(host: LiveHost) -> Iterator[Desk]:
    """Somebody who may only look."""
    with console(host.workspace, LOOKING, "view") as browser:
        yield Desk(browser)


def view(host: LiveHost, name: str) -> dict[str, Any]:
    """How a proposal stands, as the command line has it."""
    return host.perform("pla.show", proposal_id=name).document


def main(page: Page) -> str:
    """The page's own part: what is not of the moment."""
    return page.source[page.source.index("<main") : page.source.index("</main>")]


# --- what is shown --------------------------------------------------------------------------------------------------


def test_a_card_has_every_fact_that_the_command_line_shows(host: LiveHost, bob: Desk) -> None:
    made = proposed(host, why="to see what is there, and why")
    page = bob.card(made["proposal_id"])
    text, shown = told(page), view(host, made["proposal_id"])
    assert shown["digest"] in page.text
    for fact in ("proposal_id", "rationale", "requested_by", "channel", "proposed_by", "proposed_in"):
        assert str(shown[fact]) in text, fact
    assert "ls·-la⏎" in page.text
    assert "7 characters, Enter 1 time" in text
    assert "6c 73 20 2d 6c 61 0a" in text
    assert "expires in" in text


def test_a_card_says_what_it_may_do_who_it_reaches_and_what_stops_it(host: LiveHost, bob: Desk) -> None:
    text = told(bob.card(proposed(host)["proposal_id"]))
    assert "high risk" in text
    assert "a line break: Enter runs or sends what stands there" in text
    assert "what Enter has run or sent is done" in text
    assert "no device is linked now" in text
    assert "14 reports, at least" in text
    assert "In SUGGEST an approval is recorded, and nothing is typed." in text
    assert "one operator, one proposal, exactly these bytes, once" in text


def test_a_card_tells_how_it_came_about_and_links_each_event(host: LiveHost, bob: Desk) -> None:
    made = proposed(host)
    page = bob.card(made["proposal_id"])
    assert "pla.proposal_requested" in told(page)
    assert f"/log/{made['position']}" in page.links()
    assert len([link for link in page.links() if link.startswith("/log/")]) >= 2


def test_a_card_shows_earlier_ones_of_the_same_bytes_and_what_came_of_them(host: LiveHost, bob: Desk) -> None:
    first = proposed(host, "type: earlier")
    assert bob.reject(first["proposal_id"], "not that one").status_code == 303
    page = bob.card(proposed(host, "type: earlier")["proposal_id"])
    assert f"/approvals/{first['proposal_id']}" in page.links()
    assert "the same bytes" in told(page)
    assert "not that one" in told(page)


def test_the_content_has_the_focus_and_comes_before_anything_that_acts(host: LiveHost, bob: Desk) -> None:
    page = bob.card(proposed(host)["proposal_id"], "?decide=approve")
    focused = [(tag, attributes) for tag, attributes in page.elements if "autofocus" in attributes]
    assert [tag for tag, _ in focused] == ["div"]
    assert page.source.index("autofocus") < page.source.index('class="act"')


def test_the_first_button_of_each_form_that_decides_is_disabled(host: LiveHost, bob: Desk) -> None:
    name = proposed(host)["proposal_id"]
    for word in ("approve", "reject"):
        page = bob.card(name, f"?decide={word}")
        first, *others = buttons(page.source, f"/approvals/{name}/{word}")
        assert "disabled" in first
        assert "hidden" in first
        assert len(others) == 1


def test_without_scripts_an_open_card_comes_again_and_a_form_stays_until_it_expires(host: LiveHost, bob: Desk) -> None:
    name = proposed(host)["proposal_id"]
    refresh = re.compile(r'<noscript><meta http-equiv="refresh" content="(\d+);url=/approvals/([^"]+)"></noscript>')
    plain, deciding = (refresh.search(bob.card(name, query).source) for query in ("", "?decide=approve"))
    assert plain is not None
    assert deciding is not None
    assert (plain[1], plain[2], deciding[2]) == ("5", name, name)
    assert 290 <= int(deciding[1]) <= 301
    assert bob.reject(name, "enough").status_code == 303
    assert refresh.search(bob.card(name).source) is None


def test_a_form_is_the_same_when_its_page_is_made_anew_and_another_in_another_tab(host: LiveHost, bob: Desk) -> None:
    name = proposed(host)["proposal_id"]
    first = bob.console.get(f"/approvals/{name}?decide=approve")
    second = bob.console.get(f"/approvals/{name}?decide=approve")
    assert first.status_code == second.status_code == 303
    assert first.headers["location"] != second.headers["location"]
    again = [forms(bob.console.page(first.headers["location"]), f"/approvals/{name}/approve") for _ in range(2)]
    assert again[0] == again[1]


def test_the_list_has_the_open_one_and_those_that_are_over(host: LiveHost, bob: Desk) -> None:
    over = proposed(host, "type: over")
    assert bob.reject(over["proposal_id"], "no").status_code == 303
    still = proposed(host, "keys: ctrl+c")
    page = page_of(bob.console.get("/approvals"), 200)
    assert {f"/approvals/{one['proposal_id']}" for one in (over, still)} <= set(page.links())
    assert told(page).index("Press ctrl + c") < told(page).index("Type 4 characters")
    assert "medium risk" in told(page)


def test_the_filters_of_the_list_stand_in_its_address(host: LiveHost, bob: Desk) -> None:
    over = proposed(host, "type: filtered")
    assert bob.reject(over["proposal_id"], "no").status_code == 303
    address = f"/approvals/{over['proposal_id']}"
    for query in ("stands=closed", "outcome=rejected", "by=bob", "by=ada", "stands=closed&outcome=rejected&by=bob"):
        assert address in page_of(bob.console.get(f"/approvals?{query}"), 200).links(), query
    for query in ("stands=open", "outcome=executed", "by=nobody"):
        assert address not in page_of(bob.console.get(f"/approvals?{query}"), 200).links(), query


@pytest.mark.parametrize("query", ["stands=ajar", "outcome=fine"])
def test_a_filter_that_is_not_known_is_refused(bob: Desk, query: str) -> None:
    assert "knows" in told(page_of(bob.console.get(f"/approvals?{query}"), 400))


def test_a_beginning_of_an_id_leads_to_the_proposal(host: LiveHost, bob: Desk) -> None:
    name = proposed(host)["proposal_id"]
    answer = bob.console.get(f"/approvals/{name[:20]}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/approvals/{name}")


@pytest.mark.parametrize("name", ["prop-none", "a" * 100, "%E2%80%AE", "prop-" + "f" * 32], ids=lambda name: name[:12])
def test_there_is_no_card_of_what_was_never_proposed(bob: Desk, name: str) -> None:
    page_of(bob.console.get(f"/approvals/{name}"), 404)


def test_a_beginning_that_several_ids_have_names_them(host: LiveHost, bob: Desk) -> None:
    names = [proposed(host)["proposal_id"] for _ in range(2)]
    assert names[0][:5] == names[1][:5]
    assert "proposals are called so" in told(page_of(bob.console.get(f"/approvals/{names[0][:5]}"), 404))


@pytest.mark.parametrize("word", ["approve", "reject", "reveal"])
def test_where_a_form_is_sent_the_card_is_found_too(host: LiveHost, bob: Desk, word: str) -> None:
    name = proposed(host)["proposal_id"]
    assert "Exactly this" in told(bob.card(f"{name}/{word}"))


# --- deciding -------------------------------------------------------------------------------------------------------


def test_an_approval_is_recorded_once_with_who_over_which_channel_and_what_was_seen(host: LiveHost, bob: Desk) -> None:
    made = proposed(host)
    answer = bob.approve(made["proposal_id"])
    assert (answer.status_code, answer.headers["location"]) == (303, f"/approvals/{made['proposal_id']}")
    shown = view(host, made["proposal_id"])
    assert (shown["outcome"], shown["decided_by"], shown["decided_over"]) == ("recorded", APPROVING, "console")
    text = told(bob.card(made["proposal_id"]))
    assert "Approved, and recorded by bob" in text
    assert "the same as above" in text
    assert "Mode seen SUGGEST" in text
    assert "Looked for" in text


def test_a_form_that_is_sent_twice_is_one_request(host: LiveHost, bob: Desk) -> None:
    name = proposed(host)["proposal_id"]
    fields = bob.filled(name)
    answers = [bob.send(name, "approve", fields) for _ in range(3)]
    assert [answer.headers["location"] for answer in answers] == [f"/approvals/{name}"] * 3
    assert told(bob.card(name)).count("pla.decision_requested") == 1


def test_a_second_tab_is_told_what_was_decided_and_by_whom(host: LiveHost, bob: Desk) -> None:
    name = proposed(host)["proposal_id"]
    tabs = [bob.filled(name), bob.filled(name)]
    assert bob.send(name, "approve", tabs[0]).status_code == 303
    page = page_of(bob.send(name, "approve", tabs[1]), 409)
    assert "Already decided" in told(page)
    assert "state open recorded by bob" in told(page)


def test_a_proposal_that_was_rejected_meanwhile_is_not_approved(host: LiveHost, bob: Desk, ada: Desk) -> None:
    name = proposed(host)["proposal_id"]
    fields = bob.filled(name)
    assert ada.reject(name, "I was wrong").status_code == 303
    page = page_of(bob.send(name, "approve", fields), 409)
    assert "state open rejected by ada" in told(page)
    assert "I was wrong" in told(page)
    assert view(host, name)["outcome"] == "rejected"


def test_a_mode_that_changed_meanwhile_is_told_and_nothing_is_approved(host: LiveHost, bob: Desk) -> None:
    name = proposed(host)["proposal_id"]
    fields = bob.filled(name)
    host.perform("pla.mode", operator=ASKING, channel="cli", mode="OBSERVE")
    page = page_of(bob.send(name, "approve", fields), 409)
    assert "mode SUGGEST OBSERVE" in told(page)
    assert view(host, name)["outcome"] == "withdrawn"


def test_bytes_of_another_proposal_are_shown_beside_its_own(host: LiveHost, bob: Desk) -> None:
    other = proposed(host, 'type: "other\\nsame\\n"')
    fields = bob.filled(other["proposal_id"])
    name = proposed(host, 'type: "mine\\nsame\\n"')["proposal_id"]
    page = page_of(bob.send(name, "approve", fields), 409)
    assert "This is about other bytes" in told(page)
    assert "- other⏎" in page.text
    assert "+ mine⏎" in page.text
    assert f"digest {other['digest']}" in told(page)
    assert view(host, name)["stands"] == "open"


@pytest.mark.parametrize("forged", ["mode", "digest"])
def test_a_form_that_says_two_things_is_none(host: LiveHost, bob: Desk, forged: str) -> None:
    name = proposed(host)["proposal_id"]
    fields = {**bob.filled(name), forged: {"mode": "EXECUTE", "digest": "0" * 64}[forged]}
    page_of(bob.send(name, "approve", fields), 400)
    assert view(host, name)["stands"] == "open"


@pytest.mark.parametrize(("field", "value"), [("read", ""), ("first", ""), ("first", "000000")])
def test_without_the_second_step_nothing_is_recorded(host: LiveHost, bob: Desk, field: str, value: str) -> None:
    name = proposed(host)["proposal_id"]
    before = host.position
    page = page_of(bob.approve(name, **{field: value}), 422)
    assert "Nothing was recorded yet" in told(page)
    assert host.position == before
    assert bob.send(name, "approve", {**bob.filled(name)}).status_code == 303


def test_low_risk_needs_no_digest_typed_but_the_box(host: LiveHost, bob: Desk) -> None:
    name = proposed(host, "type: hello")["proposal_id"]
    assert "first 6 characters of the digest" not in told(bob.card(name, "?decide=approve"))
    page_of(bob.approve(name, read="", first=""), 422)
    assert bob.approve(name, first="").status_code == 303


@pytest.mark.parametrize("reason", ["", " \n", "x" * 501], ids=["none", "blank", "too_long"])
def test_a_rejection_needs_a_reason_that_can_be_kept(host: LiveHost, bob: Desk, reason: str) -> None:
    name = proposed(host)["proposal_id"]
    before = host.position
    page_of(bob.reject(name, reason), 422)
    assert host.position == before
    assert view(host, name)["stands"] == "open"


def test_what_was_typed_is_still_there_when_a_form_comes_back(host: LiveHost, bob: Desk) -> None:
    name = proposed(host)["proposal_id"]
    page = page_of(bob.reject(name, "x" * 501), 422)
    (fields,) = forms(page.source, f"/approvals/{name}/reject")
    assert fields["reason"] == "x" * 501


def test_a_rejection_is_recorded_with_its_reason(host: LiveHost, bob: Desk) -> None:
    name = proposed(host)["proposal_id"]
    assert bob.reject(name, "the wrong window").status_code == 303
    text = told(bob.card(name))
    assert "Rejected by bob" in text
    assert "Reason the wrong window" in text
    assert view(host, name)["why"] == "the wrong window"


# --- who may not ----------------------------------------------------------------------------------------------------


def test_who_asked_for_it_finds_no_form_and_is_refused_what_they_send(host: LiveHost, bob: Desk, ada: Desk) -> None:
    name = proposed(host)["proposal_id"]
    page = ada.card(name, "?decide=approve")
    assert "another operator has to approve it" in told(page)
    assert forms(page.source, f"/approvals/{name}/approve") == []
    fields = bob.filled(name)
    refused = page_of(ada.send(name, "approve", {**fields, "csrf": ada.console.csrf()}), 403)
    assert "You asked for it yourself" in told(refused)
    assert view(host, name)["stands"] == "open"


def test_who_asked_for_it_may_take_it_back(host: LiveHost, ada: Desk) -> None:
    name = proposed(host)["proposal_id"]
    assert ada.reject(name, "a mistake").status_code == 303
    assert view(host, name)["decided_by"] == ASKING


def test_who_may_only_look_finds_no_form_and_is_refused(host: LiveHost, bob: Desk, eve: Desk) -> None:
    name = proposed(host)["proposal_id"]
    for query in ("", "?decide=approve", "?decide=reject"):
        page = eve.card(name, query)
        assert "your role is view" in told(page)
        assert not [
            one for word in ("approve", "reject", "reveal") for one in buttons(page.source, f"/approvals/{name}/{word}")
        ]
    for word, fields in (("approve", bob.filled(name)), ("reject", {"reason": "no"}), ("reveal", {})):
        assert eve.send(name, word, {**fields, "csrf": eve.console.csrf()}).status_code == 403
    assert view(host, name)["stands"] == "open"


# --- credentials ----------------------------------------------------------------------------------------------------

SECRET = "hunter2-correct-horse"


def credential(host: LiveHost) -> str:
    """An open proposal whose text is masked in the log."""
    made = proposed(host, f'type: "password: {SECRET}\\n"')
    assert made["masked"]
    return str(made["proposal_id"])


def revealed(bob: Desk, name: str) -> Any:
    """The page that shows it in plain."""
    (fields,) = forms(bob.card(name).source, f"/approvals/{name}/reveal")
    return bob.send(name, "reveal", fields)


def test_masked_text_is_shown_to_who_may_approve_when_they_ask(host: LiveHost, bob: Desk, eve: Desk) -> None:
    name = credential(host)
    for page in (bob.card(name), bob.card(name, "?decide=approve"), eve.card(name)):
        assert SECRET not in page.source
        assert "this is not what would be typed" in told(page)
        assert forms(page.source, f"/approvals/{name}/approve") == []
    answer = revealed(bob, name)
    page = page_of(answer, 200)
    assert SECRET in told(page)
    assert answer.headers["cache-control"] == "no-store"
    assert SECRET not in bob.card(name).source


def test_masked_text_is_approved_only_where_it_was_revealed_and_acknowledged(
    host: LiveHost, bob: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.pla.warden.approvals.CREDENTIAL_SECONDS", 0.0)
    name = credential(host)
    (fields,) = forms(revealed(bob, name).text, f"/approvals/{name}/approve")
    fields |= {"read": "yes", "first": fields["digest"][:6]}
    hidden = {key: value for key, value in fields.items() if key != "revealed"}
    assert "reveal it" in told(page_of(bob.send(name, "approve", {**hidden, "acknowledged": "yes"}), 422))
    again = page_of(bob.send(name, "approve", fields), 422)
    assert "Confirm that you know" in told(again)
    assert SECRET in told(again)
    assert bob.send(name, "approve", {**fields, "acknowledged": "yes"}).status_code == 303
    assert view(host, name)["outcome"] == "recorded"
    assert "Credentials acknowledged" in told(bob.card(name))


def test_credentials_stand_for_a_while_before_they_are_approved(host: LiveHost, bob: Desk) -> None:
    name = credential(host)
    (fields,) = forms(revealed(bob, name).text, f"/approvals/{name}/approve")
    fields |= {"read": "yes", "first": fields["digest"][:6], "acknowledged": "yes"}
    page = page_of(bob.send(name, "approve", fields), 409)
    assert "Not yet" in told(page)
    assert SECRET not in page.source
    assert view(host, name)["stands"] == "open"


def test_what_nobody_holds_any_more_cannot_be_revealed_or_approved(host: LiveHost, bob: Desk) -> None:
    name = credential(host)
    host.host.vault.drop(view(host, name)["digest"])
    page = page_of(revealed(bob, name), 200)
    assert "propose it again" in told(page)
    assert forms(page.source, f"/approvals/{name}/approve") == []


# --- when something is away -----------------------------------------------------------------------------------------


def test_a_proposal_that_the_warden_forgot_is_read_from_the_log(
    host: LiveHost, bob: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = proposed(host, "type: long ago")["proposal_id"]
    assert bob.approve(name).status_code == 303
    before = main(bob.card(name))
    state = reading.warden(host.host.runtime.engine)
    monkeypatch.delitem(state.proposals, name)
    assert main(bob.card(name)) == before


def test_without_a_daemon_the_page_says_so(tmp_path: Path) -> None:
    workspace = configure(fresh_example(tmp_path / "workspace"))
    with ExitStack() as daemon:
        daemon.enter_context(live_host(workspace))
        with console(workspace, APPROVING) as browser:
            daemon.close()
            assert "The daemon is not reachable" in told(page_of(browser.get("/approvals"), 503))


def test_the_frame_that_it_rests_on_is_shown_with_what_was_read(host: LiveHost, bob: Desk, tmp_path: Path) -> None:
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
    assert "it is shown, and obeyed by nobody" in told(page)


def test_what_comes_after_the_time_is_told_so_and_nothing_is_approved(tmp_path: Path) -> None:
    workspace = configure(fresh_example(tmp_path / "workspace"), "proposal_seconds = 0.5")
    with live_host(workspace) as host, console(workspace, APPROVING) as browser:
        bob = Desk(browser)
        name = proposed(host, "type: late")["proposal_id"]
        fields = bob.filled(name)
        state = host.host.runtime.engine
        until(host, lambda: reading.called(state, name).stands == "closed")
        page = page_of(bob.send(name, "approve", fields), 409)
        assert "Too late: it has expired" in told(page)
        assert "state open expired" in told(page)
        assert "Expired nobody decided in time. Nothing was typed." in told(bob.card(name))
        assert "counts for nothing" in told(page_of(bob.send(name, "reject", {**fields, "reason": "late"}), 409))


def test_of_two_who_approve_at_the_same_time_one_does(host: LiveHost, bob: Desk) -> None:
    with console(host.workspace, "cleo") as browser, ThreadPoolExecutor(4) as threads:
        cleo = Desk(browser)
        for _ in range(3):
            name = proposed(host, "type: together")["proposal_id"]
            forms_ = {desk: desk.filled(name) for desk in (bob, cleo)}
            sent = {
                desk: [threads.submit(desk.send, name, "approve", form) for _ in range(2)]  # as of a double click
                for desk, form in forms_.items()
            }
            statuses = {desk: {one.result().status_code for one in answers} for desk, answers in sent.items()}
            winner = {APPROVING: bob, "cleo": cleo}[view(host, name)["decided_by"]]
            assert statuses == {desk: {303} if desk is winner else {409} for desk in (bob, cleo)}
