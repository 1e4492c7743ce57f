"""Requests of the operator to Orchestra, good and bad: runs of plans, given or to be made, and cancellations."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec
from msgspec import UNSET

from pmagent.contracts.orchestra import PlanText, TaskOptions
from pmagent.contracts.orchestra_config import (
    ConcurrencySettings,
    OrchestraConfig,
    PolicySettings,
    RetrySettings,
)
from pmagent.contracts.orchestra_events import RunCancelRequested, RunRequested
from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.world import World

ACTIONS: Final = (*("feature_work",) * 8, "migrations", "remediation", "diagnostic", "unheard_of")
"""Intents of runs."""

LIMITS: Final = (5.0, 20.0, 60.0, 60.0, 300.0)
"""A run's time, in seconds."""

WRONG: Final = (
    "task twice", "waits for itself", "waits for nobody", "circle", "tool outside the whitelist", "limit exceeded",
    "wider sandbox", "parents in a circle", "dag contradicts",
)
"""Defects of a plan; each is a fault of its own."""

CONDITIONS: Final = ("always()", "failure()")
"""Those that the laws of runs know."""

Task = dict[str, Any]


class Runs:
    """The operator's part that has to do with runs."""

    def __init__(self, world: World, secret: str) -> None:
        self._world = world
        self._random = world.chance.stream("runs")
        self._secret = secret
        self._ids: list[str] = []

    def demand(self, n: int) -> msgspec.Struct:
        """A request for a run, or that one ends; ``n`` tells it from all others."""
        world = self._world
        if self._ids and self._random.random() < 0.2:
            known = not world.faults.strike("cancel: of a run that nobody knows")
            return RunCancelRequested(
                run_id=self._random.choice(self._ids[-4:]) if known else run_id(0), reason=f"enough of {self._secret}"
            )
        again = bool(self._ids) and world.faults.strike("run: id used again")
        self._ids.append(self._ids[-1] if again else run_id(n))
        return self._run(self._ids[-1])

    def _run(self, name: str) -> RunRequested:
        random = self._random
        config = self._config()
        planner = random.random() < 0.35
        plan = None if planner else self._plan(config)
        return RunRequested(
            run_id=name,
            intent=f"water the trays with {self._secret}",
            config=config,
            action=random.choice(ACTIONS),
            plan=plan,
            options=_options(int(name[-12:], 16), plan) if plan is not None else {},
            plan_only=random.random() < 0.08,
            dry_run=random.random() < 0.1,
            replans=random.choice((0, 0, 0, 1, 2)),
            form=2 if int(name[-12:], 16) % 4 else UNSET,  # runs that an earlier release began go on in their form
        )

    def _config(self) -> OrchestraConfig:
        world = self._world
        random = self._random
        total = between(random, 0.01, 2.0) if world.faults.strike("run: hardly any time") else random.choice(LIMITS)
        return OrchestraConfig(
            version="1.0",
            policies=PolicySettings(
                max_task_duration_sec=random.choice((0.5, 3.0, 30.0)), max_total_duration_sec=total
            ),
            retries=RetrySettings(max=random.randrange(4), backoff_base_sec=random.choice((0.01, 0.5, 1.5, 3))),
            concurrency=ConcurrencySettings(max_workers=random.randrange(1, 5)),
        )

    def _plan(self, config: OrchestraConfig) -> PlanText:
        world = self._world
        tasks = plan(self._random, config, "t", [])
        dag = None
        for what in WRONG:
            if world.faults.strike(f"plan: {what}"):
                dag = spoil(tasks, what)
        return msgspec.convert({"tasks": tasks, "dag": dag}, PlanText)


def _options(n: int, plan: PlanText) -> dict[str, TaskOptions]:
    """Options for the tasks of some plans; without chance, of which all else is drawn."""
    kinds = (None, TaskOptions(continue_on_error=True), *(TaskOptions(condition=one) for one in CONDITIONS))
    found = {task.task_id: kinds[(n // 3 + place) % len(kinds)] for place, task in enumerate(plan.tasks)}
    return {name: own for name, own in found.items() if own is not None} if n % 3 == 0 else {}


def run_id(n: int) -> str:
    """The n-th run's id."""
    return f"00000000-0000-4000-9000-{n:012x}"


def plan(random: Random, config: OrchestraConfig, prefix: str, kept: list[str]) -> list[Task]:
    """Tasks in any order, each of which waits for some that come before it in a hidden one, and for some ``kept``."""
    count = random.choice((1, 2, 3, 4, 5, 8))
    tasks: list[Task] = []
    for number in range(count):
        before = [task["task_id"] for task in tasks] + kept
        waits = [name for name in before if random.random() < random.choice((0.2, 0.6))]
        limits: Task = {}
        if random.random() < 0.3:
            limits["concurrency"] = random.randint(1, config.concurrency.max_workers)
        if random.random() < 0.3:
            limits["max_retries"] = random.randint(0, config.retries.max)
        tasks.append({
            "task_id": f"{prefix}{number}", "intent": f"do {number}", "tools": [random.choice(config.whitelist_tools)],
            "depends_on": waits, "constraints": limits, "inputs": {"args": [f"{number}"]},
        })
        if before and random.random() < 0.2:
            tasks[-1]["parent_id"] = random.choice(before)
    random.shuffle(tasks)
    return tasks


def spoil(tasks: list[Task], what: str) -> dict[str, Any] | None:
    """Make this wrong with the tasks; the dag that goes with them, if that is what is wrong."""
    first, last = tasks[0], tasks[-1]
    match what:
        case "task twice":
            tasks.append({**first})
        case "waits for itself":
            last["depends_on"] = [*last["depends_on"], last["task_id"]]
        case "waits for nobody":
            first["depends_on"] = [*first["depends_on"], "nobody"]
        case "circle":
            one = {**first, "task_id": "ring-1", "depends_on": ["ring-2"]}
            tasks += [one, {**one, "task_id": "ring-2", "depends_on": ["ring-1"]}]
        case "tool outside the whitelist":
            last["tools"] = ["bash"]
        case "limit exceeded":
            first["constraints"] = {"concurrency": 200}
        case "wider sandbox":
            last["constraints"] = {"sandbox": {"net": "allow"}}
        case "parents in a circle":
            first["parent_id"] = first["task_id"]
        case "dag contradicts":
            return {"nodes": [], "edges": []}
    return None
