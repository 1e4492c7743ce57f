"""The pages of audits over histories that the real actors made: the report's facts, and evidence beside opinions."""

from __future__ import annotations

import re
import socket
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from pmagent.console.auth.entrance import Visitor
from pmagent.contracts.audit_events import AuditCancelRequested, AuditOpinionGiven, AuditSourceFailed, AuditSurveyed
from pmagent.contracts.model import ModelAsked, ModelCallFailed, ModelLimits, ModelReplied
from pmagent.contracts.payload import typed
from pmagent.events.event import Event
from pmagent.events.reader import events
from pmagent.jobs.history import opened
from pmagent.projections.audits.report import blocks
from tests.conftest import fresh_example
from tests.support.audits import AUDIT, dimension, finding, rubric, said, survey
from tests.support.cases import each
from tests.support.consoles import console, live_host
from tests.support.hostile import CORPUS
from tests.support.pages import VISITOR, AuditCourt, assert_quiet, links, page, pages, read, recorded, text, written
from tests.support.rebuilt import documents_of

IDS = [f"00000000-0000-4000-8000-{number:012x}" for number in range(1, 8)]
"""The audits of the recorded history, the first first."""
ENDS = ("concluded", "concluded", "concluded", "failed", "failed", "failed", "cancelled")


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Pages over a recorded life with audits of every end."""
    with pages(recorded(tmp_path_factory.mktemp("audits"), "audits")) as client:
        yield client


def judged(event: Event, asked: ModelAsked, **more: Any) -> ModelReplied:
    """Judges who are far apart at first, and rest on nothing or on what is no evidence."""
    judge, _, criterion = asked.inputs["question"].split(" ", 2)
    score = {"Prosecutor": 1, "Defense": 5, "TechLead": 4}[judge]
    cites = [f"{criterion}#2", "nowhere#1"] if judge == "Prosecutor" else [f"{criterion}#1"]
    return said(event, asked, score, **{"cited_evidence": cites, **more})


# --- the list ------------------------------------------------------------------------------------------------------


def test_the_list_says_how_each_ended_and_its_score(lived: TestClient) -> None:
    shown = page(lived, "/audits")
    rows = [link for link in links(shown) if re.fullmatch(r"/audits/[0-9a-f-]{36}", link)]
    assert rows == [f"/audits/{name}" for name in reversed(IDS)]
    assert re.findall(r'data-label="Score">([^<]*)<', shown) == ["", "", "", "", "3/5", "3/5", "4.3/5"]


@each("state", ["open", "concluded", "failed", "cancelled", "refused"])
def test_a_filter_of_states_is_in_the_address(lived: TestClient, state: str) -> None:
    shown = page(lived, f"/audits?state={state}")
    rows = [link for link in links(shown) if re.fullmatch(r"/audits/[0-9a-f-]{36}", link)]
    assert rows == [f"/audits/{name}" for name, end in zip(IDS, ENDS, strict=True) if end == state][::-1]


def test_a_text_is_looked_for_in_repositories(lived: TestClient) -> None:
    assert "No audit is like that." in page(lived, "/audits?text=nowhere")
    assert IDS[0] in page(lived, "/audits?text=DEPCHECK")


@each("query", ["state=done", "after=x", "text=" + "x" * 201])
def test_an_address_that_is_not_understood_is_refused(lived: TestClient, query: str) -> None:
    assert lived.get(f"/audits?{query}").status_code == 400


def test_of_open_audits_the_list_says_what_they_do(tmp_path: Path) -> None:
    court = AuditCourt()
    court.clone = lambda _: None
    court.ask()
    with pages(written(tmp_path, court.history)) as client:
        shown = page(client, "/audits?state=open")
        words = re.findall(r'data-label="State"><span class="state busy"><span[^>]*>.</span>(\w+)<', shown)
        assert words == ["collecting"]


def test_without_a_log_the_list_says_how_to_begin(tmp_path: Path) -> None:
    (tmp_path / ".pmagent").mkdir()
    with pages(tmp_path) as client:
        assert "No audit yet." in page(client, "/audits")


# --- an audit ------------------------------------------------------------------------------------------------------


@each("name, end", list(zip(IDS, ENDS, strict=True)))
def test_a_page_says_how_it_ended(lived: TestClient, name: str, end: str) -> None:
    answer = lived.get(f"/audits/{name}")
    assert answer.status_code == 200
    assert answer.headers["x-orchestra-trace-id"] == name
    assert end in text(answer.text)
    assert 'data-live=""' in answer.text
    assert "Cancel this audit" not in answer.text


def test_failures_tell_why_and_what_would_mend_it(lived: TestClient) -> None:
    shown = text(page(lived, f"/audits/{IDS[4]}"))
    assert "What would mend it:" in shown
    assert "An operator wanted it to end: enough" in text(page(lived, f"/audits/{IDS[6]}"))


def test_the_report_is_told_whole(lived: TestClient) -> None:
    shown = text(page(lived, f"/audits/{IDS[1]}"))
    for part in ("3.0 of 5", "Summary", "Criterion by criterion", "Remediation plan", "What the judges said"):
        assert part in shown
    for criterion in ("State", "Safety", "Accuracy", "Diagram"):
        assert criterion in shown


def test_the_page_says_for_what_is_waited_and_how_others_score(tmp_path: Path) -> None:
    court = AuditCourt()

    def model(event: Event, asked: ModelAsked) -> msgspec.Struct:
        if asked.model == "toy" and event.data.attempt == 1:
            return ModelCallFailed(
                request=event.position, ask=event.data.ask, code="rate_limited", error="E", transient=True
            )
        return said(event, asked, 2 if asked.model == "second" else 4)

    court.model = model
    court.ask(
        rubric(dimension("state")), engine="langchain", model="toy", panel="second",
        model_limits=ModelLimits(patience_minutes=7, calls=100),
    )  # fmt: skip
    while not court.of(ModelCallFailed):
        court.step()
    with pages(written(tmp_path / "open", court.history)) as client:
        shown = text(page(client, f"/audits/{AUDIT}"))
        assert "Waiting for a model" in shown
        assert "“rate limited”" in shown
        assert "for at most 7 minutes" in shown
    court.audit()
    with pages(written(tmp_path / "over", court.history)) as client:
        shown = page(client, f"/audits/{AUDIT}")
        assert "Waiting for a model" not in text(shown)
        others = dict(re.findall(r'data-label="(rules|panel \(second\))">(\d)<', shown))
        assert others == {"rules": "5", "panel (second)": "2"}
        assert "9 calls (3 failed)" in text(shown)


def test_which_rule_changed_which_score_from_what_to_what(lived: TestClient) -> None:
    shown = page(lived, f"/audits/{IDS[2]}")
    table = text(shown[shown.index("What changed the score") :])
    assert "second round: 4 → 2.5" in table
    assert "rounding: 2.5 → 3" in table
    assert "second round: 4 → 2.5, Tech Lead's weight: 2.5 → 2.67, rounding: 2.67 → 3" in table
    rows = re.findall(r'<span class="mono small">(\w+)</span>([^/]*changed it|</th>)', shown)
    assert ("fact_supremacy", "</th>") in rows


def test_dissent_and_both_rounds_are_told(lived: TestClient) -> None:
    shown = text(page(lived, f"/audits/{IDS[2]}"))
    assert "The scores of the first round are 4 apart: Prosecutor 1, Defense 5, Tech Lead 4." in shown
    assert "Second round, which counts" in shown
    assert "First round" in shown
    assert "4 (set aside)" in shown


def test_a_citation_leads_to_the_evidence_beside_it(lived: TestClient) -> None:
    shown = page(lived, f"/audits/{IDS[1]}")
    ids = {made["id"] for _, made in read(shown).elements if "id" in made}
    anchors = {link[1:] for link in links(shown) if link.startswith("#")}
    assert len([anchor for anchor in anchors if anchor.startswith("e")]) > 8
    assert anchors <= ids
    assert "cited by Prosecutor, Defense, Tech Lead" in text(shown)


def test_what_is_no_evidence_is_marked_as_unsupported(lived: TestClient) -> None:
    shown = text(page(lived, f"/audits/{IDS[2]}"))
    assert "deep thought ✗ unsupported no evidence of this criterion" in shown
    assert "Unsupported citations: deep thought" in shown


def test_one_criterion_can_be_looked_at_by_itself(lived: TestClient) -> None:
    shown = page(lived, f"/audits/{IDS[1]}?criterion=safety")
    assert shown.count('class="card criterion"') == 1
    assert f"/audits/{IDS[1]}" in links(shown)
    answer = lived.get(f"/audits/{IDS[1]}?criterion=nothing")
    assert answer.status_code == 404
    assert "has no criterion" in text(answer.text)


def test_of_much_evidence_the_cited_is_shown_and_the_rest_is_a_page_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pmagent.console.pages.jobs.audit.ITEMS_MAX", 10)
    court = AuditCourt()
    court.model = judged
    court.ask(rubric(*(dimension(f"d{n}") for n in range(6))), engine="langchain", model="toy")
    court.audit()
    evidence = _evidence(court)
    with pages(written(tmp_path, court.history)) as client:
        whole = page(client, f"/audits/{AUDIT}")
        cited = 2 * len(evidence)
        assert whole.count('class="stack-of piece"') == cited < sum(map(len, evidence.values()))
        assert "1 more that nobody cites" in text(whole)
        one = page(client, f"/audits/{AUDIT}?criterion=d3")
        assert one.count('class="stack-of piece"') == len(evidence["d3"])
        assert "nobody cites" not in one


def _evidence(court: AuditCourt) -> dict[str, list[Any]]:
    found = {}
    for event in court.history:
        if event.type == "audit.evidence_found":
            found[event.data.dimension_id] = event.data.evidences
    return found


def test_what_was_not_judged_says_why(tmp_path: Path) -> None:
    court = AuditCourt()
    court.ask()
    court.audit()
    with pages(written(tmp_path, court.history)) as client:
        shown = page(client, f"/audits/{AUDIT}?criterion=diagram")
        assert "Not judged not inspected: no vision model" in text(shown)
        assert "not judged" in text(shown[: shown.index("Criterion by criterion")])


def test_what_could_not_be_read_is_told(tmp_path: Path) -> None:
    court = AuditCourt()
    court.pdf = lambda event: AuditSourceFailed(
        request=event.position, code="pdf_damaged", text="it is no PDF", mend="give another"
    )
    court.ask()
    court.audit()
    with pages(written(tmp_path, court.history)) as client:
        shown = text(page(client, f"/audits/{AUDIT}"))
        assert "it is no PDF" in shown
        assert "What would mend it: give another" in shown
        assert re.search(r"report ✗ failed \S+ it is no PDF", shown)


def test_an_open_audit_is_shown_as_far_as_it_is_and_goes_on(tmp_path: Path) -> None:
    court = AuditCourt()
    court.ask()
    court.audit()
    first = next(n for n, event in enumerate(court.history, 1) if isinstance(event.data, AuditOpinionGiven))
    with pages(written(tmp_path, court.history[:first])) as client:
        shown = page(client, f"/audits/{AUDIT}")
        assert 'data-live="audit.,model.call_failed,request.refused"' in shown
        assert "Cancel this audit" in shown
        assert "judging" in text(shown)
        assert "The report as files" not in shown
        assert client.get(f"/audits/{AUDIT}/report.md").status_code == 404
        written(tmp_path, court.history[first:])
        shown = page(client, f"/audits/{AUDIT}")
        assert 'data-live=""' in shown
        assert "The report as files" in shown


def test_only_who_may_approve_is_offered_to_cancel(tmp_path: Path) -> None:
    court = AuditCourt()
    court.ask()
    with pages(written(tmp_path, court.history), Visitor("vera", "view", "s", "c", VISITOR.since)) as client:
        assert "Cancel" not in text(page(client, f"/audits/{AUDIT}"))


@each("given", ["ffff", "00000000", "x", "0" * 37])
def test_an_id_that_means_no_audit_is_not_found(lived: TestClient, given: str) -> None:
    for address in (f"/audits/{given}", f"/audits/{given}/report.md"):
        assert lived.get(address).status_code == 404


def test_the_beginning_of_an_id_leads_to_the_whole(lived: TestClient) -> None:
    given = "00000000-0000-4000-8000-000000000001"[:-1] + "1"
    assert lived.get(f"/audits/{given}").status_code == 200


def test_a_run_s_id_is_no_audit_s(tmp_path: Path) -> None:
    court = AuditCourt()
    court.request({"a": []}, plan_only=True)
    name = court.history[-1].correlation
    with pages(written(tmp_path, court.history)) as client:
        assert client.get(f"/audits/{name}").status_code == 404


# --- files ---------------------------------------------------------------------------------------------------------


@each("ending", ["md", "json"])
def test_the_report_as_a_file_is_the_document_of_the_workspace(tmp_path: Path, ending: str) -> None:
    workspace = recorded(tmp_path, "audits")
    document = documents_of(workspace)[f"audit/report_depcheck.{ending}"]
    assert isinstance(document, bytes)
    with pages(workspace) as client:
        answer = client.get(f"/audits/{IDS[2]}/report.{ending}")
        assert answer.content == document
        digest = sha256(document)
        assert answer.headers["repr-digest"] == f"sha-256=:{b64encode(digest.digest()).decode()}:"
        assert answer.headers["content-disposition"].startswith(f'attachment; filename="report_depcheck.{ending}"')
        assert answer.headers["content-type"] == "application/octet-stream"
        shown = page(client, f"/audits/{IDS[2]}")
        assert digest.hexdigest() in shown
        assert f"/audits/{IDS[2]}/report.{ending}" in links(shown)


@each("ending", ["pdf", "MD", "md.bak", "%2e%2e"])
def test_there_is_no_other_file_of_an_audit(lived: TestClient, ending: str) -> None:
    assert lived.get(f"/audits/{IDS[2]}/report.{ending}").status_code == 404


# --- hostile texts -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Pages over an audit for each text, in whose every field it stands."""
    court = AuditCourt()
    for number, name in enumerate(CORPUS):
        evil = evil_of(name)
        found = [finding("state.typed", evil[:200], 3, text=evil), finding("state.reducers", evil[:200], 4, text=evil)]
        court.clone = lambda event, found=found, evil=evil: AuditSurveyed(  # type: ignore[misc]
            request=event.position, survey=survey(*found, branch=evil[:90])
        )
        court.model = lambda event, asked, evil=evil: judged(  # type: ignore[misc]
            event, asked, argument=evil, cited_evidence=[evil[:150], f"{asked.inputs['question'].split(' ', 2)[2]}#1"]
        )
        names = {"name": evil[:150], "forensic_instruction": evil, "success_pattern": evil, "failure_pattern": evil}
        document = rubric(msgspec.convert({**dimension("state"), **names}, dict[str, Any]))
        court.ask(
            document, audit_of(number), repo_url=evil, pdf_path=f"/{evil}", rubric_source=evil[:200],
            engine="langchain", model="toy",
        )  # fmt: skip
        court.audit(audit_of(number))
    with pages(written(tmp_path_factory.mktemp("hostile"), court.history)) as client:
        yield client


