"""The documents that audits leave in the workspace, as their events come."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pmagent.actors.audit.justice.beside import by_rules
from pmagent.actors.audit.justice.synthesis import synthesize
from pmagent.actors.audit.progress import as_evidence, as_opinion
from pmagent.actors.audit.rubric import rubric_of
from pmagent.contracts.audit import AuditReport
from pmagent.contracts.audit_events import (
    AuditCancelRequested,
    AuditConcluded,
    AuditEvidenceFound,
    AuditFailed,
    AuditPdfRequested,
    AuditRequested,
    AuditSourceFailed,
    AuditSurveyed,
)
from pmagent.contracts.effect import RequestRefused
from pmagent.contracts.model import ModelAsked
from pmagent.events.event import Event
from pmagent.projections.audits.audits import Audits
from pmagent.projections.audits.paths import report_path, usable
from pmagent.projections.audits.rebuilt import report_of
from pmagent.projections.core.documents import Documents
from tests.support.audit_documents import DOCUMENT, JOB, REPORT, folded, shown, text, value, view
from tests.support.audits import AUDIT, Court, dimension, finding, rubric, survey
from tests.support.audits import said as opined
from tests.support.cases import each
from tests.support.run_folders import schema, sums

OTHER = "7d3f5a10-6f0c-4d0e-8c11-000000000002"


def concluded(**more: Any) -> Court:
    court = Court()
    court.ask(**more)
    assert isinstance(court.audit(), AuditConcluded)
    return court


def upto(court: Court, kind: type) -> list[Event]:
    """The history up to the first event of this kind, with it."""
    at = next(number for number, event in enumerate(court.history) if isinstance(event.data, kind))
    return court.history[: at + 1]


# --- jobs ------------------------------------------------------------------------------------------------------------


def test_a_job_goes_from_queued_over_running_to_complete() -> None:
    court = concluded()
    stages = [value(upto(court, kind)) for kind in (AuditRequested, AuditPdfRequested, AuditConcluded)]
    assert [one["status"] for one in stages] == ["queued", "running", "complete"]
    assert [one["progress"] for one in stages] == [0.0, 0.0, 1.0]
    for one in stages:
        schema("job/job_status")(one)
        assert one["service"] == "pmagent-audit"


def test_progress_grows_with_evidence_and_opinions_and_never_falls() -> None:
    court = concluded()
    begun = len(upto(court, AuditRequested))
    told = [value(court.history[:at])["progress"] for at in range(begun, len(court.history) + 1)]
    assert told == sorted(told)
    assert len(set(told)) > 3
    assert told[-1] == 1.0


def test_a_complete_job_names_the_report_and_the_score() -> None:
    court = concluded()
    told = value(court.history)
    score = court.of(AuditConcluded)[0].overall_score
    assert told["result"] == {
        "overall_score": score, "judged": 3, "not_judged": 1, "report": REPORT, "document": DOCUMENT,
    }  # fmt: skip
    assert "error" not in told


def test_while_an_audit_runs_there_is_only_its_job() -> None:
    court = concluded()
    assert set(shown(folded(upto(court, AuditEvidenceFound)))) == {JOB}
    assert set(shown(folded(court.history))) == {JOB, REPORT, DOCUMENT}


def test_a_failed_audit_leaves_no_report_and_names_what_was_collected() -> None:
    court = Court()
    court.pdf = lambda event: AuditSourceFailed(
        request=event.position, code="pdf_encrypted", text="the PDF wants a password", mend="give one without"
    )
    court.ask()
    assert isinstance(court.audit(), AuditFailed)
    assert set(shown(folded(court.history))) == {JOB}
    told = value(court.history)
    schema("job/job_status")(told)
    assert told["status"] == "failed"
    assert told["error"]["code"] == "pdf_encrypted"
    assert "the PDF wants a password" in told["error"]["detail"]
    assert "pieces of evidence on" in told["error"]["detail"]
    assert told["progress"] < 1
    assert "result" not in told


def test_a_cancelled_audit_has_failed() -> None:
    court = Court()
    court.clone = lambda _: None
    court.ask()
    court.tell(AuditCancelRequested(audit_id=AUDIT, reason="enough"), "c", AUDIT)
    told = value(court.history)
    assert (told["status"], told["error"]["code"]) == ("failed", "cancelled")
    assert "enough" in told["error"]["detail"]


def test_an_audit_that_the_engine_refuses_has_failed() -> None:
    court = concluded()
    request = upto(court, AuditRequested)[-1]
    refused = RequestRefused(request=request.position, name="auditor", reason="halted")
    events = [*upto(court, AuditRequested), request_end(request, refused)]
    told = value(events)
    assert (told["status"], told["error"]["code"]) == ("failed", "halted")
    assert "auditor is halted" in told["error"]["detail"]


def request_end(request: Event, end: RequestRefused) -> Event:
    return Event(
        request.position + 1, request.time, "engine", "decision", "e", "request.refused", request.correlation,
        request.position, end, b"",
    )  # fmt: skip


@each(
    "document", [{}, {"dimensions": 1}, {"dimensions": [1, {"id": 2}], "rubric_metadata": []}]
)
def test_a_request_with_a_rubric_that_nobody_checked_still_has_its_job(document: dict[str, Any]) -> None:
    asked = upto(concluded(), AuditRequested)[-1]
    data = msgspec.structs.replace(asked.data, rubric=document)
    told = value([msgspec.structs.replace(asked, data=data)])
    assert told["status"] == "queued"


# --- ids and outputs -------------------------------------------------------------------------------------------------


def test_a_second_request_with_the_id_of_an_open_audit_changes_nothing() -> None:
    court = Court()
    court.clone = lambda _: None
    court.ask()
    before = value(court.history)
    court.tell(court.of(AuditRequested)[0], "again", AUDIT)
    assert court.of(AuditFailed)[0].code == "known"
    assert value(court.history)["status"] == before["status"] == "running"


def test_the_end_of_another_request_is_no_end() -> None:
    court = concluded()
    begun = upto(court, AuditEvidenceFound)
    end = court.events(AuditConcluded)[0]
    stray = msgspec.structs.replace(end, data=msgspec.structs.replace(end.data, request=end.data.request + 1))
    assert value([*begun, stray])["status"] == "running"


def test_an_id_that_is_asked_for_again_begins_anew() -> None:
    court = concluded()
    court.tell(court.of(AuditRequested)[0], "again", AUDIT)
    assert value(court.history)["status"] == "running"
    while len(court.of(AuditConcluded)) < 2:
        assert court.step() or court.wake()
    assert value(court.history)["status"] == "complete"
    assert view(court.history).requested > 1


def test_the_later_audit_with_the_same_output_has_the_report() -> None:
    court = concluded()
    first = shown(folded(court.history))
    court.clone = surveyed
    court.ask(audit_id=OTHER, repo_url="https://example.org/team/other.git")
    running = shown(folded(court.history))
    assert running[REPORT] == first[REPORT], "until it has concluded"
    court.audit(OTHER)
    after = shown(folded(court.history))
    assert set(after) == {JOB, REPORT, DOCUMENT, f"jobs/{OTHER}.json"}
    assert "other.git" in after[REPORT].decode()
    assert json.loads(after[DOCUMENT])["report"]["audit_id"] == OTHER


def test_of_two_that_run_at_once_the_one_that_concludes_last_has_the_report() -> None:
    court = Court()
    court.clone = lambda event: None if event.data.audit_id == AUDIT else surveyed(event)
    court.ask()
    court.ask(audit_id=OTHER)
    court.audit(OTHER)
    assert value(court.history, DOCUMENT)["report"]["audit_id"] == OTHER
    court.clone = surveyed
    court.audit()
    assert value(court.history, DOCUMENT)["report"]["audit_id"] == AUDIT


def surveyed(event: Event) -> AuditSurveyed:
    return AuditSurveyed(request=event.position, survey=survey(finding("state.typed"), finding("security.shell")))


def test_an_older_report_never_comes_back_when_its_audit_is_given_out_late() -> None:
    """The file at a path is in the end of the audit that concluded last, in whatever order audits are retired."""
    court = concluded()
    for number in range(2, 6):
        court.ask(audit_id=OTHER[:-1] + str(number), repo_url=f"https://example.org/{number}.git")
        court.audit(OTHER[:-1] + str(number))
    documents = Documents([Audits(kept=1)])
    on_disk: dict[str, bytes] = {}
    for event in court.history:
        documents.fold([event], sums([event]))
        on_disk.update({path: part.content() for path, part in documents.take_retired().items()})  # type: ignore[misc]
    on_disk.update(shown(documents))
    assert "5.git" in on_disk[REPORT].decode()
    assert len(documents._states["audits"].jobs) == 1
    assert len(on_disk) == 2 + 5


def test_audits_that_hold_much_leave_the_state_sooner_and_the_newest_stays() -> None:
    court = concluded()
    court.ask(audit_id=OTHER)
    court.audit(OTHER)
    for bound, kept in ((1, {OTHER}), (view(court.history).weight * 2, {AUDIT, OTHER})):
        state = folded(court.history, projection=Audits(items=bound))._states["audits"]
        assert set(state.jobs) == kept


@each(
    "output",
    [
        "/etc/report", "../report", "audit/../../x", "", ".", "audit//x", ".pmagent/x", ".GIT/hooks/x", "share/x",
        "jobs/x", "runs/x", f"elsewhere/{OTHER}/report", "audit/x.md/y", "audit/x.JSON/y", "a" * 300, "a/" * 600 + "x",
        "nul\0byte",
    ],
)  # fmt: skip
def test_a_report_never_lies_where_something_else_rules(output: str) -> None:
    assert not usable(output, AUDIT)
    assert report_path(output, AUDIT) == f"audit/report_{AUDIT}"


@each("output", ["audit/report_x", "report", "docs/über/x.y", f"audit/{AUDIT}", "audit/md"])
def test_elsewhere_it_lies_where_it_was_wanted(output: str) -> None:
    assert report_path(output, AUDIT) == output


def test_a_request_that_nobody_looked_at_gets_a_report_of_its_own() -> None:
    court = concluded(output="share/STATE")
    assert set(shown(folded(court.history))) == {JOB, f"audit/report_{AUDIT}.md", f"audit/report_{AUDIT}.json"}


# --- the report from its events --------------------------------------------------------------------------------------


def test_the_json_is_the_report_and_reads_back_as_one() -> None:
    court = concluded()
    document = value(court.history, DOCUMENT)
    report = AuditReport.model_validate(document["report"])
    assert report == report_of(view(court.history))
    assert report.audit_id == AUDIT
    assert report.overall_score == court.of(AuditConcluded)[0].overall_score
    last = court.events(AuditConcluded)[0]
    assert document["provenance"]["position"] == last.position
    assert document["provenance"]["sum"] == f"{last.position:064x}"


def divided(event: Event, asked: ModelAsked) -> msgspec.Struct | None:
    """Judges that disagree at first, one of whom makes evidence up; none has any on ``safety``, nor, in the second
    round, on ``tools``."""
    judge, number, criterion = asked.inputs["question"].split(" ", 2)
    if criterion == "safety" or (criterion == "tools" and number == "2"):
        return opined(event, asked, 5, cited_evidence=["made up"])
    first = {"Prosecutor": 1, "Defense": 5, "TechLead": 3}
    if number == "1":
        return opined(event, asked, first[judge])
    return opined(event, asked, 2, cited_evidence=["state#1"] if judge != "Defense" else ["state#99"])


@each("engine", ["rules", "langchain"])
def test_the_report_from_events_is_the_one_that_was_synthesized(engine: str) -> None:
    court = Court()
    court.model = divided
    safety = dimension("safety", goals=["security.shell"])
    court.ask(
        rubric(dimension("state"), safety, dimension("tools")), engine=engine, model="toy" if engine != "rules" else ""
    )
    assert isinstance(court.audit(), AuditConcluded)
    audit = view(court.history)
    evidences = {name: [as_evidence(one) for one in items] for name, items in audit.evidence.items()}
    report = synthesize(
        audit.asked.repo_url, rubric_of(court.of(AuditRequested)[0].rubric), evidences,
        [as_opinion(one.opinion) for one in audit.opinions], audit_id=AUDIT, engine=audit.engine, commit=audit.commit,
        report_sha256=audit.report_sha256,
    )  # fmt: skip
    beside = [by_rules(rubric_of(court.of(AuditRequested)[0].rubric), evidences)] if engine != "rules" else []
    assert report_of(audit) == report.model_copy(update={"beside": beside})
    if engine == "langchain":
        assert [one.score for one in report.criteria[0].first_round] == [1, 5, 3]
        assert report.criteria[0].set_aside == ["Defense"]
        assert [(one.dimension_id, one.unsupported) for one in report.not_judged] == [
            ("safety", ["made up"]), ("tools", ["made up"]),
        ]  # fmt: skip
        assert [one.score for one in report.not_judged[1].first_round] == [1, 5, 3]
        assert report.not_judged[1].dissent_summary is not None


def test_the_report_shows_where_it_can_be_rebuilt_from() -> None:
    court = concluded()
    told = text(court.history)
    last = court.events(AuditConcluded)[0]
    assert f"position {last.position} of the log" in told
    assert f"{last.position:064x}" in told
    assert view(court.history).commit in told
    assert view(court.history).report_sha256 in told


def test_the_same_history_gives_the_same_bytes() -> None:
    court = concluded()
    assert shown(folded(court.history)) == shown(folded(court.history))
