"""Processes and requests: checked, limited, their failures told, their input checked, their clones temporary."""

from __future__ import annotations

from pmagent.contracts.audit_facts import Finding
from tests.support.cases import each
from tests.support.detected import Table, detected, goals, lines, of

HEAD = "import asyncio, os, re, requests, subprocess, tempfile\nfrom pathlib import Path\n"
GOALS = ("tools.checked", "tools.time", "tools.temporary", "tools.inputs", "tools.errors")


def found(text: str) -> list[Finding]:
    return detected(Table(*GOALS), HEAD + text)


@each("text", [
    "def f(x):\n    subprocess.run(['ls', x], check=True)", "def f(x):\n    subprocess.check_output(['ls', x])",
    "def f(x):\n    r = subprocess.run(['ls', x])\n    if r.returncode: print(r)",
    "def f(x):\n    subprocess.run(['ls', x]).check_returncode()",
    "def f(x):\n    p = subprocess.Popen(['ls', x])\n    p.wait()\n    return p.returncode == 0",
    "async def f(x):\n    p = await asyncio.create_subprocess_exec('ls', x)\n    return p.returncode",
    "def run(x):\n    return subprocess.run(['ls', x])\ndef f(x):\n    assert run(x).returncode == 0",
])
def test_a_process_whose_failure_is_looked_at_is_checked(text: str) -> None:
    assert of(found(text), "tools.checked_processes")


@each("text", [
    "def f(x):\n    subprocess.run(['ls', x])", "def f(x):\n    subprocess.run(['ls', x], check=False)",
    "def f(x):\n    subprocess.run(x, shell=True, check=True)", "def f(x):\n    subprocess.check_output(f'ls {x}')",
    "def f(x):\n    os.system(x)", "def f(x, runner):\n    runner.run(['ls', x], check=True)",
    "TEXT = 'subprocess.run(x, check=True)'",
])
def test_a_process_that_nobody_looks_after_is_not_checked(text: str) -> None:
    assert "tools.checked_processes" not in goals(found(text))


@each("text", [
    "subprocess.run(['ls'], timeout=3)", "def f(p):\n    p.communicate(timeout=3)",
    "requests.get('https://a', timeout=LIMIT)", "with requests.Session() as s:\n    s.post('https://a', timeout=1)",
    "import httpx\nhttpx.Client(timeout=3)", "from urllib.request import urlopen\nurlopen('https://a', timeout=1)",
    "async def f(x):\n    await asyncio.wait_for(x, 3)",
    "async def f(x):\n    async with asyncio.timeout(3):\n        await x",
])
def test_a_time_limit_is_found(text: str) -> None:
    assert of(found(text), "tools.time_limits")


@each(
    "text",
    ["subprocess.run(['ls'])", "requests.get('https://a', timeout=None)", "event.wait(timeout=3)", "f(timeout=3)"],
)
def test_a_call_without_a_limit_or_of_something_else_is_none(text: str) -> None:
    assert "tools.time_limits" not in goals(found(text))


@each("handler", [
    "except subprocess.CalledProcessError as error:\n        raise CloneError('no') from error",
    "except (OSError, subprocess.TimeoutExpired):\n        log.warning('slow')",
    "except subprocess.SubprocessError as error:\n        return {'error': str(error)}",
])
def test_a_failure_that_is_caught_and_told_is_handled(handler: str) -> None:
    text = f"def f(x):\n    try:\n        subprocess.run(['ls', x], check=True)\n    {handler}\n"
    assert lines(found(text), "tools.errors_handled") == [6]


@each("handler", [
    "except subprocess.CalledProcessError:\n        pass", "except subprocess.CalledProcessError:\n        return None",
    "except KeyError as error:\n        raise CloneError from error",
])
def test_a_failure_that_is_dropped_or_another_is_not_handled(handler: str) -> None:
    text = f"def f(x):\n    try:\n        subprocess.run(['ls', x], check=True)\n    {handler}\n"
    assert "tools.errors_handled" not in goals(found(text))


def test_a_handler_within_a_handler_is_not_the_processes() -> None:
    text = """
def f(x):
    try:
        x()
    except OSError as error:
        subprocess.run(["ls"], check=True)
        raise
"""
    assert "tools.errors_handled" not in goals(found(text))


