"""The configuration: the specification's defaults, one error that names the path, and flags over the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.orchestra.planning.config import BadConfig, Flags, effective, read_config
from pmagent.actors.orchestra.planning.placeholders import filled, named
from pmagent.actors.orchestra.planning.render import rendered
from pmagent.contracts.orchestra_config import WHITELIST, OrchestraConfig, PromptSettings
from tests.support.cases import each

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "orchestra" / "orchestra.config.yaml"
HEAD = 'version: "1.0"\n'
SECTIONS = "version, policies, whitelist_tools, llm, retries, concurrency, paths, security, telemetry, workers"


def refusal(text: str) -> tuple[str, str]:
    """The refusal of a configuration: message, less the file's name, and hint."""
    with pytest.raises(BadConfig) as caught:
        read_config(HEAD + text, "o.yaml")
    assert caught.value.exit_code == 2
    assert caught.value.message.startswith("o.yaml: ")
    return caught.value.message.removeprefix("o.yaml: "), caught.value.hint


def test_what_is_left_out_has_the_specifications_value() -> None:
    config = read_config(HEAD)
    assert config.policies.allow_network is False
    assert config.policies.default_fs_mode == "read-only"
    assert (config.policies.max_task_duration_sec, config.policies.max_total_duration_sec) == (300, 1800)
    assert config.whitelist_tools == list(WHITELIST)
    assert (config.retries.max, config.retries.backoff_base_sec, config.concurrency.max_workers) == (2, 2, 4)
    assert config.paths.logs == "./runs/{run_id}/tasks.jsonl"
    assert (config.security.fs.allow_read, config.security.fs.allow_write) == (["./", "/tmp"], ["./runs"])
    assert config.security.net.allow_domains == []
    assert config.security.redact_secrets is True
    assert config.telemetry.trace_id_header == "X-Orchestra-Trace-ID"


def test_a_section_keeps_the_other_defaults_when_one_value_is_given() -> None:
    config = read_config(HEAD + "policies:\n  max_task_duration_sec: 0.5\n")
    assert config.policies.max_task_duration_sec == 0.5
    assert config.policies.max_total_duration_sec == 1800


def test_a_real_configuration_is_read_and_rendered() -> None:
    if not REAL.is_file():
        pytest.skip("the real configuration is not here")
    config = read_config(REAL.read_bytes())
    assert config.whitelist_tools == ["echo", "ls", "cat", "node", "pnpm", "git"]
    assert config == msgspec.structs.replace(read_config(HEAD), whitelist_tools=config.whitelist_tools)
    assert read_config(rendered(config)) == config


@each(
    "text, message, hint",
    [
        ("policies: {max_task_duration_sec: -5}", "policies.max_task_duration_sec is -5",
         "it must be a number of seconds above 0, at most 86400"),
        ("policies: {max_task_duration_sec: 0}", "policies.max_task_duration_sec is 0",
         "it must be a number of seconds above 0, at most 86400"),
        ("policies: {max_task_duration_sec: 1e400}", 'policies.max_task_duration_sec is "1e400"',
         "it must be a number of seconds above 0, at most 86400"),
        ("policies: {max_task_duration_sec: .inf}", 'policies.max_task_duration_sec is ".inf"',
         "it must be a number of seconds above 0, at most 86400"),
        ("policies: {max_task_duration_sec: true}", "policies.max_task_duration_sec is true",
         "it must be a number of seconds above 0, at most 86400"),
        ("policies: {max_task_duration: 5}", "there is no policies.max_task_duration",
         "did you mean max_task_duration_sec?"),
        ("policies: {allow_network: no}", 'policies.allow_network is "no"', "it must be true or false"),
        ("policies: {default_fs_mode: write}", 'policies.default_fs_mode is "write"', "it must be read-only or rw"),
        ("policies:", "policies is nothing (null)",
         "it must be a mapping: allow_network, default_fs_mode, max_task_duration_sec, max_total_duration_sec"),
        ("whitelst_tools: [ls]", "there is no whitelst_tools", "did you mean whitelist_tools?"),
        ('"a\\e[1mb": 1', 'there is no "a\\u001b[1mb"',
         f"there are: {SECTIONS}"),
        ("whitelist_tools: []", "whitelist_tools is an empty list", "it must be a list of 1 to 100 program names"),
        ("whitelist_tools: ls", 'whitelist_tools is "ls"', "it must be a list of 1 to 100 program names"),
        ("whitelist_tools: [ls, /bin/sh]", 'whitelist_tools[1] is "/bin/sh"',
         "it must be a program's name without a path: letters, digits and . _ + -, at most 64"),
        ("whitelist_tools: [ls, cat, ls]", "whitelist_tools names ls twice", "keep one of the two"),
        ("llm: {backend: other}", 'llm.backend is "other"', "it must be claude_code"),
        ('llm: {prompts: {planner: "{intnt}"}}', "llm.prompts.planner holds the unknown placeholder {intnt}",
         "did you mean {intent}?"),
        ('llm: {prompts: {planner: "{run_id}"}}', "llm.prompts.planner holds the unknown placeholder {run_id}",
         "there are: {intent}, {constraints}, {whitelist_tools}"),
        ('paths: {report: "{runid}.md"}', "paths.report holds the unknown placeholder {runid}",
         "did you mean {run_id}?"),
        ('paths: {runs: "./{run_id}"}', "paths.runs holds the unknown placeholder {run_id}",
         "no placeholders may stand there"),
        ("retries: {max: -1}", "retries.max is -1", "it must be a whole number from 0 (no second attempt) to 10"),
        ("retries: {max: 1.5}", "retries.max is 1.5", "it must be a whole number from 0 (no second attempt) to 10"),
        ("concurrency: {max_workers: 0}", "concurrency.max_workers is 0", "it must be a whole number from 1 to 256"),
        ("security: {net: {allow_domains: [\"http://example.org\"]}}",
         'security.net.allow_domains[0] is "http://example.org"',
         "it must be an exact host name, without scheme, port or wildcard"),
        ("security: {fs: {allow_write: [1]}}", "security.fs.allow_write[0] is 1",
         "it must be a path: printable, not blank, at most 1024 characters"),
        ("security: {net: {allow_domains: [example.org, 127.0.0.1]}}",
         "security.net.allow_domains[1]: 127.0.0.1 is an IP address", "ask for the host by its name"),
        ("telemetry: {trace_id_header: Transfer-Encoding}",
         "telemetry.trace_id_header: 'Transfer-Encoding' cannot carry the trace id", "choose a header of your own"),
        ("telemetry: [info]", "telemetry is a list of 1", "it must be a mapping: level, format, trace_id_header"),
    ],
)
def test_a_configuration_that_says_what_it_may_not_is_refused_with_the_path(text: str, message: str, hint: str) -> None:
    assert refusal(text) == (message, hint)


