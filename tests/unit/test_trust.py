"""The powers of a configuration, and when that is more than before."""

from __future__ import annotations

from pathlib import Path

import pytest

from pmagent.workspace.settings import Settings, settings_table
from pmagent.workspace.trust import (
    LINES_MAX,
    NotAccepted,
    Powers,
    accept,
    is_accepted,
    lines,
    offer,
    require_accepted,
    resolved,
    summary,
    wider,
)
from tests.support.cases import each

RUNS, SETTINGS = "orchestra.config.yaml", ".pmagent/config.toml"
BASE = 'version: "1.0"\nwhitelist_tools: [echo, cat]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """See ``accepted``."""
    return accepted(tmp_path)


def accepted(tmp_path: Path) -> Path:
    """A workspace whose configuration is accepted."""
    (tmp_path / ".pmagent").mkdir()
    write(tmp_path, BASE)
    accept(tmp_path)
    return tmp_path


def write(folder: Path, runs: str, settings: str = "") -> None:
    """Its two files."""
    (folder / RUNS).write_text(runs)
    (folder / SETTINGS).write_text(settings)


WIDER = [
    ('version: "1.0"\nwhitelist_tools: [echo, cat, sh]\n', "", "program: sh"),
    (f"{BASE}security: {{fs: {{allow_write: [./runs, /etc]}}}}\n", "", "write: /etc"),
    (f"{BASE}security: {{fs: {{allow_read: [./, /tmp, /srv/x]}}}}\n", "", "read: /srv/x"),
    (f"{BASE}security: {{net: {{allow_domains: [example.org]}}}}\n", "", "network: example.org"),
    (f"{BASE}policies: {{allow_network: true}}\n", "", "policy: tasks may reach the network"),
    (f"{BASE}policies: {{default_fs_mode: rw}}\n", "", "policy: tasks may write"),
    (f"{BASE}paths: {{runs: ./docs}}\n", "", "documents: "),
    (f"{BASE}llm: {{model: another}}\n", "", "planner: "),
    (f"{BASE}llm: {{prompts: {{planner: 'do evil: {{intent}}'}}}}\n", "", "planner prompt: "),
    (f"{BASE}policies: {{max_total_duration_sec: 86400}}\n", "", "policies.max_total_duration_sec"),
    (f"{BASE}retries: {{max: 9}}\n", "", "retries.max"),
    (f"{BASE}concurrency: {{max_workers: 99}}\n", "", "concurrency.max_workers"),
    (BASE, '[checks]\n"Unit Tests" = ["make", "test"]\n', "check: Unit Tests = make test"),
    (BASE, '[guards]\nmine = ["sh", "-c", "x"]\n', "guard: mine = sh -c x"),
    (BASE, '[kernel]\ncheck_reads = "/home"\n', "read: /home"),
    (BASE, "[kernel]\ncheck_seconds = 600\n", "kernel.check_seconds"),
    (BASE, '[reasoning]\nengine = "langchain"\nmodel = "a:b"\n', "setting: reasoning.model = a:b"),
    (BASE, "[reasoning]\ntokens = 99000000\n", "reasoning.tokens"),
    (BASE, '[audit]\nrubric = "r.json"\n', "setting: audit.rubric = r.json"),
    (BASE, '[pla]\ncredentials = "acknowledge"\n', "setting: pla.credentials = acknowledge"),
    (BASE, '[pla]\ndevice = "/dev/ttyS0"\n', "setting: pla.device = /dev/ttyS0"),
    (BASE, "[console]\nhours = 700\n", "console.hours"),
]


@each("runs, settings, named", WIDER)
def test_what_is_added_is_asked_for_and_named(tmp_path: Path, runs: str, settings: str, named: str) -> None:
    folder = accepted(tmp_path)
    write(folder, runs, settings)
    new = offer(folder).new
    assert any(item.startswith(named) for item in (*new.items, *new.limits)), new
    with pytest.raises(NotAccepted) as caught:
        require_accepted(folder)
    assert caught.value.exit_code == 7
    accept(folder)
    require_accepted(folder)


def test_a_setting_that_is_too_long_to_be_shown_hides_nothing_without_a_word(tmp_path: Path) -> None:
    folder = accepted(tmp_path)
    write(folder, BASE, f'[audit]\nrubric = "{"r" * 600}"\n[notifications]\nwebhook = "https://127.0.0.1:1/"\n')
    (line,) = [one for one in lines(offer(folder).new) if one.startswith("settings")]
    assert ("webhook" in line, "… (cut)" in line, "1 more" in line) == (False, True, True)