def audit_of(number: int) -> str:
    """The id of an audit."""
    return f"7d3f5a10-6f0c-4d0e-8c11-{number + 100:012}"


def evil_of(name: str) -> str:
    """A hostile text, with markup behind it."""
    return CORPUS[name][:600].replace("\0", "") + '<script>alert(1)</script><a href="https://evil.example">x</a>'


@each("name", CORPUS)
def test_hostile_texts_stay_texts_on_every_page(hostile: TestClient, name: str) -> None:
    address = f"/audits/{audit_of(list(CORPUS).index(name))}"
    shown = page(hostile, address)
    assert_quiet(shown)
    assert "evil.example" in text(shown), "it is told all the same"
    assert_quiet(page(hostile, f"{address}?criterion=state"))


def test_the_list_of_hostile_audits_is_quiet(hostile: TestClient) -> None:
    assert_quiet(page(hostile, "/audits"))
    assert_quiet(hostile.get("/audits?criterion=%3Cscript%3E&text=%1b").text)
    assert_quiet(hostile.get(f"/audits/{audit_of(0)}?criterion=%3Cscript%3E").text)


@each(
    "given, made",
    [("", []), ("one\n\ntwo", [("p", ["one"]), ("p", ["two"])]), ("- a\n- b\nc", [("ul", ["a", "b"]), ("p", ["c"])])],
)
def test_paragraphs_and_lists_are_told_apart(given: str, made: list[tuple[str, list[str]]]) -> None:
    assert blocks(given) == made


