"""The edges of all areas, and the core's own. All that a daemon performs, and may be asked, follows from these."""

from __future__ import annotations

from typing import Final

from pmagent.edge import Command, Commands, Edge, Operation, Section

CORE: Final = Edge(
    alerts="pmagent.service.alerts:tell",
    services=("pmagent.service.host:fail_with_log", "pmagent.service.inbox:serve_far"),
    operations={
        "status": Operation(
            perform="pmagent.service.operations:status", alone="pmagent.service.operations:status_alone", looks=True,
            quick="pmagent.service.operations:status_now", here=True, far=True,
        ),
        "ping": Operation(perform="pmagent.service.operations:ping", quick="pmagent.service.operations:pong", far=True),
        "figures": Operation(perform="pmagent.service.operations:figures", far=True),
        "settings": Operation(
            perform="pmagent.service.operations:settings", alone="pmagent.service.operations:settings_alone",
            looks=True, here=True,
        ),
        "rebuild": Operation(
            perform="pmagent.service.operations:rebuild", alone="pmagent.service.operations:rebuild_alone", here=True
        ),
        "control.pause": Operation(
            perform="pmagent.service.control:pause", lowers=True, stops=True, unwritten=True, again=True, far=True,
        ),
        "control.resume": Operation(perform="pmagent.service.control:resume", unwritten=True, again=True, far=True),
        "console.note": Operation(
            perform="pmagent.service.control:note", lowers=True,
            stops=lambda arguments: arguments.get("what") == "signed_out", far=True,
        ),
        "console.checked": Operation(perform="pmagent.service.control:checked", far=True),
    },
    views=tuple(
        f"pmagent.console.pages.views.{name}"
        for name in (
            "now", "control", "search", "log", "event", "integrity", "settings", "help", "theme", "entrance",
            "passkeys",
        )
    ),
    sections=(
        Section(
            0, "now", "/", "Now", "n",
            "How everything stands, what runs, and the stop switch.",
            ("pmagent", "status"),
        ),
        Section(
            80, "log", "/log", "Log", "l",
            "Every event, as it comes; any of them with its causes and consequences.",
            ("pmagent", "log", "tail", "-f"),
        ),
        Section(
            90, "integrity", "/integrity", "Integrity", "i",
            "Whether the log is whole, and the documents are what it says.",
            ("pmagent", "log", "verify"),
        ),
        Section(
            95, "settings", "/settings", "Settings", "e",
            "Permits that are live, what was refused and why, operators, and the settings that hold.",
            ("pmagent", "doctor"),
        ),
        Section(99, "help", "/help", "Help", "h", "This page.", ("pmagent", "help")),
    ),
)  # fmt: skip

KERNEL: Final = Edge(
    area="kernel",
    resources="pmagent.workspace.watching:resources",
    performers=("pmagent.actors.kernel.effects:PERFORMERS",),
    ready="pmagent.workspace.watching:surfaces_read",
    services=("pmagent.workspace.watching:watch_surfaces",),
    status="pmagent.actors.kernel.actor:status",
    commands={
        "kernel": Commands(
            "recompute the kernel surfaces",
            "The kernel surfaces of this workspace.",
            {"refresh": Command("pmagent.cli.workspace:refresh", "recompute and write the surfaces")},
        ),
    },
)

CLOCK: Final = Edge(area="clock", performers=("pmagent.actors.clock.effects:PERFORMERS",))

