"""A plan as a person writes it: with a shared environment, matrices, folders and conditions; pure.

A task with a matrix stands for one task for each combination of its values. The plan is recorded and run
without matrices, and the options of its tasks beside it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from pmagent.actors.orchestra.planning.conditions import bare, holds
from pmagent.actors.orchestra.planning.graph import BadPlan
from pmagent.contracts.orchestra import TASKS_MAX, TaskOptions, WrittenPlan, WrittenTask
from pmagent.contracts.shape import Misfit, fit, nearest

COMBINATIONS_MAX: Final = 256
NAME_CHARS_MAX: Final = 64

_PLACE: Final = re.compile(r"\$\{\{\s*matrix\.([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}")
_NAMED: Final = re.compile(r"\bmatrix\.([A-Za-z_][A-Za-z0-9_-]*)")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")


def expanded(given: WrittenPlan, where: str) -> tuple[dict[str, Any], dict[str, TaskOptions]]:
    """The plan for ``as_plan``, and the options of those of its tasks that have some. Raises BadPlan."""
    names: dict[str, list[str]] = {}
    tasks: list[dict[str, Any]] = []
    options: dict[str, TaskOptions] = {}
    for task in given.tasks:
        for name, values in _instances(task, where):
            names.setdefault(task.task_id, []).append(name)
            tasks.append(_instance(task, name, values, given.env, where))
            own = _options(task, values, where)
            if own != TaskOptions():
                options[name] = own
        if len(tasks) > TASKS_MAX:
            raise BadPlan(f"{where}: with its matrices it has more than {TASKS_MAX} tasks", "make several plans of it")
    for made in tasks:
        made["depends_on"] = [one for name in made["depends_on"] for one in names.get(name, [name])]
        parents = names.get(made["parent_id"] or "", [made["parent_id"]])
        if len(parents) > 1:
            raise BadPlan(f"{where}: {made['task_id']}: parent_id names a task with a matrix", "name one of its tasks")
        made["parent_id"] = parents[0]
    plan: dict[str, Any] = {"tasks": tasks}
    if given.plan_id is not None:
        plan["plan_id"] = given.plan_id
    if given.dag is not None:
        plan["dag"] = msgspec.to_builtins(given.dag)
    return plan, options


def parsed(value: Any, where: str) -> WrittenPlan:
    """The plan that a value from JSON or YAML is. Raises BadPlan."""
    try:
        return fit({"tasks": value} if isinstance(value, list) else value, WrittenPlan)
    except Misfit as misfit:
        raise BadPlan(f"{where}: {misfit.message}", misfit.hint) from misfit


def _instances(task: WrittenTask, where: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Name and values of each task that ``task`` stands for: its own name, or that with the values behind it."""
    if not task.matrix:
        yield task.task_id, {}
        return
    for reserved in ("include", "exclude"):
        if reserved in task.matrix:
            raise BadPlan(f"{where}: {task.task_id}: matrix.{reserved} is not known", "write such tasks out")
    count = 1
    for values in task.matrix.values():
        count *= len(values)
    if count > COMBINATIONS_MAX:
        raise BadPlan(f"{where}: {task.task_id}: its matrix has {count} combinations", f"at most {COMBINATIONS_MAX}")
    for combination in itertools.product(*task.matrix.values()):
        name = "-".join((task.task_id, *(_UNFIT.sub("_", value).strip("_") or "_" for value in combination)))
        if len(name) > NAME_CHARS_MAX:
            raise BadPlan(f"{where}: the matrix makes a task called {name[:80]}", "shorten its values or the task_id")
        yield name, dict(zip(task.matrix, combination, strict=True))


def _instance(
    task: WrittenTask, name: str, values: Mapping[str, str], shared: Mapping[str, str], where: str
) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(task)
    for key in ("env", "matrix", "cwd", "if", "continue_on_error", "labels"):
        del made[key]
    inputs = made["inputs"]
    inputs["env"] = {**shared, **task.env, **task.inputs.env}
    if values:
        made["intent"] = _filled(task.intent, values, f"{where}: {task.task_id}")
        made["inputs"] = _filled(inputs, values, f"{where}: {task.task_id}")
    return {**made, "task_id": name}


def _options(task: WrittenTask, values: Mapping[str, str], where: str) -> TaskOptions:
    place = f"{where}: {task.task_id}"
    condition = _NAMED.sub(lambda found: _quoted(_value(found[1], values, place)), bare(task.condition))
    if condition:
        try:
            holds(condition, success=True, failure=False)
        except BadPlan as error:
            raise BadPlan(f"{place}: if: {error.message}", error.hint) from error
    cwd = _filled(task.cwd, values, place) if values and task.cwd else task.cwd
    try:
        return fit(
            {"cwd": cwd, "condition": condition, "continue_on_error": task.continue_on_error, "labels": task.labels},
            TaskOptions, task.task_id,
        )
    except Misfit as misfit:
        raise BadPlan(f"{where}: {misfit.message}", misfit.hint) from misfit


def _filled(value: Any, values: Mapping[str, str], place: str) -> Any:
    if isinstance(value, str):
        return _PLACE.sub(lambda found: _value(found[1], values, place), value)
    if isinstance(value, dict):
        return {key: _filled(one, values, place) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, values, place) for one in value]
    return value


def _value(name: str, values: Mapping[str, str], place: str) -> str:
    if name not in values:
        hint = nearest(name, values) if values else "give the task a matrix"
        raise BadPlan(f"{place}: there is no matrix.{name}", hint)
    return values[name]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
