"""Plans: what is read, what is refused and with which words, and what a run goes by."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
import pytest

from pmagent.actors.orchestra.planning.allowance import LimitExceeded, SandboxRefused, ToolRefused
from pmagent.actors.orchestra.planning.config import read_config
from pmagent.actors.orchestra.planning.graph import (
    BadPlan,
    DependencyCycle,
    DuplicateTask,
    SelfDependency,
    UnknownDependency,
)
from pmagent.actors.orchestra.planning.plan import Plan, answer, assignment, make_plan
from pmagent.contracts.orchestra import PlanAnswer
from pmagent.contracts.orchestra_config import OrchestraConfig
from tests.support.cases import each
from tests.support.orchestra import plan_in as read_plan

RUN = "5b0c7a52-3f7e-4c1d-9a55-000000000001"
OTHER = "5b0c7a52-3f7e-4c1d-9a55-000000000002"
CONFIG = read_config('version: "1.0"')


def configured(text: str) -> OrchestraConfig:
    return read_config(f'version: "1.0"\n{text}')


def task(name: str, *waits: str, **more: Any) -> dict[str, Any]:
    return {"task_id": name, "intent": f"Do {name}", "tools": ["echo"], "depends_on": list(waits)} | more


def planned(*tasks: dict[str, Any], config: OrchestraConfig = CONFIG, run: str = RUN) -> Plan:
    return make_plan(read_plan(json.dumps(tasks)), config, run)


def own(name: str, run: str = RUN) -> str:
    return str(uuid.uuid5(uuid.UUID(run), name))


def refused(kind: type[BadPlan], given: Any, config: OrchestraConfig = CONFIG) -> tuple[str, str]:
    """Message, less the plan's name, and hint of the refusal, which is of exactly this kind."""
    with pytest.raises(BadPlan) as caught:
        make_plan(read_plan(json.dumps(given)), config, RUN)
    assert type(caught.value) is kind
    assert caught.value.message.startswith("the plan: ")
    return caught.value.message.removeprefix("the plan: "), caught.value.hint


def test_a_bare_list_and_a_mapping_in_json_and_yaml_are_the_same_plan() -> None:
    tasks = [task("rows"), task("trays", "rows")]
    dag = {"nodes": ["rows", "trays"], "edges": [["rows", "trays"]]}
    bare = planned(*tasks)
    assert make_plan(read_plan(json.dumps({"tasks": tasks, "dag": dag})), CONFIG, RUN) == bare
    text = "- {task_id: rows, intent: Do rows, tools: [echo]}\n- task_id: trays\n  intent: Do trays\n  tools: [echo]\n"
    assert make_plan(read_plan(text + "  depends_on: [rows]\n"), CONFIG, RUN) == bare


def test_ids_become_uuids_of_the_run_and_the_dag_uses_them() -> None:
    plan = planned(task("trays", "rows"), task("rows"), task("water", parent_id="trays"))
    assert [one.task_id for one in plan.tasks] == [own("rows"), own("trays"), own("water")]
    assert [one.name for one in plan.tasks] == ["rows", "trays", "water"]
    assert plan.tasks[1].depends_on == [own("rows")]
    assert [one.parent_id for one in plan.tasks] == [None, None, own("trays")]
    assert plan.plan_id == own("/plan")
    said = answer(plan.plan_id, plan.tasks)
    assert said.dag.nodes == [own("rows"), own("trays"), own("water")]
    assert said.dag.edges == [[own("rows"), own("trays")]]


def test_a_later_revision_has_other_ids_and_may_wait_for_what_is_kept() -> None:
    given = read_plan(json.dumps([task("again", "rows", parent_id="rows"), task("more", "again")]))
    plan = make_plan(given, CONFIG, RUN, revision=1, kept={"rows": own("rows")})
    assert [one.task_id for one in plan.tasks] == [own("/1/again"), own("/1/more")]
    assert [one.depends_on for one in plan.tasks] == [[own("rows")], [own("/1/again")]]
    assert plan.tasks[0].parent_id == own("rows")
    assert plan.plan_id == own("/plan/1")