OA: Final = Edge(
    area="oa",
    performers=("pmagent.actors.oa.effects:PERFORMERS", "pmagent.oa.effects:PERFORMERS"),
    status="pmagent.actors.oa.state:status",
    operations={
        "oa.snapshot": Operation(
            perform="pmagent.oa.operations:snapshot", absent="pmagent.oa.operations:no_snapshot", again=True, far=True,
        ),
        "boot.oa": Operation(perform="pmagent.oa.operations:boot", again=True, far=True),
        "oa.permits": Operation(perform="pmagent.oa.operations:permits", far=True),
        "oa.permit": Operation(perform="pmagent.oa.operations:permit", far=True),
        "oa.permit_release": Operation(perform="pmagent.oa.operations:permit_release", again=True, far=True),
        "oa.view": Operation(perform="pmagent.oa.operations:view", far=True),
        "oa.context": Operation(perform="pmagent.oa.operations:context", far=True),
        "oa.reason": Operation(
            perform="pmagent.oa.requests:reason", seconds="pmagent.oa.requests:answer_seconds", configured=True,
            unpaused=True, far=True,
        ),
    },
    commands={
        "oa": Commands(
            "OA state, guards, reasoning",
            "The orchestrator assistant: its state, its guards, its reasoning.",
            {
                "snapshot": Command("pmagent.cli.oa:snapshot", "read the surfaces, write STATE.json"),
                "release": Command("pmagent.cli.oa:release", "give a permit back before it expires"),
                "guard": Command("pmagent.cli.oa:guard", "run a guard; one JSON report"),
                "decision": Command("pmagent.cli.oa_reasoning:decision", "ask whether an action is safe now"),
                "generate": Command("pmagent.cli.oa_reasoning:generate", "generate an OPS block for a goal"),
                "interpret": Command("pmagent.cli.oa_reasoning:interpret", "explain why a guard failed"),
                "transition": Command("pmagent.cli.oa_reasoning:transition", "ask whether a phase may begin"),
                "context": Command("pmagent.cli.oa_context:context", "show or write the task context"),
            },
        ),
        "boot": Commands(
            "boot an OA session",
            "Boot a session.",
            {"oa": Command("pmagent.cli.oa:boot", "boot an OA session")},
        ),
    },
    views=("pmagent.console.pages.views.sessions",),
    sections=(
        Section(
            40, "sessions", "/sessions", "Sessions", "s",
            "Sessions of the lab assistant and of the OA, with their chains checked.",
            ("pmagent", "pla", "status"),
        ),
    ),
)  # fmt: skip

MODEL: Final = Edge(
    area="model",
    resources="pmagent.actors.model.effects:resources",
    performers=("pmagent.actors.model.effects:performers",),
)

CHECKS: Final = Edge(
    area="checks",
    performers=("pmagent.actors.checks.effects:PERFORMERS",),
    folders=("pmagent.actors.checks.effects:FOLDER",),
    operations={
        "kernel.checks": Operation(
            perform="pmagent.workspace.checks:checks", seconds="pmagent.workspace.checks:answer_seconds",
            configured=True, far=True, own=("reads",), there="kernel.check_reads names files of the holder's machine",
        ),
        "kernel.refresh": Operation(
            perform="pmagent.workspace.checks:refresh", seconds="pmagent.workspace.checks:refresh_seconds",
            configured=True, far=True,
        ),
    },
)  # fmt: skip

ORCHESTRA: Final = Edge(
    area="orchestra",
    resources="pmagent.workers.placing:resources",
    performers=("pmagent.actors.orchestra.planning.effects:PERFORMERS", "pmagent.workers.placing:performers"),
    folders=("pmagent.actors.orchestra.running.effects:FOLDER",),
    ends="pmagent.jobs.asking:end_runs",
    operations={
        "orchestra.run": Operation(perform="pmagent.jobs.asking:ask_run", configured=True, again=True, far=True),
        "orchestra.cancel": Operation(
            perform="pmagent.jobs.asking:cancel_run", lowers=True, stops=True, unwritten=True, again=True, far=True,
        ),
        "orchestra.written": Operation(perform="pmagent.jobs.asking:written", lowers=True, again=True, far=True),
        "orchestra.apply": Operation(perform="pmagent.orchestra.applying:approve", far=True),
        "orchestra.applied": Operation(perform="pmagent.orchestra.applying:ended", lowers=True, far=True),
    },
    commands={
        "worker": Command("pmagent.cli.worker:worker", "make the attempts of runs of other hosts on this one"),
        "run": Command("pmagent.cli.run:run", "have a task done by tools in sandboxes"),
        "rerun": Command("pmagent.cli.run:rerun", "repeat a run, or what failed in it"),
        "runs": Command("pmagent.cli.jobs:runs", "the runs there were, or one of them"),
        "logs": Command("pmagent.cli.logs:logs", "what the tasks of a run wrote"),
        "apply": Command("pmagent.cli.apply:apply", "commit the files that a run's tasks left"),
        "prune": Command("pmagent.cli.prune:prune", "remove what old runs left on disk"),
    },
    views=("pmagent.console.pages.views.runs",),
    sections=(
        Section(
            20, "runs", "/runs", "Runs", "r",
            "Plans of tasks: their graph, their time, their output.",
            ("pmagent", "runs"),
        ),
    ),
)  # fmt: skip

