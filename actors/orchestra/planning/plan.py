"""Plans: read, held against the configuration, and given the ids and order that a run goes by
(docs/design.md §14.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from pmagent.actors.orchestra.planning.allowance import LimitExceeded, check_allowed, constraints
from pmagent.actors.orchestra.planning.conditions import holds
from pmagent.actors.orchestra.planning.graph import BadPlan, check_waits, in_order, listed
from pmagent.actors.orchestra.planning.written import expanded, parsed
from pmagent.actors.orchestra.running.ids import derived
from pmagent.contracts.oa_documents import Document
from pmagent.contracts.orchestra import (
    EDGES_MAX,
    AssignedConstraints,
    ConstraintOverrides,
    Dag,
    PlanAnswer,
    PlanTask,
    PlanText,
    TaskAssignment,
    TaskOptions,
)
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.contracts.orchestra_events import PlannedTask
from pmagent.contracts.payload import encode
from pmagent.contracts.shape import Misfit, fit, shown
from pmagent.contracts.text import decoded, from_either

BYTES_MAX: Final = 8 * 1024 * 1024

TASK_BYTES_MAX: Final = 640 * 1024
"""A task (as JSON) stands in one event, with its files."""

ATTEMPTS_MAX: Final = 50_000
"""So many attempts one plan may need at most; a permit has as many uses."""

PLAN_NAME: Final = "/plan"
"""The name that the plan's own id derives from; no task can have it."""

NOTHING_KEPT: Final[Mapping[str, str]] = {}
NO_OPTIONS: Final[Mapping[str, TaskOptions]] = {}


class Plan(Document, frozen=True):
    """A plan that a run goes by: ids are UUIDs of the run, the tasks stand in an order in which they may run, and all
    their limits are written out."""

    plan_id: str
    tasks: list[PlannedTask]

    @property
    def attempts(self) -> int:
        """So many may be needed at most."""
        return sum(1 + task.constraints.max_retries for task in self.tasks)


def read_plan(text: str | bytes, where: str = "the plan") -> tuple[PlanText, dict[str, TaskOptions]]:
    """The plan in a JSON or YAML text that a person wrote, and the options of its tasks: the list of tasks, or a
    mapping of plan_id, env, tasks and dag. Raises BadText where it is neither JSON nor YAML, BadPlan where it is not of
    a plan's shape."""
    value = from_either(decoded(text, where, BYTES_MAX), where)
    if not isinstance(value, list | dict):
        return as_plan(value, where), {}  # which refuses it
    if isinstance(value, dict):
        value = {name: part for name, part in value.items() if part is not None}
    plan, options = expanded(parsed(value, where), where)
    return as_plan(plan, where), options


def as_plan(value: Any, where: str) -> PlanText:
    """The plan that a value from JSON or YAML is. Raises BadPlan."""
    bare = isinstance(value, list)
    if not bare and not isinstance(value, dict):
        raise BadPlan(
            f"{where}: the whole is {shown(value)}", "it must be a list of tasks, or a mapping: plan_id, tasks, dag"
        )
    try:
        # The shape of an answer is checked with its bounds; id and dag are added where the author left them out.
        given = {"tasks": value} if bare else value
        filled = {"plan_id": derived("0" * 32, ""), "dag": {"nodes": [], "edges": []}}
        fit(filled | {name: part for name, part in given.items() if part is not None}, PlanAnswer)
        return fit(given, PlanText)
    except Misfit as misfit:
        raise BadPlan(f"{where}: {misfit.message}", misfit.hint) from misfit


def make_plan(
    given: PlanText, config: OrchestraConfig, run_id: str, where: str = "the plan", revision: int = 0,
    kept: Mapping[str, str] = NOTHING_KEPT, options: Mapping[str, TaskOptions] = NO_OPTIONS,
) -> Plan:
    """The plan for the run ``run_id`` (a UUID): the same for the same arguments. A task's id becomes the UUID version 5
    of the author's within the run, whatever it looks like, so that no two runs share a task. A later ``revision`` may
    wait for what is ``kept`` of earlier ones (the author's id -> the run's), and its tasks have other UUIDs.

    Raises DuplicateTask, SelfDependency, UnknownDependency or DependencyCycle, ToolRefused, SandboxRefused or
    LimitExceeded, and BadPlan for what else cannot be: parents, files or a dag that contradict themselves.
    """
    tasks = {task.task_id: task for task in given.tasks}
    waits = {name: task.depends_on for name, task in tasks.items()}
    check_waits(
        [*kept, *(task.task_id for task in given.tasks)],
        [*([] for _ in kept), *(task.depends_on for task in given.tasks)], where,
    )
    _check_edges(given, where)
    _check_parents(tasks, kept, where)
    for task in given.tasks:
        _check_files(task, where)
    check_allowed(given.tasks, config, where)
    for option in options.values():
        if option.condition:
            holds(option.condition, success=True, failure=False)
    ids = {**kept, **{name: derived(run_id, name if not revision else f"/{revision}/{name}") for name in tasks}}
    order = in_order({name: [one for one in needed if one in tasks] for name, needed in waits.items()})
    made = [_planned(tasks[name], ids, config, options.get(name, UNSET)) for name in order]
    _check_sizes(made, where)
    plan_id = derived(run_id, PLAN_NAME if not revision else f"{PLAN_NAME}/{revision}")
    return Plan(given.plan_id or plan_id, made)