NARROWER = [
    ('version: "1.0"\nwhitelist_tools: [echo]\n', ""),
    (f"{BASE}security: {{fs: {{allow_write: [./runs/mine]}}}}\n", ""),
    (f"{BASE}security: {{fs: {{allow_read: [./docs], allow_write: []}}}}\n", ""),
    (f"{BASE}policies: {{max_total_duration_sec: 10}}\nretries: {{max: 0}}\n", ""),
    (f"{BASE}# a remark\n", '[kernel]\nphase = "2"\n[cli]\ncolor = "never"\n'),
    (BASE, "[pla]\ntwo_persons = true\n[console]\nenabled = false\n[audit]\ncost_usd = 1\n"),
]


@each("runs, settings", NARROWER)
def test_what_is_taken_away_is_not_asked_for(tmp_path: Path, runs: str, settings: str) -> None:
    folder = accepted(tmp_path)
    write(folder, runs, settings)
    assert is_accepted(folder)


def test_loosening_what_was_accepted_as_strict_is_asked_for(folder: Path) -> None:
    write(folder, BASE, "[pla]\ntwo_persons = true\n[audit]\ncost_usd = 1\n")
    accept(folder)
    write(folder, BASE)
    assert offer(folder).new == Powers(["setting: pla.two_persons = False"], {"audit.cost_usd": 1e300})


def test_every_setting_gives_a_power_or_is_known_to_give_none(folder: Path) -> None:
    """A setting that is added later is asked for unless somebody has thought about it."""
    changed = {"": "x", "rules": "langchain", "refuse": "acknowledge", "loopback": "unix", "required": "none", None: 3,
               "starttls": "none", "off": "offered"}  # fmt: skip
    harmless = {"kernel.phase", "kernel.last_completed_phase", "cli.color", "cli.tail_lines", "console.port",
                "notifications.least", "notifications.requests"}  # fmt: skip
    for setting in settings_table():
        if setting.key in (*harmless, "pla.operator", "pla.two_persons", "console.enabled", "pla.keep_frames"):
            continue
        if setting.key.endswith("cost_usd"):
            continue  # none at all is most
        value = changed.get(setting.default, setting.default)
        value = not value if isinstance(value, bool) else value + 1 if isinstance(value, int | float) else value
        value = {"kernel.check_reads": "/srv/x", "pla.layout": "de"}.get(setting.key, value)
        section, name = setting.key.split(".")
        text = f'"{value}"' if isinstance(value, str) else str(value).lower()
        top = {"attempts": 10, "call_seconds": 600, "concurrency": 16, "survey_seconds": 1800}.get(name)
        write(folder, BASE, f"[{section}]\n{name} = {top or text}\n")
        assert not is_accepted(folder), setting.key


def test_a_file_that_is_not_understood_gives_nothing_and_keeps_nobody(folder: Path) -> None:
    write(folder, "version: [", "[[[")
    require_accepted(folder)
    assert offer(folder).powers == Powers()


def test_unchanged_files_are_not_parsed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("pmagent.workspace.trust.read_config", never)
    require_accepted(folder)


def test_settings_are_read_from_the_bytes_that_were_looked_at(folder: Path) -> None:
    assert resolved(folder, {}).settings == Settings()
    write(folder, BASE, '[pla]\ncredentials = "acknowledge"\n')
    with pytest.raises(NotAccepted):
        resolved(folder, {})
    assert resolved_with(folder, "PMAGENT_PLA_CREDENTIALS") == "refuse"


def resolved_with(folder: Path, variable: str) -> str:
    """The value of a variable of this user's own says is no power of the workspace's."""
    write(folder, BASE)
    return resolved(folder, {variable: "refuse"}).settings.pla.credentials


@each("tools", [1, 60, 100])
def test_the_summary_fits_on_a_screen(folder: Path, tools: int) -> None:
    names = ", ".join(f"{'tool' * 12}{n}" for n in range(tools))
    checks = "".join(f'"check {n}" = ["make", "{"x" * 300}"]\n' for n in range(tools))
    settings = f"[checks]\n{checks}\n[pla]\ndevice = \"/dev/x\"\n[reasoning]\nengine = \"dspy\"\nmodel = \"a:b\"\n"
    write(folder, f'version: "1.0"\nwhitelist_tools: [{names}]\n', settings)
    told = summary(offer(folder).powers)
    assert 5 < len(told) <= LINES_MAX
    assert any("programs" in line for line in told)
    assert max(map(len, told)) < 800


def test_control_characters_do_not_reach_the_screen() -> None:
    assert "\x1b" not in "".join(lines(Powers(["check: a\x1b[2J = x"])))


def test_wider_is_what_is_more() -> None:
    one, two = Powers(["program: a"], {"x": 1}), Powers(["program: a", "program: b"], {"x": 2, "y": 1})
    assert wider(one, two) == Powers(["program: b"], {"x": 2, "y": 1})
    assert wider(two, one) == Powers()
    assert wider(Powers(["read: ."]), Powers(["read: docs", "write: docs"])) == Powers(["write: docs"])
    assert wider(Powers(["write: docs"]), Powers(["read: docs/x", "read: docsy"])) == Powers(["read: docsy"])
