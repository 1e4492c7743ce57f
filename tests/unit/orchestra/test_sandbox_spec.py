"""The means of a task's program, from its assignment and the run's configuration."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pmagent.actors.orchestra.running.sandbox_spec import documents_of, spec_of
from pmagent.actors.sandbox.spec import SEARCH, TASK, SandboxRefused, SandboxSpec, check
from pmagent.contracts.orchestra import Program
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.contracts.orchestra_events import TaskAssigned, TaskAttemptRequested
from tests.support.orchestra import RUN, config

ROOT = "/srv/work"
TASK_ID = "00000000-0000-5000-8000-000000000001"
NETWORK = """\
policies: {allow_network: true}
security: {net: {allow_domains: [example.org]}}
telemetry: {trace_id_header: X-Trace}
"""


def given(sandbox: dict[str, str] | None = None, **inputs: Any) -> tuple[TaskAssigned, TaskAttemptRequested]:
    """A task with these inputs, and its second attempt."""
    assigned = msgspec.convert(
        {
            "run_id": RUN, "requested": 5, "permit": 11, "action": "feature_work", "name": "one", "worker": 1,
            "after": {}, "simulated": False, "backoff_base_sec": 2.0,
            "assignment": {
                "task_id": TASK_ID, "tools": ["cat", "ls"], "inputs": inputs,
                "constraints": {"max_duration_sec": 30, "max_retries": 2, "sandbox": sandbox or {}},
            },
        },
        TaskAssigned,
    )
    asked = TaskAttemptRequested(
        permit=11, run_id=RUN, task_id=TASK_ID, requested=5, assigned=12, attempt=2, action="feature_work",
        seconds=30.0, simulated=False,
    )
    return assigned, asked


def spec(settings: OrchestraConfig | None = None, sandbox: dict[str, str] | None = None, **inputs: Any) -> SandboxSpec:
    """The wishes of a task with these inputs."""
    made = spec_of(ROOT, settings or config(), *given(sandbox, **inputs), "/priv/artifacts", "/priv/inputs")
    check(made)
    return made


def test_the_first_tool_is_the_program_and_the_arguments_stay_as_they_are() -> None:
    assert spec(args=["a b", "*", "$HOME", "> x"]).argv == ("cat", "a b", "*", "$HOME", "> x")


def test_a_read_only_task_sees_the_workspace_and_writes_nothing_of_it() -> None:
    made = spec()
    assert (made.fs, made.allow_read, made.allow_write, made.workdir) == ("read-only", (ROOT, "/tmp"), (), ROOT)
    assert made.net == "deny"
    assert made.allow_domains == ()
    assert made.trace is None


def test_evidence_that_lies_elsewhere_is_hidden_too_and_cannot_be_made_writable() -> None:
    assigned, asked = given()
    made = spec_of(ROOT, config(), assigned, asked, "/priv/artifacts", "/priv/inputs", (f"{ROOT}/runs/kept",))
    assert made.hide == (f"{ROOT}/.pmagent", f"{ROOT}/runs/kept")
    check(made)
    refused = spec_of(ROOT, config(), *given({"fs": "rw"}), "/priv/artifacts", "/priv/inputs", (f"{ROOT}/runs",))
    with pytest.raises(SandboxRefused):
        check(refused)


def test_what_is_pmagents_is_hidden_and_what_people_go_by_is_protected() -> None:
    made = spec(sandbox={"fs": "rw"})
    assert made.allow_write == (f"{ROOT}/runs",)
    assert made.hide == (f"{ROOT}/.pmagent",)
    assert set(made.protect) == {
        f"{ROOT}/share", f"{ROOT}/orchestra.config.yaml", f"{ROOT}/jobs", f"{ROOT}/sessions", f"{ROOT}/runs/{RUN}",
    }  # fmt: skip
    assert made.packages == (f"{ROOT}/.venv",)


def test_packages_with_programs_of_the_run_are_protected_unless_they_may_be_written_by_name() -> None:
    programs = [
        Program(name="lint", path=f"{ROOT}/node_modules/.bin/lint", real=f"{ROOT}/node_modules/lint/cli.js"),
        Program(name="x", path="/home/u/venv/bin/x", real="/home/u/venv/bin/x", shows=["/home/u/venv"]),
    ]

    def protected(*write: str) -> set[str]:
        settings = config(f"security: {{fs: {{allow_write: {list(write)}}}}}")
        made = spec_of(ROOT, settings, *given({"fs": "rw"}), "/priv/artifacts", "/priv/inputs", (), programs, "/r/.git")
        check(made)
        assert made.shows == ("/home/u/venv", "/r/.git")
        assert made.search == ("/home/u/venv/bin", *SEARCH, f"{ROOT}/node_modules/.bin")
        return set(made.packages)

    assert protected("./") == {f"{ROOT}/.venv", f"{ROOT}/node_modules"}
    assert protected("./", ".venv") == {f"{ROOT}/node_modules"}
    assert protected("./", "node_modules", ".venv/lib") == set()


def test_documents_are_protected_by_folders_but_where_tasks_may_write_right_beside_them() -> None:
    paths = "paths: {runs: o/r, logs: 'logs/{run_id}.jsonl', artifacts: 'kept/{run_id}', report: 'd/{run_id}/x/r.md'}\n"
    own = (f"{ROOT}/jobs", f"{ROOT}/sessions", f"{ROOT}/o/r/{RUN}", f"{ROOT}/kept/{RUN}")
    found = documents_of(ROOT, config(paths), RUN)
    assert (found.folders, found.files) == ((*own, f"{ROOT}/logs", f"{ROOT}/d/{RUN}"), ())
    beside = documents_of(ROOT, config(f"{paths}security: {{fs: {{allow_write: [logs/mine]}}}}"), RUN)
    assert (beside.folders, beside.files) == ((*own, f"{ROOT}/d/{RUN}"), (f"{ROOT}/logs/{RUN}.jsonl",))


def test_a_task_with_files_starts_beside_them() -> None:
    made = spec(files=[{"path": "a/b.txt", "content": "hü"}])
    assert made.workdir == TASK
    assert made.files == (("a/b.txt", "hü".encode()),)


def test_where_the_workspace_may_not_be_read_a_task_starts_in_its_own_tmp() -> None:
    made = spec(config('security: {fs: {allow_read: ["docs", "/opt/data"]}}'))
    assert (made.allow_read, made.workdir) == ((f"{ROOT}/docs", "/opt/data"), "/tmp")


def test_the_network_is_the_domains_of_the_configuration_and_carries_the_trace() -> None:
    made = spec(config(NETWORK), {"net": "allow"})
    assert (made.net, made.allow_domains, made.trace) == ("allow", ("example.org",), ("X-Trace", RUN))
    assert spec(config(NETWORK)).allow_domains == ()


def test_a_task_knows_its_run_and_itself_and_cannot_say_otherwise() -> None:
    env = spec(env={"MINE": "1", "ORCHESTRA_TRACE_ID": "forged"}).env
    assert env["ORCHESTRA_TRACE_ID"] == RUN
    assert (env["ORCHESTRA_TASK_ID"], env["ORCHESTRA_TASK"], env["ORCHESTRA_ATTEMPT"]) == (TASK_ID, "one", "2")
    assert (env["MINE"], env["WORKSPACE"]) == ("1", ROOT)


def test_its_time_is_the_attempts() -> None:
    limits = spec().limits
    assert limits.seconds == 30.0
    assert limits.cpu_seconds >= 30