def test_what_is_kept_cannot_be_planned_again() -> None:
    given = read_plan(json.dumps([task("rows")]))
    with pytest.raises(DuplicateTask, match=r"^the plan: more than one task is called rows$"):
        make_plan(given, CONFIG, RUN, revision=1, kept={"rows": own("rows")})


def test_a_plan_needs_as_many_attempts_as_its_tasks_may_take() -> None:
    plan = planned(task("a"), task("b", constraints={"max_retries": 0}), task("c", constraints={"max_retries": 1}))
    assert plan.attempts == 3 + 1 + 2


def test_two_runs_of_one_plan_share_no_task_even_where_its_ids_are_uuids() -> None:
    mine, theirs = planned(task(OTHER)), planned(task(OTHER), run=OTHER)
    assert mine.tasks[0].task_id == own(OTHER)
    assert mine.tasks[0].task_id != theirs.tasks[0].task_id


def test_the_authors_plan_id_stays() -> None:
    given = read_plan(json.dumps({"plan_id": OTHER, "tasks": [task("rows")]}))
    assert make_plan(given, CONFIG, RUN).plan_id == OTHER


def test_the_answer_has_the_contracts_shape_and_can_be_given_as_a_plan_again() -> None:
    plan = planned(task("rows"), task("trays", "rows"))
    said = answer(plan.plan_id, plan.tasks)
    text = msgspec.json.encode(said)
    assert msgspec.json.decode(text, type=PlanAnswer) == said
    again = make_plan(read_plan(text), CONFIG, OTHER)
    assert [one.intent for one in again.tasks] == ["Do rows", "Do trays"]


def test_a_parent_is_no_order() -> None:
    plan = planned(task("child", parent_id="rows"), task("rows"))
    assert [one.intent for one in plan.tasks] == ["Do child", "Do rows"]
    assert answer(plan.plan_id, plan.tasks).dag.edges == []


def test_limits_are_the_plans_or_else_the_configurations_and_all_are_written_out() -> None:
    config = configured("policies: {allow_network: true}\nsecurity: {net: {allow_domains: [example.org]}}")
    wish = {"max_duration_sec": 1.5, "max_retries": 0, "concurrency": 2, "sandbox": {"fs": "rw", "net": "allow"}}
    plan = planned(task("a"), task("b", constraints=wish), config=config)
    plain, wishing = plan.tasks
    assert msgspec.to_builtins(plain.constraints) == {
        "max_duration_sec": 300, "max_retries": 2, "concurrency": 1, "sandbox": {"fs": "read-only", "net": "deny"}
    }
    assert msgspec.to_builtins(wishing.constraints) == wish


def test_a_worker_gets_program_and_arguments_as_they_are() -> None:
    inputs = {"args": ["a b", "> out", "*"], "env": {"ROW": "7"}, "files": [{"path": "d/x", "content": "y"}]}
    (one,) = planned(task("a", tools=["ls", "cat"], inputs=inputs)).tasks
    given = assignment(one)
    assert (given.task_id, given.tools[0]) == (own("a"), "ls")
    assert msgspec.to_builtins(given.inputs) == inputs