AUDIT: Final = Edge(
    area="audit",
    performers=("pmagent.actors.audit.effects:PERFORMERS",),
    folders=("pmagent.actors.audit.effects:FOLDER",),
    ends="pmagent.jobs.asking:end_audits",
    operations={
        "audit.run": Operation(
            perform="pmagent.jobs.asking:ask_audit", configured="pmagent.audit.source:lies_here", again=True, far=True,
            own=("pdf_path",), content=("pdf",), there="pmagent audit sends the report along",
        ),
        "audit.cancel": Operation(
            perform="pmagent.jobs.asking:cancel_audit", lowers=True, stops=True, unwritten=True, again=True, far=True,
        ),
    },
    commands={
        "audit": Command("pmagent.cli.audit:audit", "judge a repository and its report"),
        "audit diff": Command("pmagent.cli.audit_diff:diff", "compare the reports of two audits"),
        "audits": Command("pmagent.cli.jobs:audits", "the audits there were, or one of them"),
        "graph": Commands(
            "check LangGraph programs",
            "LangGraph programs, read from their source; nothing of them is run.",
            {"lint": Command("pmagent.cli.graph:lint", "find faults in the graphs of a program")},
        ),
        "rubric": Commands(
            "make rubrics",
            "Rubrics: what an audit judges.",
            {"convert": Command("pmagent.cli.rubric:convert", "make a published rubric usable here")},
        ),
    },
    views=("pmagent.console.pages.views.audits",),
    sections=(
        Section(
            30, "audits", "/audits", "Audits", "u",
            "Judged repositories: scores, opinions and the evidence beside them.",
            ("pmagent", "audits"),
        ),
    ),
)  # fmt: skip

_FRAMES: Final = "leave --frames out: the holder takes those of its own settings"

