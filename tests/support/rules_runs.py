"""Envelopes and tools' answers for the rules: a healthy kernel, of which a test changes what it is about."""

from __future__ import annotations

from typing import Any

from pmagent.actors.oa.reasoning.rules.answer import Answer, Evidence
from pmagent.actors.oa.reasoning.rules.engine import answer, permitted, plan
from pmagent.contracts.kernel import Mode
from pmagent.contracts.reasoning import PROGRAM_TOOLS, KernelStateRef, ProgramId, ReasoningEnvelope, check_envelope

Content = dict[str, Any]

NOW = "2026-03-01T12:00:00Z"
RECENT = "2026-03-01T11:00:00Z"
OLD = "2026-02-20T11:00:00Z"


def summary(**changed: Any) -> Content:
    """A reality summary that is green, recent, and knows of a backup."""
    checks = [{"name": name, "passed": True, "message": ""} for name in ("DMS Alignment", "Backup System")]
    return {"reality_green": True, "checks": checks, "timestamp": RECENT} | changed


class RulesRun:
    """One run: ``envelope`` and ``tools`` (tool id -> its answer, None: it fails) are changed, then ``ask`` answers."""

    def __init__(self, program: ProgramId, goal: str = "Improve the search page") -> None:
        self.program: ProgramId = program
        self.goal = goal
        self.mode: Mode = "NORMAL"
        self.bootstrap: Content = {"branch": "main", "meta": {"current_phase": "7"}}
        self.ssot: Content = {"current_phase": "7", "dms_share_alignment": "OK"}
        self.reality = summary()
        self.oa_state: Content = {}
        self.context: Content = {}
        self.allowed: list[Any] = list(PROGRAM_TOOLS[program])
        self.tools: dict[str, Content | None] = {}

    @property
    def envelope(self) -> ReasoningEnvelope:
        kernel = KernelStateRef(
            mode=self.mode, bootstrap=self.bootstrap, ssot_index=self.ssot, reality_summary=self.reality,
            oa_state=self.oa_state,
        )
        return check_envelope(ReasoningEnvelope(
            envelope_id="11111111-2222-3333-4444-555555555555", timestamp=NOW, program_id=self.program, goal=self.goal,
            kernel_state_ref=kernel, oa_context=self.context, tools_allowed=self.allowed,
        ))

    @property
    def evidence(self) -> list[Evidence]:
        healthy: dict[str, Content] = {
            "oa.kernel_status": {
                "mode": self.mode, "phase": "7", "branch": "main", "reality_green": True, "reasons": [],
            },
            "oa.reality_summary": self.reality,
            "oa.reality_check": {"reality_green": True, "provisional": False, "failed_checks": [], "timestamp": RECENT},
            "oa.ssot_surface": self.ssot, "oa.bootstrap_state": self.bootstrap,
            "oa.guard.run": {"ok": True, "mode": "HINT", "mismatches": [], "missing_surfaces": []},
        }
        made = []
        for tool, args in plan(self.envelope):
            result = (healthy | self.tools)[tool]
            made.append(Evidence(tool_id=tool, args=args, result=result, error="" if result else "no such file"))
        return made

    def ask(self) -> Answer:
        """The answer of a run: the envelope's objection, else the rules on the evidence."""
        return permitted(self.envelope) or answer(self.envelope, self.evidence)

    def verdict(self) -> str:
        """In one word: the verdict of the two programs that have one; "blocked" when there is none."""
        said = self.ask()
        if not said.permitted:
            return "blocked"
        payload: Any = said.payload
        return str(getattr(payload, "allowed_action", getattr(payload, "transition_status", "answered")))