# --- ending one ----------------------------------------------------------------------------------------------------


def test_an_operator_ends_an_audit_and_is_named(tmp_path: Path) -> None:
    """The repository takes the connection, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        court = AuditCourt()
        court.ask(repo_url=f"http://127.0.0.1:{silent.getsockname()[1]}/x.git", document=rubric(dimension("state")))
        workspace = written(fresh_example(tmp_path / "workspace"), court.history)
        with live_host(workspace) as host, console(workspace) as ada, console(workspace, "vera", "view") as vera:
            assert vera.post(f"/audits/{AUDIT}/cancel", reason="no").status_code == 403
            assert ada.post(f"/audits/{AUDIT}/cancel").status_code == 400
            answer = ada.post(f"/audits/{AUDIT}/cancel", reason="of no use")
            assert (answer.status_code, answer.headers.get("location")) == (303, f"/audits/{AUDIT}")
            shown = text(ada.page(f"/audits/{AUDIT}"))
            assert "ada (console) wanted it to end: of no use" in shown
            assert "cancelled" in shown
            assert ada.post(f"/audits/{AUDIT}/cancel", reason="again").status_code == 409
            with opened(host.host.layout) as jobs:
                wanted = [typed(one).data for one in events(jobs.storage) if one.type == "audit.cancel_requested"]
    assert wanted[0] == AuditCancelRequested(audit_id=AUDIT, reason="of no use", operator_id="ada", channel="console")