PLA: Final = Edge(
    area="pla",
    resources="pmagent.pla.vault:resources",
    performers=("pmagent.actors.pla.frames.performer:FRAME_PERFORMERS", "pmagent.pla.vault:performers"),
    services=("pmagent.pla.linking:link_device",),
    alerts="pmagent.pla.alerts:tell",
    open="pmagent.pla.reading:open_work",
    ends="pmagent.pla.operations:end_adopted",
    by_hand="an armed device disarms itself within 2 s; hit the switch on the device to end it at once",
    operations={
        "pla.mode": Operation(
            perform="pmagent.pla.operations:mode", seconds="pmagent.pla.arguments:observed_seconds", unwritten=True,
            stops=lambda arguments: arguments.get("mode") in ("OBSERVE", "SUGGEST"),  # SUGGEST, where it is EXECUTE
            outlives="pmagent.pla.operations:lowers_mode", again=True, far=True,
        ),
        "pla.propose": Operation(
            perform="pmagent.pla.operations:propose", seconds="pmagent.pla.arguments:model_seconds", configured=True,
            again=True, far=True, own=("frames",), there=_FRAMES,
        ),
        "pla.observe": Operation(
            perform="pmagent.pla.operations:observe", seconds="pmagent.pla.arguments:frame_seconds", configured=True,
            again=True, far=True, own=("frames",), there=_FRAMES,
        ),
        "pla.decide": Operation(perform="pmagent.pla.operations:decide", again=True, far=True),
        "pla.outcome": Operation(
            perform="pmagent.pla.operations:outcome", seconds="pmagent.pla.arguments:outcome_seconds",
            alone="pmagent.pla.operations:read_alone", looks=True, far=True,
        ),
        "pla.arm": Operation(
            perform="pmagent.pla.operations:arm", seconds="pmagent.pla.arguments:observed_seconds", again=True,
            there="pmagent pla arm on the holder's machine: somebody who sees the device arms it",
        ),
        "pla.disarm": Operation(
            perform="pmagent.pla.operations:disarm", lowers=True, stops=True, unwritten=True, again=True, far=True,
        ),
        "pla.end": Operation(
            perform="pmagent.pla.operations:end", lowers=True, stops=True, unwritten=True, again=True, far=True
        ),
        **{
            f"pla.{name}": Operation(
                perform=f"pmagent.pla.operations:{act}", alone="pmagent.pla.operations:read_alone", looks=True,
                here=True, own=("reveal",), there="the holder's process keeps it: reveal it on the holder's machine",
            )
            for name, act in (("status", "status"), ("list", "listing"), ("show", "show"))
        },
    },
    commands={
        "pla": Commands(
            "type on a machine what is approved",
            "The portable lab assistant: types on a machine what an operator has approved, and nothing else.",
            {
                "status": Command("pmagent.cli.pla.looking:status", "mode, session, device, open proposal"),
                "mode": Command("pmagent.cli.pla.session:mode", "OBSERVE, SUGGEST or EXECUTE"),
                "observe": Command("pmagent.cli.pla.session:observe", "look at the newest frame"),
                "propose": Command("pmagent.cli.pla.proposing:propose", "ask for a proposal"),
                "list": Command("pmagent.cli.pla.looking:listing", "the newest proposals"),
                "show": Command("pmagent.cli.pla.looking:show", "exactly what would be typed"),
                "approve": Command("pmagent.cli.pla.deciding:approve", "approve it, once, for those bytes"),
                "reject": Command("pmagent.cli.pla.deciding:reject", "reject it, with a reason"),
                "arm": Command("pmagent.cli.pla.device:arm", "let the device type what is approved"),
                "disarm": Command("pmagent.cli.pla.device:disarm", "end what it types"),
                "device": Command("pmagent.cli.pla.port:device", "which devices there are, how ours stands"),
                "end": Command("pmagent.cli.pla.session:end", "end the session"),
                "verify-log": Command("pmagent.cli.pla.verify:verify_log", "check session logs"),
                "demo": Command("pmagent.cli.pla.demo:demo", "a session on a device to try things with"),
                "practice": Command("pmagent.cli.pla.practice:practice", "a device that shows here what it types"),
                "firmware": Command("pmagent.cli.pla.firmware:firmware", "make the board's files, or write them"),
            },
        ),
        "contracts": Commands(
            "check documents against the PLA's contracts",
            "The PLA's contracts: what proposals, decisions, executions, status and logs have to look like.",
            {
                "check": Command("pmagent.cli.contracts:check", "hold documents against them"),
                "list": Command("pmagent.cli.contracts:listing", "their names, version and hash"),
            },
        ),
    },
    views=("pmagent.console.pages.views.approvals", "pmagent.console.pages.views.frames"),
    sections=(
        Section(
            10, "approvals", "/approvals", "Approvals", "a",
            "What waits for a decision, byte for byte, and what was decided.",
            ("pmagent", "pla", "list"),
        ),
    ),
)  # fmt: skip

ALERTS: Final = Edge(
    area="alerts",
    services=("pmagent.alerts.notifying:notify",),
    status="pmagent.alerts.operations:status",
    operations={
        "alerts.list": Operation(
            perform="pmagent.alerts.operations:listing", alone="pmagent.alerts.operations:listing_alone", looks=True,
            here=True,
        ),
        "alerts.acknowledge": Operation(
            perform="pmagent.alerts.operations:acknowledge", lowers=True, unwritten=True, again=True, far=True,
        ),
        "alerts.handover": Operation(perform="pmagent.alerts.operations:hand_over", lowers=True, again=True, far=True),
        "notify.test": Operation(
            perform="pmagent.alerts.notifying:send_trial", seconds="pmagent.alerts.notifying:trial_seconds",
            configured=True, unwritten=True, far=True,
        ),
    },
    commands={
        "alerts": Command("pmagent.cli.alerts:alerts", "what somebody has to look at, and acknowledging it"),
        "handover": Command("pmagent.cli.alerts:handover", "leave a note for the next operator, or read those left"),
        "notify": Commands(
            "notifications of alerts and requests",
            "Notifications of alerts and requests, over the channels of the settings.",
            {"test": Command("pmagent.cli.alerts:notify_test", "send a trial message over each channel")},
        ),
    },
    views=("pmagent.console.pages.views.alerts",),
    sections=(
        Section(
            15, "alerts", "/alerts", "Alerts", "t",
            "What somebody has to look at, the gravest first, until it is acknowledged.",
            ("pmagent", "alerts"),
        ),
    ),
)  # fmt: skip

