from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from .bench import hear
from .exhibits import report_exhibits, repository_exhibits
from .ruling import WIDE, rule, spread, write
from .schemas import Request, Role, Verdict

CRITERIA = ["orchestration", "safety", "history", "report"]


@entrypoint(checkpointer=InMemorySaver())
def audit(request: Request) -> Verdict | None:
    # both detectives are started before either is waited for
    pending = [repository_exhibits(request["repo"]), report_exhibits(request["report"])]
    exhibits = [e for p in pending for e in p.result()]
    if not any(e.name == "code" for e in exhibits):
        write(Verdict(), exhibits)
        return None

    hearings = {c: [hear(role, c, exhibits) for role in Role] for c in CRITERIA}
    verdict = Verdict()
    for criterion, futures in hearings.items():
        ballots = [f.result() for f in futures]
        again = spread(ballots) > WIDE
        if again:
            ballots = [f.result() for f in [hear(role, criterion, exhibits) for role in Role]]
        rule(criterion, ballots, exhibits, again, verdict)
    write(verdict, exhibits)
    return verdict