def answer(plan_id: str, tasks: Sequence[PlannedTask]) -> PlanAnswer:
    """The plan as L2 answers L1 (docs/design.md §14.1), and as plan.json holds it."""
    return PlanAnswer(
        plan_id=plan_id, tasks=[_listed(task, {}) for task in tasks],
        dag=Dag(
            nodes=[task.task_id for task in tasks],
            edges=[[one, task.task_id] for task in tasks for one in task.depends_on],
        ),
    )


def as_written(tasks: Sequence[PlannedTask]) -> PlanText:
    """The plan of these tasks with the names that its author gave them, and with all limits written out."""
    names = {task.task_id: task.name for task in tasks}
    return PlanText(tasks=[_listed(task, names) for task in tasks])


def _listed(task: PlannedTask, names: Mapping[str, str]) -> PlanTask:
    """The task as a plan lists it; ids that ``names`` does not know stay."""
    return PlanTask(
        task_id=names.get(task.task_id, task.task_id), intent=task.intent, tools=task.tools,
        depends_on=[names.get(one, one) for one in task.depends_on],
        parent_id=names.get(task.parent_id, task.parent_id) if task.parent_id is not None else None, inputs=task.inputs,
        constraints=msgspec.convert(msgspec.to_builtins(task.constraints), ConstraintOverrides),
    )


def assignment(task: PlannedTask) -> TaskAssignment:
    """The part of a task that a worker gets; its program is ``tools[0]``."""
    own = task.constraints
    return TaskAssignment(
        task_id=task.task_id, tools=task.tools, inputs=task.inputs,
        constraints=AssignedConstraints(
            max_duration_sec=own.max_duration_sec, max_retries=own.max_retries, sandbox=own.sandbox
        ),
        cwd=task.options.cwd or UNSET if isinstance(task.options, TaskOptions) else UNSET,
    )


def _planned(
    task: PlanTask, ids: Mapping[str, str], config: OrchestraConfig, options: TaskOptions | UnsetType
) -> PlannedTask:
    return PlannedTask(
        task_id=ids[task.task_id], name=task.task_id, intent=task.intent, tools=task.tools, inputs=task.inputs,
        depends_on=[ids[name] for name in task.depends_on],
        parent_id=None if task.parent_id is None else ids[task.parent_id], constraints=constraints(task, config),
        options=options,
    )


def _check_sizes(tasks: Sequence[PlannedTask], where: str) -> None:
    if large := [task.name for task in tasks if len(encode(task)) > TASK_BYTES_MAX]:
        raise LimitExceeded(
            f"{where}: larger than {TASK_BYTES_MAX} bytes, files included: {listed(large)}",
            "let the task read files of the workspace instead",
        )
    attempts = sum(1 + task.constraints.max_retries for task in tasks)
    if attempts > ATTEMPTS_MAX:
        raise LimitExceeded(
            f"{where}: its tasks may need {attempts} attempts", f"at most {ATTEMPTS_MAX} are possible; retry less often"
        )


def _twice(names: Iterable[str]) -> list[str]:
    """The names that occur again, each once."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    return [name for name, count in seen.items() if count > 1]


def _check_edges(given: PlanText, where: str) -> None:
    edges = {(one, task.task_id) for task in given.tasks for one in task.depends_on}
    if len(edges) > EDGES_MAX:
        raise BadPlan(f"{where}: its tasks wait {len(edges)} times for another", f"at most {EDGES_MAX} are possible")
    doubled = [f"{task.task_id} for {name}" for task in given.tasks for name in _twice(task.depends_on)]
    if doubled:
        raise BadPlan(f"{where}: waits twice for the same task: {listed(doubled)}", "name each dependency once")
    if given.dag is None:
        return
    nodes = [task.task_id for task in given.tasks]
    if sorted(given.dag.nodes) != sorted(nodes):
        differing = sorted(set(nodes) ^ set(given.dag.nodes)) or _twice(given.dag.nodes)
        raise BadPlan(f"{where}: dag.nodes and tasks differ in {listed(differing)}", "list each task once in both")
    given_edges = {(edge[0], edge[1]) for edge in given.dag.edges}
    if given_edges != edges:
        differing = [f"{one} -> {other}" for one, other in sorted(given_edges ^ edges)]
        raise BadPlan(
            f"{where}: dag.edges and depends_on differ in {listed(differing)}",
            "depends_on makes the order; correct the edges, or leave dag out",
        )


def _check_parents(tasks: dict[str, PlanTask], kept: Mapping[str, str], where: str) -> None:
    """A parent is a task of the plan, or one that is kept, and nobody is above himself."""
    known = {*tasks, *kept}
    lost = [name for name, task in tasks.items() if task.parent_id is not None and task.parent_id not in known]
    if lost:
        raise BadPlan(f"{where}: the parent_id is no task of the plan: {listed(lost)}", "correct it, or leave it out")
    parents = {name: [task.parent_id] if task.parent_id in tasks else [] for name, task in tasks.items()}
    sound = set(in_order(parents))
    if around := [name for name in tasks if name not in sound]:
        raise BadPlan(f"{where}: the parent_id leads around in a circle: {listed(around)}", "leave one of them out")


def _check_files(task: PlanTask, where: str) -> None:
    """No file is given twice, and none lies below another."""
    paths = [file.path for file in task.inputs.files]
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    clash = _twice(paths) or [path for path in paths if path in folders]
    if clash:
        raise BadPlan(
            f"{where}: {task.task_id}: inputs.files has a path twice, or a file below it: {shown(clash[0])}",
            "give each file its own path",
        )
