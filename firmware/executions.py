"""The device's executions: one that is being handed over, one prepared, one running, and the last 64."""

from .actions import check
from .refusal import Refused, integer_of, is_digest, is_id, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .actions import Action
    from .shapes import Sha256

REMEMBERED = 64
PARTS_MAX = 16
PART_MAX = 512


class Execution:
    """An execution: ``done`` of its ``of`` reports were handed over to the machine."""

    def __init__(self, execution_id: str, digest: str, action: "Action") -> None:
        self.execution_id = execution_id
        self.digest = digest
        self.state = "PREPARED"
        self.done = 0
        self.of = action.of
        self.code = ""
        self.action: Action | None = action

    def told(self) -> dict[str, object]:
        """Its state for the host."""
        return {
            "execution_id": self.execution_id,
            "state": self.state,
            "digest": self.digest,
            "done": self.done,
            "of": self.of,
            "code": self.code,
        }


class Executions:
    """All that is known. It never holds more than ``REMEMBERED`` that began, and one that did not."""

    def __init__(self, sha256: "Sha256", *, undeclared: bool = True, pointer: bool = True) -> None:
        self._sha256 = sha256
        self._allowed = {"undeclared": undeclared, "pointer": pointer}
        self._begun: list[Execution] = []
        self._parts: list[str] = []
        self._parts_of: tuple[str, str, int] | None = None
        self.prepared: Execution | None = None
        self.running: Execution | None = None

    def find(self, execution_id: str) -> Execution | None:
        """The execution with this id that began, or is prepared."""
        for execution in self._begun:
            if execution.execution_id == execution_id:
                return execution
        if self.prepared is not None and self.prepared.execution_id == execution_id:
            return self.prepared
        return None

    def told(self, execution_id: str) -> dict[str, object]:
        """The state of an execution that the host asks for."""
        found = self.find(execution_id)
        if found is not None:
            return found.told()
        return {"execution_id": execution_id, "state": "NONE", "digest": "", "done": 0, "of": 0, "code": ""}

    def forget(self) -> None:
        """Forget what is prepared, and the parts of what was being handed over."""
        self.prepared = None
        self._parts = []
        self._parts_of = None

    def collect(self, request: dict[str, object]) -> dict[str, object]:
        """Take a part of an execution; with the last one, check all of it. Returns the answer's fields.

        Raises Refused; then nothing of the execution is kept.
        """
        try:
            return self._collect(request)
        except Refused:
            self.forget()
            raise
        except MemoryError:
            self.forget()
            raise Refused("MEMORY", "there is no room for it") from None

    def _collect(self, request: dict[str, object]) -> dict[str, object]:
        execution_id, digest = text_of(request, "execution_id"), text_of(request, "digest")
        part, parts = integer_of(request, "part"), integer_of(request, "parts")
        data = text_of(request, "data")
        if not (is_id(execution_id) and is_digest(digest)):
            raise Refused("PARSE", "execution_id or digest has another shape")
        if not (1 <= parts <= PARTS_MAX and 0 <= part < parts and len(data) <= PART_MAX):
            raise Refused("BOUNDS", f"at most {PARTS_MAX} parts of {PART_MAX} characters")
        found = self.find(execution_id)
        if found is not None and found.digest != digest:
            raise Refused("DIGEST", "the execution is known with another digest")
        if found is not None and found.state != "PREPARED":
            raise Refused("KNOWN", "this execution began already")
        if found is not None and part:
            return {"have": part + 1, "state": "PREPARED", "digest": digest, "of": found.of}
        whole = (execution_id, digest, parts)
        if part == 0:
            self.forget()
            self._parts_of = whole
        held = len(self._parts)
        if self._parts_of != whole or part > held or (part < held and data != self._parts[part]):
            raise Refused("ORDER", "this part was not due")
        if part == held:
            self._parts.append(data)
        if len(self._parts) < parts:
            return {"have": len(self._parts)}
        return self._complete(execution_id, digest, parts)

    def _complete(self, execution_id: str, digest: str, parts: int) -> dict[str, object]:
        document = "".join(self._parts).encode()
        self.forget()
        action = check(document, execution_id, digest, self._sha256, **self._allowed)
        self.prepared = Execution(execution_id, digest, action)
        return {"have": parts, "state": "PREPARED", "digest": digest, "of": self.prepared.of}

    def begin(self, execution: Execution) -> None:
        """The prepared one runs from now on; the oldest that ended may be forgotten for it."""
        self.forget()
        execution.state = "RUNNING"
        self.running = execution
        self._begun.append(execution)
        if len(self._begun) > REMEMBERED:
            del self._begun[0]

    def end(self, state: str, code: str) -> None:
        """The running one has ended."""
        if self.running is not None:
            self.running.state = state
            self.running.code = code
            self.running.action = None
            self.running = None