GUESTS: Final = Edge(
    area="guests",
    resources="pmagent.guests.gate:resources",
    services=("pmagent.guests.socket:serve",),
    status="pmagent.guests.operations:status",
    operations={
        "guests.approvals": Operation(
            perform="pmagent.guests.operations:approvals", alone="pmagent.guests.operations:approvals_alone",
            looks=True, here=True,
        ),
        "guests.sessions": Operation(perform="pmagent.guests.operations:sessions", far=True),
        "guests.policy": Operation(perform="pmagent.guests.operations:policy", far=True),
        "guests.written": Operation(
            perform="pmagent.guests.operations:written", alone="pmagent.guests.operations:written_alone", looks=True,
            here=True,
        ),
        "guests.policy_file": Operation(perform="pmagent.guests.policy_accept:file", far=True),
        "guests.policy_edit": Operation(perform="pmagent.guests.policy_accept:edit", far=True),
        "guests.answer": Operation(perform="pmagent.guests.operations:answer", again=True, far=True),
        "guests.note": Operation(perform="pmagent.guests.operations:note", lowers=True, again=True, far=True),
        "guests.import": Operation(
            perform="pmagent.guests.importing:perform", seconds="pmagent.guests.importing:seconds", lowers=True,
            there="copy the transcripts, which may hold secrets, to the holder's machine, and pmagent import there",
        ),
        "guests.wall": Operation(
            perform="pmagent.guests.walls:note", lowers=True, far=True, own=("started",),
            there="start the agent on the holder's machine: its calls are judged by the daemon there",
        ),
    },
    commands={
        "guests": Command("pmagent.cli.guests:guests", "the sessions of agents, or one of them"),
        "guests tail": Command("pmagent.cli.guests:tail", "follow what agents do"),
        "approvals": Command("pmagent.cli.guests:approvals", "agents' calls that wait for a decision"),
        "approvals show": Command("pmagent.cli.guests:show", "exactly what a call would do"),
        "approvals approve": Command("pmagent.cli.guests:approve", "let it through, once"),
        "approvals reject": Command("pmagent.cli.guests:reject", "refuse it"),
        "note": Command("pmagent.cli.guests:note", "note something in the log"),
        "connect": Command("pmagent.cli.connect:connect", "let a coding agent's hooks tell the log what it does"),
        "disconnect": Command("pmagent.cli.connect:disconnect", "undo that exactly"),
        "import": Command("pmagent.cli.guest_history:import_", "record what agents' transcripts hold"),
        "what-if": Command("pmagent.cli.guest_history:what_if", "judge the calls of the log by a policy"),
        "guest": Commands(
            "start agents behind the wall",
            "Agents that work behind the wall.",
            {"run": Command("pmagent.cli.guest_run:run", "start an agent in a sandbox")},
        ),
        "exec": Command("pmagent.cli.guest_exec:execute", "run a program as a guest"),
        "policy": Commands(
            "what agents may do here",
            "The policy: what the calls of agents are judged by.",
            {
                "init": Command("pmagent.cli.policy:init", "write a policy from a template"),
                "check": Command("pmagent.cli.policy:check", "say whether the policy can be used"),
                "explain": Command("pmagent.cli.policy:explain", "what would be decided of a call, and why"),
                "import": Command("pmagent.cli.policy:take_over", "print the rules of another program as a policy"),
            },
        ),
    },
    views=("pmagent.console.pages.views.agents", "pmagent.console.pages.views.policy"),
    sections=(
        Section(
            12, "agents", "/agents", "Agents", "g",
            "Agents under control: their sessions, calls and verdicts, and what waits for a decision.",
            ("pmagent", "guests"),
        ),
        Section(
            13, "policy", "/policy", "Policy", "p",
            "The rules for agents, how often each of them decided, and editing them.",
            ("pmagent", "policy", "check"),
        ),
    ),
)  # fmt: skip

EDGES: Final = (CORE, KERNEL, CLOCK, MODEL, CHECKS, ORCHESTRA, AUDIT, OA, PLA, ALERTS, GUESTS)
"""In the order in which help lists their commands."""

AREA_OF: Final = {name: edge.area for edge in EDGES for name in edge.operations}
"""The area of an operation; "": the core."""

OPERATIONS: Final = {name: operation for edge in EDGES for name, operation in edge.operations.items()}
"""Every operation, by name."""

SECTIONS: Final = sorted(section for edge in EDGES for section in edge.sections)
"""Those of the console's navigation, in their order."""
