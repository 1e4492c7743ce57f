"""Labelled examples of the older shapes, made up: a harbour's timetable service, its kernel, and what was decided."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

Content = dict[str, Any]

BOOTSTRAP = "phase=12, branch=quay/timetable, kernel_ok=true"
REALITY = "pass=true, last_run=2026-05-04T07:40:00Z"
SSOT = "Timetable, berth and crew documents aligned; HANDOFF_KERNEL.json present"
TIME = "2026-05-04T08:00:00Z"
TOOLS = ["oa.kernel_status", "oa.guard.run", "oa.berth.diff", "oa.handoff.preview"]
HEALTHY = {"phase": 12, "branch": "quay/timetable", "kernel_ok": True}
GREEN = ("oa.guard.run", {"name": "reality.green", "mode": "STRICT"}, {"ok": True})


def run(
    goal: str, expected: str, *calls: tuple[str, Content, Content], program: str = "SafeOPSDecision",
    status: Content | None = None, tools: list[str] | None = None, decision: Content | None = None, **kernel: str,
) -> Content:
    """One example of the shape {envelope, result}. ``expected``: "OK allowed" and the like."""
    label, allowed = expected.split()
    made = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{program}{goal}{expected}{calls}{kernel}"))
    surfaces = {"pm_bootstrap": BOOTSTRAP, "reality_green": REALITY, "ssot_surface": SSOT, "oa_state": "mode=STRICT"}
    told = [("oa.kernel_status", {}, HEALTHY if status is None else status), *calls]
    return {
        "envelope": {
            "envelope_id": made, "timestamp": TIME, "program_id": program, "goal": goal,
            "kernel_state_ref": surfaces | kernel,
            "oa_context": {"task": goal, "constraints": ["The harbour master decides."]},
            "tools_allowed": TOOLS if tools is None else tools,
        },
        "result": {
            "envelope_id": made, "program_id": program, "status": label,
            "decision": {"allowed": allowed == "allowed"} if decision is None else decision, "rationale": "",
            "tool_calls": [{"tool": tool, "args": args, "result": result} for tool, args, result in told],
            "diagnostics": [],
        },
    }


def step(current: int, proposed: int, expected: str, *open_items: str, **more: Any) -> Content:
    """A transition of phases, with a preview that lists open items."""
    preview = ("oa.handoff.preview", {"path": f"docs/{current}.md"}, {"ok": True, "blocking_items": list(open_items)})
    goal = f"May phase {current} to phase {proposed} be made?"
    told = HEALTHY | {"phase": current}
    return run(goal, expected, preview, program="PhaseTransitionValidator", status=told, **more)


def berths(**result: Any) -> tuple[str, Content, Content]:
    return ("oa.berth.diff", {}, result)


def form(given: Content, expected: Content, **kernel: Any) -> Content:
    """One example of the shape {input, expected_output}."""
    state = {"mode": "NORMAL", "phase": "12", "branch": "quay/timetable", "reality_green": True} | kernel
    return {"input": {"kernel_state": state} | given, "expected_output": expected}


SAFEOPS = [
    run("Reword the notice on the pier page", "OK allowed", GREEN),
    run("Add a field for tide heights", "OK allowed", GREEN),
    run("Tidy the colours of the map", "OK allowed"),
    run("Publish the summer plan", "OK allowed", GREEN, berths(unexpected=[], missing=[])),
    # the kernel or reality forbid
    run("Reword the notice", "BLOCKED denied", reality_green="pass=false, last_run=2026-05-04T07:40:00Z"),
    run("Reword it", "BLOCKED denied", ("oa.guard.run", {"name": "reality.green"}, {"ok": False, "failing": ["crew"]})),
    run("Reword the sign", "BLOCKED denied", pm_bootstrap="phase=12, kernel_ok=false"),
    run("Reword the board", "BLOCKED denied", status=HEALTHY | {"kernel_ok": False}),
    # the guards' tool is not there
    run("Reword the notice", "BLOCKED denied", tools=["oa.kernel_status", "oa.berth.diff"]),
    run("Reword the notice", "BLOCKED denied", tools=["oa.guard.run"]),
    run("Reword the notice", "BLOCKED denied", tools=[]),
    # evidence is stale
    run("Reword the notice", "BLOCKED denied", GREEN, reality_green="pass=true, last_run=2026-05-01T07:40:00Z"),
    run("Reword the notice", "BLOCKED denied", GREEN, reality_green="pass=true, last_run=2026-05-09T07:40:00Z"),
    run("Reword the notice", "BLOCKED denied", GREEN, reality_green="pass=true, stale=true"),
    run("Reword the notice", "BLOCKED denied", berths(ok=True, last_run="2026-04-28T00:00:00Z")),
    run("Reword the notice", "BLOCKED denied", berths(ok=True, evidence_age_hours=50)),
    # a check flaps, though it is green now
    run("Reword the notice", "DEGRADED allowed", berths(ok=True, flapping=True)),
    run("Reword the notice", "DEGRADED allowed", berths(ok=True, recent_failures=2)),
    run("Reword the notice", "DEGRADED allowed", reality_green=f"{REALITY}, previously failing"),
    run(
        "Reword the notice", "DEGRADED allowed",
        reality_green="pass=true (flapped twice), last_run=2026-05-04T07:40:00Z",
    ),
    run("Reword the notice", "DEGRADED allowed", berths(ok=False), berths(ok=True)),
    run("Reword the notice", "DEGRADED allowed", (GREEN[0], GREEN[1], {"ok": False}), GREEN),
    run("Reword the notice", "DEGRADED allowed", berths(ok=True, history=["pass", "fail", "pass"])),
    # much is at stake, though the guards are green
    run("Migrate the crew database to the new layout", "DEGRADED allowed", GREEN),
    run("A change of large blast radius in the berth planner", "DEGRADED allowed", GREEN),
    run("Purge the ships of last century", "DEGRADED allowed", GREEN),
    run("Rename the berths", "DEGRADED allowed", berths(ok=True, blast_radius="large")),
    # a check found something, or nothing at all
    run("Reword the notice", "DEGRADED denied", berths(ok=True), berths(ok=False)),
    run("Reword the notice", "DEGRADED denied", berths(error="the berth office does not answer")),
    run("Reword the notice", "DEGRADED allowed", berths()),
    run("Reword the notice", "DEGRADED denied", berths(unexpected_berths=["9b"], missing=[])),
    run("Reword the notice", "DEGRADED denied", GREEN, ssot_surface="Timetable and berth documents misaligned"),
]
PHASES = [
    step(12, 13, "OK allowed"),
    step(20, 21, "OK allowed"),
    step(12, 12, "DEGRADED denied", "it is phase 12 already"),
    step(12, 14, "DEGRADED denied", "phase 13 is left out"),
    step(13, 12, "DEGRADED denied", "there is no plan for the way back"),
    step(14, 15, "DEGRADED denied", "the pilots have not signed"),
    step(14, 15, "BLOCKED denied", reality_green="pass=false"),
]
OTHERS = [
    run("Run the guards", "OK allowed", program="OPSBlockGenerator",
        tools=["oa.kernel_status", "oa.handoff.preview"], decision={"ops_block": {"commands": ["x"]}}),
    run("Whatever", "OK allowed", program="OPSBlockGenerator", reality_green="pass=false",
        decision={"ops_block": {"commands": ["x"]}}),
    run("Why?", "DEGRADED allowed", program="GuardFailureInterpreter", reality_green="pass=false, checks failing",
        decision={"guard_name": "tides", "issue": "?", "remediation_steps": []}),
]  # fmt: skip
FORMS = [
    form({"proposed_action": "Reword the notice"}, {"decision": "ALLOW"}),
    form({"proposed_action": "Push it", "oa_context": {"constraints": ["no_git_push"]}}, {"decision": "DENY"}),
    form({"proposed_action": "Migrate the database"}, {"decision": "CONDITIONAL"}),
    form({"proposed_action": "Reword the notice"}, {"decision": "NO_GO"}, mode="DEGRADED"),
    form({"proposed_action": "Reword the notice"}, {"decision": "NO_GO"}, reality_green=False),
    form({"proposed_phase": 13, "phase_done_checklist": {"signed": True}}, {"allowed": True}),
    form({"proposed_phase": 13, "phase_done_checklist": {"signed": False}}, {"transition_status": "NOT_READY"}),
    form({"goal": "Refresh the surfaces"}, {"ops_block": "…", "commands": ["pmagent kernel refresh"]}),
    form({"guard_output": {"ok": False, "issues": ["x"]}}, {"root_cause": "x"}),
]


def write_examples(folder: Path) -> Path:
    """All of them as files of one folder."""
    for name, rows in {"safe": SAFEOPS, "steps": PHASES, "others": OTHERS, "forms": FORMS}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder
