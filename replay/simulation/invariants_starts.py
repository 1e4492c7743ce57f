"""The laws of each start of an effect, computed from the events themselves.

``Starts`` follows a history as it becomes durable, so that a start is looked at without going through all of it.
"""

from __future__ import annotations

from collections import Counter

from msgspec import UnsetType

from pmagent.actors.kernel.mode import NO_SURFACES, are_absent
from pmagent.actors.oa.policy import allows
from pmagent.contracts.effect import EffectCancelRequested, EffectRefused
from pmagent.contracts.kernel import KernelModeDecided, KernelObserved
from pmagent.contracts.model import ModelAsked, ModelCallRequested
from pmagent.contracts.oa import OaPermitGranted, OaPermitRevoked
from pmagent.contracts.orchestra_events import RunEnded
from pmagent.contracts.payload import OutwardRequest, effect_of, may_answer
from pmagent.contracts.reasoning_events import ReasoningConcluded, ReasoningRequested
from pmagent.events.event import Event
from pmagent.replay.areas.invariants_reasoning import Run, may_call
from pmagent.replay.simulation.invariants_pauses import Pauses
from pmagent.replay.simulation.world import require, there


class Starts:
    """The durable history as far as starts depend on it. ``performed``: how often each effect was started."""

    def __init__(self) -> None:
        self.performed: Counter[int] = Counter()
        self.pauses = Pauses()
        self._grants: dict[int, Event] = {}
        self._revoked: set[int | UnsetType] = set()
        self._using: dict[int, list[int]] = {}
        """Permit -> the outward requests that name it."""
        self._ended: set[int] = set()
        self._taken_back: set[tuple[int, str]] = set()
        """Requests that somebody took back, with who did."""
        self._mode: KernelModeDecided | None = None
        self._observed = False
        """Whether the surfaces were read since the last start of the process."""
        self._held = False
        """Whether there has ever been a surface."""
        self._newest: dict[type, int] = {}
        """The outward request of each type that was started last, since then."""
        self._runs: dict[str, Event] = {}
        """Correlation -> the latest request for reasoning."""
        self._concluded: set[int] = set()
        self._unanswered: set[int] = set()
        """Facts that have asked for an effect."""
        self._questions: dict[int, Event] = {}

    def take(self, event: Event) -> None:
        """The next durable event."""
        self.pauses.take(event)
        data, at = event.data, event.position
        self._ends(event)
        match data:
            case EffectCancelRequested(request=request):
                self._taken_back.add((request, event.actor))
            case OaPermitGranted():
                self._grants[at] = event
            case OaPermitRevoked(permit=permit) | RunEnded(permit=permit):
                self._revoked.add(permit)
            case OutwardRequest(permit=permit):
                self._using.setdefault(permit, []).append(at)
            case KernelObserved(surfaces=readings):
                self._observed = True
                self._held = self._held or not are_absent(readings)
            case KernelModeDecided(reasons=reasons):
                require(not self._held or NO_SURFACES not in reasons, f"{at}: surfaces that were lost are not missed")
                self._mode = data
            case ModelAsked():
                self._questions[at] = event
            case ReasoningRequested():
                self._runs[event.correlation] = event
            case ReasoningConcluded(request=request):
                self._concluded.add(request)

    def _ends(self, event: Event) -> None:
        at = event.position
        if event.kind == "fact" and event.causation < at and not isinstance(event.data, EffectRefused):
            self._ended.add(event.causation)
        else:
            refused = isinstance(event.data, EffectRefused) and event.data.request < at
            if refused or (may_answer(type(event.data)) and event.data.request in self._unanswered):
                self._ended.add(event.data.request)
        if event.kind == "fact" and effect_of(event.data) is not None:
            self._unanswered.add(at)

    def restart(self) -> None:
        """Another process has opened the log."""
        self._observed = False
        self._newest.clear()

    def perform(self, event: Event) -> None:
        """A performer starts, for a request that is durable. Raises Violation."""
        at = event.position
        effect = there(effect_of(event.data), f"{event.type} is no effect")
        require(effect.repeatable or not self.performed[at], f"effect {at} performed twice")
        require(at not in self._ended, f"effect {at} started after its end")
        require((at, event.actor) not in self._taken_back, f"effect {at} started though it was taken back")
        if isinstance(event.data, OutwardRequest):
            where = f"effect {at} under permit {event.data.permit}"
            self._permit(event, event.data, where)
            self._present(event.data, where)
            self._in_turn(event)
        if isinstance(event.data, ModelCallRequested):
            self._call(event)
        self.performed[at] += 1

    def _permit(self, event: Event, request: OutwardRequest, where: str) -> None:
        require(0 < request.permit < event.position, f"{where}: no permit")
        grant = self._grants.get(request.permit)
        granted = grant is not None and grant.kind == "decision" and grant.actor == "oa"
        require(granted, f"{where}: no grant")
        assert grant is not None, "just required"
        data, scope = grant.data, request.scope()
        require((data.action, data.subject) == (scope.action, scope.subject), f"{where}: another scope")
        require(data.holder == event.actor, f"{where}: another holder")
        require(event.time < data.expires_at, f"{where}: expired")
        users = [at for at in self._using[request.permit] if self.performed[at] or at == event.position]
        require(len(users) <= data.uses, f"{where}: used {len(users)} times of {data.uses}")
        require(request.permit not in self._revoked, f"{where}: started though revoked")

    def _present(self, request: OutwardRequest, where: str) -> None:
        """The permit's grounds still hold: the surfaces were read since the start, and allow it."""
        require(self._observed, f"{where}: started before the surfaces were read again")
        require(self._mode is not None, f"{where}: no mode was decided")
        assert self._mode is not None, "just required"
        require(allows(self._mode.mode, request.scope().action), f"{where}: forbidden in {self._mode.mode}")

    def _in_turn(self, event: Event) -> None:
        """Nothing outward starts in a pause, nor before what was requested earlier."""
        require(not self.pauses.since, f"effect {event.position} started though effects are paused")
        newest = self._newest.get(type(event.data), 0)
        require(newest < event.position, f"effect {event.position} started after {newest}, which was requested later")
        self._newest[type(event.data)] = event.position

    def _call(self, call: Event) -> None:
        """A model may be called now: the run that asked is open, and nothing forbids its program."""
        question = self._questions[call.data.ask]
        if question.actor != "reasoner":
            return
        asked = there(self._runs.get(question.correlation), f"call {call.position} is made for nobody")
        run = Run(asked)
        require(asked.position not in self._concluded, f"call {call.position} is made though {run.where} has ended")
        may_call(call, run, self._mode.mode if self._mode is not None else "")