@each("text, message, hint", [
    ("policies: {}", "version is missing", 'it must be "1.0"'),
    ("version: 1.0", "version is 1.0", 'it must be "1.0"'),
    ("", "the whole is nothing (null)", f"it must be a mapping: {SECTIONS}"),
])
def test_a_configuration_names_its_version_as_a_text(text: str, message: str, hint: str) -> None:
    with pytest.raises(BadConfig) as caught:
        read_config(text)
    assert (caught.value.message, caught.value.hint) == (f"orchestra.config.yaml: {message}", hint)


def test_no_second_attempt_is_a_setting() -> None:
    assert read_config(HEAD + "retries: {max: 0}").retries.max == 0


def test_flags_win_over_the_file_and_what_lay_below_runs_moves_along() -> None:
    config = read_config(HEAD + 'paths: {report: "./elsewhere/{run_id}.md"}')
    made = effective(config, Flags(concurrency=1, retries=0, out="/srv/out/"))
    assert (made.concurrency.max_workers, made.retries.max, made.paths.runs) == (1, 0, "/srv/out/")
    assert made.paths.logs == "/srv/out/{run_id}/tasks.jsonl"
    assert made.paths.artifacts == "/srv/out/{run_id}/artifacts"
    assert made.paths.report == "./elsewhere/{run_id}.md"
    assert made.retries.backoff_base_sec == config.retries.backoff_base_sec
    assert made.security == config.security, "a flag widens no sandbox"
    assert effective(config, Flags()) == config


def test_a_path_that_only_begins_like_runs_stays() -> None:
    config = read_config(HEAD + 'paths: {logs: "./runs-old/{run_id}.jsonl"}')
    assert effective(config, Flags(out="./new")).paths.logs == "./runs-old/{run_id}.jsonl"


@each("flags, message", [
    (Flags(concurrency=0), "--concurrency is 0"),
    (Flags(retries=-1), "--retries is -1"),
    (Flags(out=" "), '--out is " "'),
    (Flags(out="./{run_id}"), "--out holds {run_id}"),
])
def test_a_flag_that_may_not_be_is_refused_by_its_name(flags: Flags, message: str) -> None:
    with pytest.raises(BadConfig) as caught:
        effective(read_config(HEAD), flags)
    assert caught.value.message == message
    assert caught.value.hint


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{"), min_size=1, max_size=40)


@given(planner=texts, summarizer=texts, seconds=st.floats(0.001, 86_400), count=st.integers(0, 10))
def test_what_is_rendered_reads_back_as_the_same(planner: str, summarizer: str, seconds: float, count: int) -> None:
    value: dict[str, Any] = {
        "version": "1.0", "policies": {"max_task_duration_sec": seconds},
        "llm": {"prompts": {"planner": f"p{planner}", "summarizer": f"{summarizer}s"}}, "retries": {"max": count},
        "security": {"net": {"allow_domains": ["null", "1e5", "example.org"]}},
    }
    config = msgspec.convert(value, OrchestraConfig)
    assert read_config(rendered(config)) == config
    assert rendered(read_config(rendered(config))) == rendered(config)


LINES = ["", " ", "\t", "a", " a", "a ", "- b: c", "# d", "(x)", "\x85", "\u2028", "é"]


@given(st.lists(st.sampled_from(LINES), max_size=5))
def test_prompts_of_several_lines_read_back_whatever_their_indentation(lines: list[str]) -> None:
    config = read_config(HEAD)
    prompts = PromptSettings(planner="\n".join([*lines, "z", ""]), summarizer="\n".join(["a", *lines, "z", ""]))
    config = msgspec.structs.replace(config, llm=msgspec.structs.replace(config.llm, prompts=prompts))
    assert read_config(rendered(config)) == config


def test_placeholders_are_filled_once_and_other_braces_stay() -> None:
    template = 'Plan {intent} as {"task_id": "x"} and {intent}'
    assert named(template) == ["intent"]
    assert filled(template, {"intent": "{constraints}"}) == 'Plan {constraints} as {"task_id": "x"} and {constraints}'
    with pytest.raises(KeyError):
        filled("{other}", {"intent": ""})


def test_the_same_values_render_to_the_same_bytes_whatever_their_order() -> None:
    one = 'version: "1.0"\nretries: {max: 1, backoff_base_sec: 3}\nconcurrency: {max_workers: 2}\n'
    other = json.dumps(
        {"concurrency": {"max_workers": 2}, "retries": {"backoff_base_sec": 3, "max": 1}, "version": "1.0"}
    )
    assert rendered(read_config(one)) == rendered(read_config(other))
