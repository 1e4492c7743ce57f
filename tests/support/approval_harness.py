"""The pages of proposals before real actors on an engine, with a clock that a test moves: no process, no network, no
template; what a page would show is at hand as its context."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from pmagent.actors.core.gate import GateState
from pmagent.console.app import application
from pmagent.console.auth.entrance import Visitor
from pmagent.console.pages.approvals.history import Story
from pmagent.console.pages.context import CHANNEL, PageContext
from pmagent.contracts.control import PauseRequested, ResumeRequested
from pmagent.contracts.pla import Action, TypeText
from pmagent.contracts.pla_events import PlaApproved, PlaDecisionRefused, PlaDecisionRequested, PlaRejected
from pmagent.events.event import Event
from pmagent.pla import reading
from pmagent.pla.arguments import DecideArguments, understood
from pmagent.service.answer import Answer
from pmagent.service.wire import Failure, RemoteError
from tests.support.pla import PlaHarness as Actors

T = TypeVar("T")

ROLES: Final[dict[str, Any]] = {"ada": "approve", "bob": "approve", "cleo": "approve", "eve": "view"}
VISITORS: Final = {
    name: Visitor(name, role, name * 10, "csrf", "2026-11-22T12:00:00.000000Z") for name, role in ROLES.items()
}
TEXTS: Final = ("hello", "ls -la\n", "sudo reboot\n")

_EMPTY: Final = Story(asked=None, frame=None, causes=[], steps=[], more=0, decision=None)


class ApprovalHarness(PageContext):
    """A page context whose daemon is a set of actors in memory. ``shown``: the context of the last page."""

    def __init__(self) -> None:
        super().__init__(Path("/nowhere"))
        self.actors = Actors()
        self.shown: dict[str, Any] = {}
        self.answers: dict[str, Event] = {}
        self.app: Starlette = application(self)

    def begin(self) -> None:
        """As if nothing had happened yet."""
        self.actors = Actors()
        self.shown, self.answers = {}, {}

    def propose(self, text: str, who: str, lifetime_s: float) -> None:
        """Somebody asks for a proposal; nobody cares for the answer."""
        action: Action = TypeText(text=text)
        if self.actors.warden.mode != "OBSERVE" and not self.actors.warden.open_proposals:
            self.actors.propose(action, requested_by=who, lifetime_s=lifetime_s, chars=len(text))

    def pause(self) -> None:
        """Somebody pauses effects."""
        self.actors.tell(PauseRequested(operator_id="ada", channel="cli"))

    def resume(self) -> None:
        """Somebody resumes them."""
        self.actors.tell(ResumeRequested(operator_id="ada", channel="cli"))

    def stands(self) -> tuple[str, str]:
        """Whether the device is armed, and effects are paused, in the words of a page."""
        gate: GateState = self.actors.engine.states["gate"]
        return "armed" if self.actors.warden.armed else "not armed", "running" if gate.pause is None else "paused"

    # --- what the daemon is asked -------------------------------------------------------------------------------------

    def position(self) -> int:
        """See PageContext."""
        return len(self.actors.history)

    async def read(self, reader: Callable[..., T], *arguments: Any) -> T:
        """No log lies anywhere: of a proposal there is no story, and of one that the warden forgot nothing."""
        del reader, arguments
        return _EMPTY  # type: ignore[return-value]

    async def standing(self, operation: str) -> Answer:
        """See PageContext."""
        if operation == "status":
            gate: GateState = self.actors.engine.states["gate"]
            return Answer(document={"paused": gate.pause and {"since": gate.pause.since}})
        return Answer(document=reading.status_document(self.actors.engine, self.actors.now, running=True))

    async def ask(
        self, operation: str, visitor: Visitor | None = None, *, request: str = "", seconds: float = 0.0,
        **arguments: Any,
    ) -> Answer:  # fmt: skip
        """See PageContext; as the daemon's operations do it."""
        del seconds
        engine, now = self.actors.engine, self.actors.now
        if operation == "pla.list":
            return Answer(document=reading.list_document(engine, now, arguments["count"]))
        if operation == "pla.show":
            try:
                view = reading.called(engine, arguments["proposal_id"])
            except reading.NoSuchProposal as error:
                raise RemoteError(Failure(type(error).__name__, error.message, error.hint, 1)) from error
            return Answer(document=reading.proposal_document(view, now))
        assert operation == "pla.decide"
        assert visitor is not None
        return self._decide(visitor, request, arguments)

    def _decide(self, visitor: Visitor, request: str, arguments: dict[str, Any]) -> Answer:
        asked = understood({**arguments, "operator": visitor.operator, "channel": CHANNEL}, DecideArguments)
        assert asked.decision is not None
        if request not in self.answers:
            payload = PlaDecisionRequested(
                proposal_id=asked.proposal_id, decision=asked.decision, digest=asked.digest, operator_id=asked.operator,
                channel=asked.channel, reason=asked.reason, acknowledged=asked.acknowledged, seen_mode=asked.seen_mode,
                looked_ms=asked.looked_ms,
            )  # fmt: skip
            said = self.actors.fact(payload, id=request).events[0]
            (self.answers[request],) = [
                event for event in self.actors.history
                if isinstance(event.data, PlaApproved | PlaRejected | PlaDecisionRefused)
                and event.data.request == said.position
            ]  # fmt: skip
            self.actors.go()
        answer = self.answers[request].data
        fields = {"reasons": [], "mend": [], "code": ""}
        if isinstance(answer, PlaDecisionRefused):
            fields = {"reasons": answer.reasons, "mend": answer.mend, "code": answer.code}
        return Answer(document=fields, exit_code=1 if fields["code"] else 0)

    async def page(self, request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
        """Keep the template and the context that the page would be made of."""
        del request
        self.shown = {"template": template, **context}
        return Response(status_code=status)

    async def request(
        self, who: str, method: str, path: str, query: str = "", form: dict[str, str] | None = None
    ) -> tuple[int, str]:
        """The status of the answer to a request as the guard hands it on, and where it leads."""
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [], "scheme": "http", "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2), "root_path": "",
            "http_version": "1.1", "state": {"visitor": VISITORS[who], "form": form or {}, "position": 0},
        }  # fmt: skip
        answered: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            answered.append(message)

        await self.app(scope, receive, send)
        (start,) = [one for one in answered if one["type"] == "http.response.start"]
        headers = dict(start["headers"])
        return start["status"], headers.get(b"location", b"").decode()
