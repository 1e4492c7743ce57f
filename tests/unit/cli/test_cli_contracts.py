"""``pmagent contracts``: documents of any file, held against the contract that they mean to keep."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pmagent.contracts.checking import CONTRACTS
from pmagent.contracts.pla import CONTRACT_VERSION
from pmagent.contracts.pla_schemas import CONTRACT_HASH
from tests.support import warm
from tests.support.cases import each
from tests.support.commands import PMAGENT, clean_environment, invoke

FIXTURES = Path(__file__).resolve().parents[2] / "contract" / "fixtures" / "pla"
VALID = [str(file) for contract in CONTRACTS for file in sorted((FIXTURES / contract / "valid").iterdir())]


def entry(**changes: Any) -> bytes:
    raw = json.loads((FIXTURES / "session_log" / "valid" / "proposal.json").read_bytes())
    return json.dumps(raw | changes).encode() + b"\n"


def test_documents_tell_their_contract_by_their_keys() -> None:
    done = invoke("contracts", "check", *VALID, "--format", "json")
    assert (done.code, done.err) == (0, b"")
    assert done.document["ok"] is True
    assert len(done.document["files"]) == len(VALID)
    for one in done.document["files"]:
        assert one["contracts"] == {Path(one["file"]).parts[-3]: 1}
        assert (one["documents"], one["faults"]) == (1, [])


def test_a_refused_document_is_told_with_place_kind_and_words() -> None:
    file = FIXTURES / "action_execute" / "invalid" / "long_text_with_decoy_keys.json"
    done = invoke("contracts", "check", str(file))
    assert done.code == 1
    assert done.lines == [
        f"✗ {file}: action_execute",
        "    /payload  it holds keys, which the contract does not name (schema_validation)",
        "    /payload/text  it has 2000 characters, not at most 1024 (bound_exceeded)",
    ]
    told = invoke("contracts", "check", str(file), "--format", "json").document
    assert told["ok"] is False
    assert told["files"][0]["faults"][1] == {
        "line": 0, "contract": "action_execute", "kind": "bound_exceeded", "pointer": "/payload/text",
        "text": "it has 2000 characters, not at most 1024",
    }  # fmt: skip


def test_each_line_of_a_session_log_is_a_document(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(entry() + entry(mode="PAUSED") + entry(details={"a": []}))
    done = invoke("contracts", "check", str(file))
    assert done.code == 1
    assert done.lines == [
        f"✗ {file}: 3 session_log", "    line 2, /mode  it is not OBSERVE or SUGGEST or EXECUTE (schema_validation)",
        "    line 3, /details/a  it is not a text or an integer or true or false (schema_validation)",
    ]
    file.write_bytes(entry() * 3)
    assert invoke("contracts", "check", str(file)).lines == [f"✓ {file}: 3 session_log"]
    file.write_bytes(entry() + b"\n" + entry())
    assert invoke("contracts", "check", str(file)).lines[1:] == [
        "    line 2  it is not JSON at line 1, column 1 (schema_validation)"
    ]


def test_lines_are_known_without_a_name_for_them(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(entry() + entry())
    assert invoke("contracts", "check", str(file)).lines == [f"✓ {file}: 2 session_log"]


def test_stdin_is_checked_too() -> None:
    done = warm.run(
        [*PMAGENT, "contracts", "check", "-"], input=entry(mode="PAUSED"), capture_output=True, check=False,
        env=clean_environment(), timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout.decode().splitlines()[1] == (
        "    /mode  it is not OBSERVE or SUGGEST or EXECUTE (schema_validation)"
    )


def test_the_option_is_believed_before_a_files_name_and_that_before_its_keys(tmp_path: Path) -> None:
    status = (FIXTURES / "device_status" / "valid" / "least.json").read_bytes()
    named = tmp_path / "hello-1.json"
    named.write_bytes(status)
    assert invoke("contracts", "check", str(named)).lines[0] == f"✗ {named}: hello"
    assert invoke("contracts", "check", str(named), "--contract", "device_status").code == 0
    other = tmp_path / "othello.json"
    other.write_bytes(status)
    assert invoke("contracts", "check", str(other)).code == 0


def test_a_document_that_shows_no_contract_needs_the_option(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"proposal_id": "prop-0000"}')
    done = invoke("contracts", "check", str(file))
    assert done.code == 2
    assert done.errors.splitlines() == [
        f"error: {file}: it does not show which contract it means to keep", "hint: say it: --contract NAME"
    ]  # fmt: skip
    assert invoke("contracts", "check", str(file), "--contract", "action_decision").code == 1


def test_what_is_no_json_is_a_fault_and_no_question(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"mode": ')
    done = invoke("contracts", "check", str(file))
    assert done.code == 1
    assert done.lines == [
        f"✗ {file}: no JSON", "    the whole  it is not JSON at line 1, column 10 (schema_validation)",
    ]


@each("content", [None, b"", b" \n"])
def test_an_unreadable_file_ends_the_command_before_anything_is_told(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "x.json"
    if content is not None:
        file.write_bytes(content)
    done = invoke("contracts", "check", VALID[0], str(file))
    assert (done.code, done.out) == (2, b"")
    assert invoke("contracts", "check", VALID[0], "--contract", "macro").code == 2


def test_hostile_text_in_a_file_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "hello.json"
    file.write_text(json.dumps({"\x1b]0;x\x07 hunter2": 1, "boot_id": "hunter2", "armed": "hunter2"}))
    done = invoke("contracts", "check", str(file))
    assert done.code == 1
    assert "hunter2" not in done.text
    assert "\x1b" not in done.text


def test_of_many_faults_the_first_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(entry(mode="PAUSED") * 50)
    done = invoke("contracts", "check", str(file))
    assert len(done.lines) == 22
    assert done.lines[-1] == "    and 30 more: --format json"
    assert len(invoke("contracts", "check", str(file), "--format", "json").document["files"][0]["faults"]) == 50


def test_without_files_the_workspaces_documents_are_checked(tmp_path: Path) -> None:
    assert invoke("contracts", "check", "--workspace", str(tmp_path)).lines[0].startswith("no documents yet")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "sessions").mkdir()
    job = (FIXTURES / "job_status" / "valid" / "failed.json").read_bytes()
    (tmp_path / "jobs" / "5b0c7a52.json").write_bytes(job)
    (tmp_path / "sessions" / "pla-1.jsonl").write_bytes(entry())
    (tmp_path / "sessions" / "pla-1.violations.jsonl").write_text("{}\n")
    done = invoke("contracts", "check", "--workspace", str(tmp_path))
    assert done.code == 0
    assert [line.rpartition("/")[2] for line in done.lines] == ["5b0c7a52.json: job_status", "pla-1.jsonl: session_log"]


def test_the_list_tells_every_contract_and_the_hash() -> None:
    done = invoke("contracts", "list", "--format", "json")
    assert done.code == 0
    assert [one["name"] for one in done.document["contracts"]] == list(CONTRACTS)
    assert done.document["hash"] == CONTRACT_HASH
    shown = invoke("contracts", "list").text
    assert all(name in shown for name in (*CONTRACTS, CONTRACT_HASH, CONTRACT_VERSION))


@each("where", ["jobs/x.json", "sessions/x.jsonl"])
def test_what_is_no_file_in_the_workspace_is_not_waited_for(tmp_path: Path, where: str) -> None:
    (tmp_path / where).parent.mkdir()
    os.mkfifo(tmp_path / where)
    done = invoke("contracts", "check", "--workspace", str(tmp_path))
    assert done.code == 2
    assert "is no regular file" in done.errors