@each(
    "kind, tasks, message, hint",
    [
        (DuplicateTask, [task("a"), task("b", "a"), task("a"), task("b")], "more than one task is called a, b",
         "give each its own task_id"),
        (SelfDependency, [task("a"), task("b", "a", "b")], "waits for itself: b",
         "remove it from its own depends_on"),
        (UnknownDependency, [task("a", "c"), task("b", "a", "d")],
         "waits for a task that the plan does not list: a for c, b for d", "correct depends_on, or add the task"),
        (DependencyCycle, [task("s"), task("x", "c"), task("a", "s", "b"), task("b", "c"), task("c", "a")],
         "tasks wait for each other in a circle: c -> a -> b -> c (each for the next)",
         "remove one of these dependencies"),
        (BadPlan, [task("a"), task("b", "a", "a")], "waits twice for the same task: b for a",
         "name each dependency once"),
        (BadPlan, [task("a", parent_id="z")], "the parent_id is no task of the plan: a", "correct it, or leave it out"),
        (BadPlan, [task("a", parent_id="b"), task("b", parent_id="a")],
         "the parent_id leads around in a circle: a, b", "leave one of them out"),
        (BadPlan, [task("a", inputs={"files": [{"path": "d", "content": ""}, {"path": "d/e", "content": ""}]})],
         'a: inputs.files has a path twice, or a file below it: "d"', "give each file its own path"),
        (BadPlan, [task("a", inputs={"files": [{"path": "d/e", "content": ""}, {"path": "d/e", "content": "x"}]})],
         'a: inputs.files has a path twice, or a file below it: "d/e"', "give each file its own path"),
        (BadPlan, [], "tasks is an empty list", "it must be a list of 1 to 10000 tasks"),
        (BadPlan, "echo", 'the whole is "echo"', "it must be a list of tasks, or a mapping: plan_id, tasks, dag"),
        (BadPlan, [task("a", inputs={"env": {"PATH": "/x", "ARTIFACTS": "y", "http_proxy": "z"}})],
         "variables that the sandbox sets itself: ARTIFACTS (a), PATH (a)", "leave them out, or rename"),
        (BadPlan, {"tasks": None}, "tasks is missing", "it must be a list of 1 to 10000 tasks"),
        (BadPlan, {"plan": []}, "there is no plan", "did you mean plan_id?"),
        (BadPlan, [task("a"), task("b c")], 'tasks[1].task_id is "b c"',
         "it must be a task's id: letters, digits and . _ -, at most 64"),
        (BadPlan, [task("a", dependson=[])], "there is no tasks[0].dependson", "did you mean depends_on?"),
        (BadPlan, [task("a", constraints={"max_duration_sec": 0})], "tasks[0].constraints.max_duration_sec is 0",
         "it must be a number of seconds above 0, at most 86400"),
        (BadPlan, [task("a", inputs={"args": ["x", 7]})], "tasks[0].inputs.args[1] is 7",
         "it must be a text (in YAML: in quotes) without NUL, at most 131071 characters"),
        (BadPlan, [task("a", inputs={"env": {"A=B": "1"}})], 'tasks[0].inputs.env: a name is "A=B"',
         "it must be a variable's name: letters, digits and _, at most 128, no digit first"),
        (BadPlan, {"tasks": [task("a")], "plan_id": "one"}, 'plan_id is "one"', "it must be a UUID in lower case"),
        (BadPlan, {"tasks": [task("a")], "dag": {"nodes": ["a", "b"], "edges": []}},
         "dag.nodes and tasks differ in b", "list each task once in both"),
        (BadPlan, {"tasks": [task("a")], "dag": {"nodes": ["a", "a"], "edges": []}},
         "dag.nodes and tasks differ in a", "list each task once in both"),
        (BadPlan, {"tasks": [task("a"), task("b")], "dag": {"nodes": ["a", "b"], "edges": [["a", "b"]]}},
         "dag.edges and depends_on differ in a -> b",
         "depends_on makes the order; correct the edges, or leave dag out"),
        (ToolRefused, [task("a", tools=["echo", "gti"]), task("b", tools=["sh"])],
         "not in whitelist_tools: gti (a), sh (b)", "did you mean git?; or add it there"),
        (SandboxRefused, [task("a", constraints={"sandbox": {"net": "allow"}})],
         "net: allow, but policies.allow_network is false: a",
         "leave it out, or allow the network in the configuration"),
        (LimitExceeded, [task("a", constraints={"max_duration_sec": 301})],
         "max_duration_sec is more than policies.max_task_duration_sec, which is 300: a (301)",
         "ask for less, or raise policies.max_task_duration_sec"),
        (LimitExceeded, [task("a", constraints={"max_retries": 3})],
         "max_retries is more than retries.max, which is 2: a (3)", "ask for less, or raise retries.max"),
        (LimitExceeded, [task("a", constraints={"concurrency": 5})],
         "concurrency is more than concurrency.max_workers, which is 4: a (5)",
         "ask for less, or raise concurrency.max_workers"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(kind: type[BadPlan], tasks: Any, message: str, hint: str) -> None:
    assert refused(kind, tasks) == (message, hint)


@each(
    "config, sandbox, message",
    [
        ("policies: {allow_network: true}", {"net": "allow"},
         "net: allow, but security.net.allow_domains is empty, which denies all: a"),
        ("security: {fs: {allow_write: []}}", {"fs": "rw"}, "fs: rw, but security.fs.allow_write is empty: a"),
        ("policies: {default_fs_mode: rw}\nsecurity: {fs: {allow_write: []}}", {},
         "fs: rw, but security.fs.allow_write is empty: a"),
    ],
)
def test_a_sandbox_that_the_configuration_leaves_nothing_of_is_refused(config: str, sandbox: Any, message: str) -> None:
    given = [task("a", constraints={"sandbox": sandbox})]
    assert refused(SandboxRefused, given, configured(config))[0] == message


def test_under_the_network_its_proxys_variables_are_the_sandboxs() -> None:
    config = configured("policies: {allow_network: true}\nsecurity: {net: {allow_domains: [example.org]}}")
    given = [task("a", inputs={"env": {"http_proxy": "z"}}, constraints={"sandbox": {"net": "allow"}})]
    assert refused(BadPlan, given, config)[0] == "variables that the sandbox sets itself: http_proxy (a)"


def test_what_breaks_the_wall_is_a_security_violation_and_what_breaks_the_shape_is_not() -> None:
    assert (ToolRefused.exit_code, SandboxRefused.exit_code) == (7, 7)
    assert (BadPlan.exit_code, DependencyCycle.exit_code, LimitExceeded.exit_code) == (2, 2, 2)


def test_of_many_names_the_first_are_told_and_how_many_more() -> None:
    message, _ = refused(SelfDependency, [task(f"t{number}", f"t{number}") for number in range(20)])
    assert message == "waits for itself: t0, t1, t2, t3, t4, t5, t6, t7 and 12 more"
    circle = [task(f"t{number}", f"t{(number + 1) % 900}") for number in range(900)]
    message, _ = refused(DependencyCycle, circle)
    assert message.endswith("t17 -> t18 -> … -> t0 (each for the next)")


def test_a_plan_has_at_most_ten_thousand_tasks_and_a_task_two_hundred_dependencies() -> None:
    tasks = [task(f"t{number}") for number in range(10_000)]
    assert len(planned(*tasks).tasks) == 10_000
    assert refused(BadPlan, [*tasks, task("one-more")])[0] == "tasks is a list of 10001"
    many = task("last", *(f"t{number}" for number in range(201)))
    assert refused(BadPlan, [*tasks[:300], many])[0] == "tasks[300].depends_on is a list of 201"
    dense = [task(f"d{number}", *(f"t{other}" for other in range(200))) for number in range(501)]
    assert refused(BadPlan, [*tasks[:200], *dense])[0] == "its tasks wait 100200 times for another"


def test_a_plan_may_need_as_many_attempts_as_a_permit_has_uses_and_no_more() -> None:
    config = configured("retries: {max: 5}")
    tasks = [task(f"t{number}") for number in range(8_333)]
    last = task("last", constraints={"max_retries": 1})
    assert planned(*tasks, last, config=config).attempts == 50_000
    assert refused(LimitExceeded, [*tasks, last, task("more", constraints={"max_retries": 0})], config) == (
        "its tasks may need 50001 attempts", "at most 50000 are possible; retry less often"
    )


def test_a_task_fits_into_one_event_with_its_files() -> None:
    files = [{"path": name, "content": "x" * 330_000} for name in ("one", "two")]
    large = task("large", inputs={"files": files})
    message, _ = refused(LimitExceeded, [task("small"), large])
    assert message == "larger than 655360 bytes, files included: large"