def test_a_return_code_that_is_told_is_handled() -> None:
    text = (
        "def f(x):\n    r = subprocess.run(['ls', x])\n    if r.returncode != 0:\n        raise CloneError(r.stderr)\n"
    )
    assert lines(found(text), "tools.errors_handled") == [5]


@each("text", [
    "from urllib.parse import urlparse\ndef f(repo_url):\n    return urlparse(repo_url).scheme",
    "def f(url):\n    if not re.fullmatch('https://.*', url): raise ValueError",
    "URL = re.compile('x')\ndef f(url):\n    if not URL.match(url): raise ValueError",
    "def f(url):\n    if not url.startswith(('https://', 'git@')): raise ValueError",
    "def validate_repo_url(url):\n    if '..' in url:\n        raise ValueError",
    "def f(u, d):\n    subprocess.run(['git', 'clone', '--', u, d])",
    "def f(repo_url):\n    if any(c in repo_url for c in ';|&'):\n        raise ValueError(repo_url)",
    "def f(path):\n    if '..' in path.parts:\n        raise ValueError(path)",
    "def f(path, root):\n    if not path.resolve().is_relative_to(root): raise ValueError",
])
def test_a_check_of_input_is_found(text: str) -> None:
    assert of(found(text), "tools.inputs_checked")


@each("text", [
    "def f(u, d):\n    subprocess.run(['git', 'clone', u, d])", "def f(name):\n    return re.match('a', name)",
    "def f(name):\n    if 'a' in name:\n        raise ValueError",
    "def f(url):\n    if 'a' in url:\n        g()\n    else:\n        raise ValueError",
    "def check(x):\n    raise ValueError", "def validate_url(url):\n    return_nothing(url)",
])
def test_another_check_is_none_of_input(text: str) -> None:
    assert "tools.inputs_checked" not in goals(found(text))


@each("text", [
    "def f(u):\n    with tempfile.TemporaryDirectory() as d:\n        subprocess.run(['git', 'clone', u, d])",
    "def f(u):\n    d = tempfile.mkdtemp()\n    os.system(f'git clone {u} {d}')",
    "from git import Repo\ndef f(u):\n    Repo.clone_from(u, tempfile.mkdtemp())",
    ("class A:\n    def __init__(self): self.tmp = Path(tempfile.mkdtemp())\n"
    "    def f(self, u): subprocess.run(['git', 'clone', u, str(self.tmp / 'x')])"),
    "def place(): return tempfile.mkdtemp()\ndef f(u):\n    subprocess.run(['git', 'clone', u, place()])",
    "def clone(u, to):\n    subprocess.run(['git', 'clone', u, to])\ndef f(u):\n    clone(u, tempfile.mkdtemp())",
    "def f(u, to=None):\n    to = to or tempfile.mkdtemp()\n    subprocess.run(['git', 'clone', u, to])",
    "def f(u):\n    d = tempfile.mkdtemp()\n    subprocess.run(['git', 'clone', u], cwd=d)",
])  # fmt: skip
def test_a_clone_into_a_temporary_directory_is_found(text: str) -> None:
    assert of(found(text), "tools.temporary_clone")


@each("text", [
    "def f(u):\n    subprocess.run(['git', 'clone', u, 'x'])",
    "def f(u, d):\n    subprocess.run(['git', 'clone', u, d])",
    "def f(u):\n    with tempfile.TemporaryDirectory() as d:\n        subprocess.run(['git', 'log'], cwd=d)",
    "TEXT = 'git clone goes into tempfile.TemporaryDirectory()'",
])
def test_a_clone_elsewhere_is_no_temporary_one(text: str) -> None:
    assert "tools.temporary_clone" not in goals(found(text))


def test_tests_are_not_the_projects_tools() -> None:
    text = HEAD + "subprocess.run(['ls'], check=True, timeout=3)\n"
    assert detected(Table(*GOALS), tests__test_it=text) == []


def test_a_clone_that_is_given_a_directory_beside_one_that_makes_them_is_told_with_little_confidence() -> None:
    text = """
import contextlib
@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory() as folder:
        yield folder
def clone(url, folder):
    subprocess.run(["git", "clone", "--", url, folder])
"""
    (finding,) = of(found(text), "tools.temporary_clone")
    assert finding.confidence == 0.6
    (surer,) = of(
        found(text + "def f(url):\n    with scratch() as d:\n        clone(url, d)\n"), "tools.temporary_clone"
    )
    assert surer.confidence >= 0.7
