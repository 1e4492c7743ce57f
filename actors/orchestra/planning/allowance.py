"""Checks that a plan's tasks ask for no tool, no network and no more than the configuration allows
(docs/design.md §14.3, §14.5)."""

from __future__ import annotations

from collections.abc import Sequence

from pmagent.actors.orchestra.planning.graph import BadPlan, listed
from pmagent.actors.sandbox.spec import kept_env
from pmagent.contracts.orchestra import Constraints, PlanTask, Sandbox
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.contracts.shape import nearest


class ToolRefused(BadPlan, exit_code=7):
    """A tool that is not in the whitelist."""


class SandboxRefused(BadPlan, exit_code=7):
    """A request for a wider sandbox than the policies grant."""


class LimitExceeded(BadPlan):
    """A request for more time, retries or workers than the configuration has."""


def constraints(task: PlanTask, config: OrchestraConfig) -> Constraints:
    """The limits of a task: its plan's where given, else the configuration's; the network is denied unless asked
    for."""
    own, policies = task.constraints, config.policies
    return Constraints(
        max_duration_sec=policies.max_task_duration_sec if own.max_duration_sec is None else own.max_duration_sec,
        max_retries=config.retries.max if own.max_retries is None else own.max_retries,
        concurrency=1 if own.concurrency is None else own.concurrency,
        sandbox=Sandbox(fs=own.sandbox.fs or policies.default_fs_mode, net=own.sandbox.net or "deny"),
    )


def check_allowed(tasks: Sequence[PlanTask], config: OrchestraConfig, where: str) -> None:
    """Raises ToolRefused, SandboxRefused, LimitExceeded, or BadPlan for variables that nobody sets, naming every task
    that it is about (of many, the first)."""
    _check_tools(tasks, config, where)
    _check_sandboxes(tasks, config, where)
    _check_limits(tasks, config, where)
    _check_env(tasks, config, where)


def _check_tools(tasks: Sequence[PlanTask], config: OrchestraConfig, where: str) -> None:
    allowed = config.whitelist_tools
    found = [(task.task_id, tool) for task in tasks for tool in task.tools if tool not in allowed]
    if found:
        pairs = [f"{tool} ({name})" for name, tool in found]
        raise ToolRefused(
            f"{where}: not in whitelist_tools: {listed(pairs)}", f"{nearest(found[0][1], allowed)}; or add it there"
        )


def _check_sandboxes(tasks: Sequence[PlanTask], config: OrchestraConfig, where: str) -> None:
    limits = {task.task_id: constraints(task, config).sandbox for task in tasks}
    online = [name for name, sandbox in limits.items() if sandbox.net == "allow"]
    if online and not config.policies.allow_network:
        raise SandboxRefused(
            f"{where}: net: allow, but policies.allow_network is false: {listed(online)}",
            "leave it out, or allow the network in the configuration",
        )
    if online and not config.security.net.allow_domains:
        raise SandboxRefused(
            f"{where}: net: allow, but security.net.allow_domains is empty, which denies all: {listed(online)}",
            "leave it out, or name the hosts in the configuration",
        )
    writing = [name for name, sandbox in limits.items() if sandbox.fs == "rw"]
    if writing and not config.security.fs.allow_write:
        raise SandboxRefused(
            f"{where}: fs: rw, but security.fs.allow_write is empty: {listed(writing)}",
            "use read-only (artifacts can always be written), or name paths in the configuration",
        )


def _check_limits(tasks: Sequence[PlanTask], config: OrchestraConfig, where: str) -> None:
    limits = [(task.task_id, constraints(task, config)) for task in tasks]
    table = (
        ("max_duration_sec", "policies.max_task_duration_sec", config.policies.max_task_duration_sec),
        ("max_retries", "retries.max", config.retries.max),
        ("concurrency", "concurrency.max_workers", config.concurrency.max_workers),
    )
    for name, setting, most in table:
        over = [f"{task} ({getattr(limit, name)})" for task, limit in limits if getattr(limit, name) > most]
        if over:
            raise LimitExceeded(
                f"{where}: {name} is more than {setting}, which is {most}: {listed(over)}",
                f"ask for less, or raise {setting}",
            )


def _check_env(tasks: Sequence[PlanTask], config: OrchestraConfig, where: str) -> None:
    found = [
        f"{name} ({task.task_id})"
        for task in tasks
        for name in sorted(kept_env(constraints(task, config).sandbox.net).intersection(task.inputs.env))
    ]
    if found:
        raise BadPlan(f"{where}: variables that the sandbox sets itself: {listed(found)}", "leave them out, or rename")
