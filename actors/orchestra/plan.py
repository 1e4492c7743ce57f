"""Plans: read, held against the configuration, and given the ids and order that a run goes by (rulings D)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from actors.orchestra.allowance import check_allowed, constraints
from actors.orchestra.graph import BadPlan, check_waits, in_levels, in_order, listed
from actors.orchestra.ids import derived
from actors.orchestra.shape import Misfit, fit, shown
from actors.orchestra.text import decoded, from_either
from contracts.oa_documents import Document
from contracts.orchestra import (
    EDGES_MAX,
    AssignedConstraints,
    Constraints,
    ConstraintWish,
    Dag,
    Metrics,
    PlanAnswer,
    PlanId,
    PlanTask,
    TaskAssignment,
    TaskDocument,
    Timestamps,
)
from contracts.orchestra_config import OrchestraConfig

BYTES_MAX: Final = 8 * 1024 * 1024

PLAN_NAME: Final = "/plan"
"""What the plan's own id derives from; no task's id can be this."""


class PlanText(Document, frozen=True, kw_only=True):
    """A plan as its author wrote it, with ids of its own: plan_id and dag may be left out."""

    plan_id: PlanId | None = None
    tasks: list[PlanTask]
    dag: Dag | None = None


class Plan(msgspec.Struct, frozen=True):
    """A plan that a run goes by: ids are UUIDs of the run, the tasks stand in an order in which they may run, and all
    their limits are written out. ``levels``: those of a level wait only for earlier levels. ``names``: id -> the
    author's."""

    answer: PlanAnswer
    levels: list[list[str]]
    names: dict[str, str]


def read_plan(text: str | bytes, where: str = "the plan") -> PlanText:
    """The plan in a JSON or YAML text: the list of tasks, or a mapping of plan_id, tasks and dag. Raises BadText where
    it is neither JSON nor YAML, BadPlan where it is not of a plan's shape."""
    value = from_either(decoded(text, where, BYTES_MAX), where)
    bare = isinstance(value, list)
    try:
        # The shape of an answer is checked with its bounds; id and dag are added where the author left them out.
        given = {"tasks": value} if bare else value
        if isinstance(given, dict):
            filled = {"plan_id": derived("0" * 32, ""), "dag": {"nodes": [], "edges": []}}
            fit(filled | {name: part for name, part in given.items() if part is not None}, PlanAnswer)
        return fit(given, PlanText)
    except Misfit as misfit:
        raise BadPlan(f"{where}: {misfit.message}", misfit.hint) from misfit


def make_plan(given: PlanText, config: OrchestraConfig, run_id: str, where: str = "the plan") -> Plan:
    """The plan for the run ``run_id`` (a UUID): the same for the same arguments. A task's id becomes the UUID version 5
    of the author's within the run, whatever it looks like, so that no two runs share a task.

    Raises DuplicateTask, SelfDependency, UnknownDependency or DependencyCycle, ToolRefused, SandboxRefused or
    LimitExceeded, and BadPlan for what else cannot be: parents, files or a dag that contradict themselves.
    """
    tasks = {task.task_id: task for task in given.tasks}
    check_waits([task.task_id for task in given.tasks], [task.depends_on for task in given.tasks], where)
    _check_edges(given, where)
    _check_parents(tasks, where)
    for task in given.tasks:
        _check_files(task, where)
    check_allowed(given.tasks, config, where)
    ids = {name: derived(run_id, name) for name in tasks}
    waits = {name: task.depends_on for name, task in tasks.items()}
    made = [_numbered(tasks[name], ids, constraints(tasks[name], config)) for name in in_order(waits)]
    dag = Dag(
        nodes=[task.task_id for task in made],
        edges=[[one, task.task_id] for task in made for one in task.depends_on],
    )
    answer = PlanAnswer(plan_id=given.plan_id or derived(run_id, PLAN_NAME), tasks=made, dag=dag)
    levels = [[ids[name] for name in level] for level in in_levels(waits)]
    return Plan(answer, levels, {ids[name]: name for name in tasks})


def task_documents(plan: Plan, created_at: str) -> list[TaskDocument]:
    """The plan's tasks as a run begins with them, in its order; ``created_at`` is the time of the plan's event."""
    return [
        TaskDocument(
            task_id=task.task_id,
            parent_id=task.parent_id,
            level=3,
            intent=task.intent,
            inputs=task.inputs,
            tools=task.tools,
            constraints=msgspec.convert(msgspec.to_builtins(task.constraints), Constraints),
            state="planned",
            retries=0,
            logs=[],
            artifacts=[],
            metrics=Metrics(duration_ms=0, exit_code=None),
            timestamps=Timestamps(created_at=created_at, started_at=None, completed_at=None),
        )
        for task in plan.answer.tasks
    ]


def assignment(task: TaskDocument) -> TaskAssignment:
    """What a worker is given of a task; its program is ``tools[0]``."""
    own = task.constraints
    return TaskAssignment(
        task_id=task.task_id,
        tools=task.tools,
        inputs=task.inputs,
        constraints=AssignedConstraints(
            max_duration_sec=own.max_duration_sec, max_retries=own.max_retries, sandbox=own.sandbox
        ),
    )


def _numbered(task: PlanTask, ids: dict[str, str], limits: Constraints) -> PlanTask:
    return msgspec.structs.replace(
        task,
        task_id=ids[task.task_id],
        depends_on=[ids[name] for name in task.depends_on],
        parent_id=None if task.parent_id is None else ids[task.parent_id],
        constraints=msgspec.convert(msgspec.to_builtins(limits), ConstraintWish),
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
    said = {(edge[0], edge[1]) for edge in given.dag.edges}
    if said != edges:
        differing = [f"{one} -> {other}" for one, other in sorted(said ^ edges)]
        raise BadPlan(
            f"{where}: dag.edges and depends_on differ in {listed(differing)}",
            "depends_on makes the order; correct the edges, or leave dag out",
        )


def _check_parents(tasks: dict[str, PlanTask], where: str) -> None:
    """A parent is a task of the plan, and nobody is above himself."""
    lost = [name for name, task in tasks.items() if task.parent_id is not None and task.parent_id not in tasks]
    if lost:
        raise BadPlan(f"{where}: the parent_id is no task of the plan: {listed(lost)}", "correct it, or leave it out")
    parents = {name: [task.parent_id] if task.parent_id is not None else [] for name, task in tasks.items()}
    sound = set(in_order(parents))
    around = [name for name in tasks if name not in sound]
    if around:
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
