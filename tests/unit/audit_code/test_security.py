"""Unsafe calls are found by what is called with what, never by words."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts.audit_facts import Finding
from tests.support.cases import each
from tests.support.detected import Table, detected, goals, lines, of

CONFIRMED = 0.8


def table() -> Table:
    return Table("security.", "tools.no_unsafe_calls")


def found(text: str) -> list[Finding]:
    return detected(table(), text)


def flaws(text: str) -> dict[str, float]:
    """Flaws of a program and how sure they are."""
    return {finding.goal: finding.confidence for finding in found(text) if finding.goal.startswith("security.")}


def test_words_about_an_unsafe_call_are_no_unsafe_call() -> None:
    text = '''
        """No os.system with user input: subprocess.run(cmd, shell=True) and eval(x) are not used here."""
        import subprocess
        # os.system(url) would be unsanitized
        RULE = "raw os.system('git clone ' + url) drops code into the live working directory"
        def clone(url, target):
            """Never os.system(url)."""
            subprocess.run(["git", "clone", "--", url, target], check=True)
    '''
    assert goals(found(text)) == {"tools.no_unsafe_calls"}


UNSAFE_WORDS = st.lists(
    st.sampled_from([
        "os.system(url)", "unsanitized", "subprocess.run(cmd, shell=True)", "eval(x)", "exec", "pickle.load(f)", "\n",
        "git clone", "with user input", "no", "never", "yaml.load(x)", "into the live working directory", "injection",
    ]),
    max_size=8,
)  # fmt: skip


@settings(deadline=None)
@given(UNSAFE_WORDS, st.sampled_from(["app/main.py", "tests/test_it.py"]))
def test_no_text_is_ever_an_unsafe_call(words: list[str], path: str) -> None:
    text = " ".join(words)
    program = f"""
def clone(url):
    {text!r}
    # {text.replace(chr(10), " ")}
    note = {text!r}
    log({text!r}, reason=f"{{url}} {text.replace(chr(10), " ")}")
    return {{{text!r}: [{text!r}]}}
"""
    assert detected(table(), **{path.removesuffix(".py").replace("/", "__"): program}) == []


@each("text", [
    "import os\nos.system('git pull ' + ref)", "import os as o\ndef f(x): o.system(f'rm {x}')",
    "from os import system\ndef f(x): system(x)", "from os import system as s\ndef f(x): s('a %s' % x)",
    "from os import *\ndef f(x): system('a {}'.format(x))", "import os\nrun = os.system\ndef f(x): run(x)",
    "import os\nclass A:\n    def __init__(self): self.run = os.system\n    def f(self, x): self.run(x)",
    "def f(x): __import__('os').system(x)", "import os\ndef f(x): getattr(os, 'system')(x)",
    "import os\nclass A:\n    go = staticmethod(lambda x: os.popen(x).read())",
    "import commands\ndef f(x): commands.getoutput(x)", "import os\ndef f(x): os.system(command=x)",
    "import os\ndef f(x): return os.popen(cmd=x)", "import os\ndef f(x): return os.popen2(x)",
    "import popen2\ndef f(x): return popen2.popen2(x)",
    "def outer(y):\n    import os\n    def inner(x):\n        return os.popen(x)\n    return inner",
    "import os\n@(lambda f: f)\ndef f(x):\n    return [os.system(c) for c in x]",
])
def test_os_system_is_found_under_any_name(text: str) -> None:
    assert flaws(text)["security.os_system"] >= CONFIRMED


@each("text", [
    "import os\nos.system('clear')", "import os\nos.system('a' + 'b')",
    "import os\nCMD = 'make ' 'all'\nos.system(CMD)", "import os\nfor c in ['a', 'b']:\n    os.system(c)",
    "import os, shlex\ndef f(x): os.system(f'ls {shlex.quote(x)}')",
    "import os, shlex\ndef f(x):\n    safe = shlex.quote(x)\n    os.system('ls ' + safe)",
    "import subprocess\nsubprocess.run('ls -l | wc', shell=True)", "import subprocess\nsubprocess.run(shell=True)",
    "import pandas as pd\npd.eval('1 + 1')",
    "from shell_tools import ShellTool, PythonREPL\ntools = [ShellTool(), PythonREPL()]",
    "import os, pipes\ndef f(x): os.system('ls ' + pipes.quote(x) + os.linesep)",
    "import os, subprocess\ndef f(x): os.system(subprocess.list2cmdline(x))",
    "import subprocess\ndef f(x): subprocess.run(['ls', x])",
    "import subprocess\ndef f(x): subprocess.run(['ls', x], shell=False)",
    "import subprocess\nFLAG = False\ndef f(x): subprocess.run(['ls', x], shell=FLAG)",
    "import subprocess\nsubprocess.run(['bash', '-c', 'echo a'])",
    "import os\nos.system('cls' if os.name == 'nt' else 'clear')",
    "import os, sys\nos.system(f'{sys.executable} -m pip {__file__}')",
    "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(1)'])",
    "import subprocess, sys\ndef f(x): subprocess.run([sys.executable, '-m', x])",
    "import ast\ndef f(x): return ast.literal_eval(x)", "def f(model): model.eval()",
    "def f(redis, script): redis.eval(script, 0)", "import re\ncompile = re.compile\ndef f(x): compile(x)",
    "def eval(x): return x\ndef f(x): eval(x)", "from metrics import eval\ndef f(x): eval(x)",
    "def f(eval, x): eval(x)", "eval('1 + 1')", "import yaml\ndef f(x): yaml.safe_load(x)",
    "import yaml\ndef f(x): yaml.load(x, Loader=yaml.SafeLoader)",
    "from yaml import load, CSafeLoader\ndef f(x): load(x, CSafeLoader)",
    "import pickle, copy\ndef f(x): return pickle.loads(pickle.dumps(x))",
    "import torch\ndef f(x): torch.load(x, weights_only=True)", "import numpy as np\ndef f(x): np.load(x)",
    "import json\ndef f(x): json.loads(x)",
    "from mylib import pickle\nclass U(pickle.Base): pass\ndef f(x): U(x).load()",
])
def test_what_is_constant_quoted_or_called_alike_is_no_flaw(text: str) -> None:
    assert flaws(text) == {}


@each("text, goal", [
    ("import subprocess as sp\ndef f(x): sp.run(x, shell=True)", "security.shell"),
    ("from subprocess import check_output as co\ndef f(x): co(f'ls {x}', shell=True)", "security.shell"),
    ("import subprocess\ndef f(x): subprocess.Popen(args='ls ' + x, shell=1)", "security.shell"),
    ("import subprocess\ndef f(x): subprocess.run(['sh', '-c', x])", "security.shell"),
    ("import subprocess\ndef f(x): subprocess.run(['/bin/bash', '-lc', f'ls {x}'])", "security.shell"),
    ("import subprocess\ndef f(x): return subprocess.getoutput('ls ' + x)", "security.shell"),
    ("import asyncio\nasync def f(x): await asyncio.create_subprocess_shell(x)", "security.shell"),
    ("async def f(loop, x): await asyncio.get_event_loop().subprocess_shell(p, x)\nimport asyncio", "security.shell"),
    ("import asyncio\nasync def f(x): await asyncio.create_subprocess_shell(cmd=x)", "security.shell"),
    ("def f(x): return eval(x)", "security.evaluation"),
    ("def f(x): exec(compile(source=x, filename='a', mode='exec'))", "security.evaluation"),
    ("def f(x): exec(x, {})", "security.evaluation"),
    ("def f(x): exec(compile(x, 'a', 'exec'))", "security.evaluation"),
    ("import pickle\ndef f(x): return pickle.load(x)", "security.unsafe_load"),
    ("from pickle import loads\ndef f(x): return loads(x)", "security.unsafe_load"),
    ("import dill as pickle\ndef f(x): return pickle.load(x)", "security.unsafe_load"),
    ("import pickle\ndef f(x):\n    with open(x, 'rb') as g: return pickle.load(g)", "security.unsafe_load"),
    ("import marshal\ndef f(x): return marshal.loads(x)", "security.unsafe_load"),
    ("import joblib\ndef f(x): return joblib.load(x)", "security.unsafe_load"),
    ("import yaml\ndef f(x): return yaml.load(x)", "security.unsafe_load"),
    ("import yaml\ndef f(x): return yaml.load(x, Loader=yaml.UnsafeLoader)", "security.unsafe_load"),
    ("import yaml\ndef f(x): return yaml.unsafe_load(x)", "security.unsafe_load"),
    ("import torch\ndef f(x): return torch.load(x, weights_only=False)", "security.unsafe_load"),
    ("import numpy as np\ndef f(x): return np.load(x, allow_pickle=True)", "security.unsafe_load"),
    ("import pandas as pd\ndef f(x): return pd.read_pickle(x)", "security.unsafe_load"),
])
def test_a_flaw_is_confirmed_where_the_call_itself_is_unsafe(text: str, goal: str) -> None:
    assert {name: sure >= CONFIRMED for name, sure in flaws(text).items()} == {goal: True}
    assert "tools.no_unsafe_calls" not in goals(found(text))


@each(
    "text",
    [
        "from .settings import COMMAND\nimport os\nos.system(COMMAND)",  # a constant of another module, most likely
        "import subprocess\ndef f(x, shell=False): subprocess.run(x, shell=shell)",
        "exec(open('version.py').read())",
        "import pickle\ndef save(x, f): pickle.dump(x, f)\ndef load(f): return pickle.load(f)",
        "import torch\ndef f(x): return torch.load(x)",  # safe since torch 2.6
        "import subprocess, sys\ndef f(x): subprocess.run([sys.executable, '-c', x])",
        "import subprocess\ndef f(x): subprocess.run(['python3', '-c', x], timeout=5)",
        "import runpy\ndef f(x): runpy.run_path(x)",
        "import pandas as pd\ndef f(x): pd.eval(x)",
        "from langchain_community.tools import ShellTool\ntools = [ShellTool()]",
        "from langchain_experimental.tools.python.tool import PythonREPLTool\ntools = [PythonREPLTool()]",
        "import joblib\nmodel = joblib.load('model.joblib')",
        "import pickle\nwith open('model.pkl', 'rb') as f: model = pickle.load(f)",
        "import pickle\nPATH = 'model.pkl'\nmodel = pickle.load(open(PATH, 'rb'))",
        "index = FAISS.load_local('index', embeddings, allow_dangerous_deserialization=True)",
        "import yaml\ndef f(x): return yaml.full_load(x)",
    ],
)
def test_a_flaw_that_may_be_harmless_is_told_but_not_confirmed(text: str) -> None:
    assert [0 < sure < CONFIRMED for sure in flaws(text).values()] == [True]


@each("text", [
    "import subprocess\ndef f(u): subprocess.run(['git', 'clone', u])",
    "import subprocess\ndef f(u): subprocess.run(['git', 'clone', '--depth', '1', u])",
    "import subprocess\ndef f(u): subprocess.run(['git', 'clone', '--', u, 'repos/x'])",
    "import subprocess\ndef f(u): subprocess.run(('git', '-c', 'a=b', 'clone', '-b', 'main', u, './here'))",
    "import subprocess\ndef f(u): subprocess.run(['git', 'clone', u], cwd='work')",
    "import subprocess\ndef f(u): subprocess.run(f'git clone {u} out'.split())",
    "import subprocess, shlex\ndef f(u): subprocess.run(shlex.split(f'git clone {u}'))",
    "import subprocess, os\ndef f(u): subprocess.run(['git', 'clone', u, os.getcwd()])",
    "import subprocess\nHERE = Path('clones')\ndef f(u):\n    subprocess.run(['git', 'clone', u, str(HERE / 'x')])",
    "import subprocess\ndef f(u):\n    c = ['git', 'clone']; c.append(u); c += ['x']\n    subprocess.run(c)",
    "import os\ndef f(u): os.system('git clone ' + u)", "from git import Repo\ndef f(u): Repo.clone_from(u, 'repo')",
    "import git\ndef f(u): git.Repo.clone_from(u, to_path='/srv/repo')",
    "import pygit2\ndef f(u): pygit2.clone_repository(u, 'x')",
    "from dulwich import porcelain\ndef f(u): porcelain.clone(u, 'x')",
    "import git\ndef f(u): git.Git('.').clone(u, 'x')",
    "from langchain_community.document_loaders import GitLoader\ndef f(u): GitLoader('./x', clone_url=u)",
    "import asyncio\nasync def f(u): await asyncio.create_subprocess_exec('git', 'clone', u, 'x')",
    "def f(run_git, u): run_git('clone', '--', u, 'x')",
])
def test_a_clone_into_the_working_directory_is_found(text: str) -> None:
    assert flaws(text).get("security.clone_in_place", 0) >= CONFIRMED
    assert "tools.no_unsafe_calls" not in goals(found(text))


@each(
    "text",
    [
        "with tempfile.TemporaryDirectory() as d:\n        subprocess.run(['git', 'clone', u, d])",
        "d = tempfile.mkdtemp(prefix='a')\n    subprocess.run(['git', 'clone', u, d + '/x'])",
        "d = Path(tempfile.mkdtemp())\n    subprocess.run(['git', 'clone', u, str(d / 'x')])",
        "d = tempfile.TemporaryDirectory()\n    subprocess.run(['git', 'clone', u, f'{d.name}/x'])",
        "d = tempfile.mkdtemp()\n    subprocess.run(['git', 'clone', u, 'x'], cwd=d)",
        "subprocess.run(['git', 'clone', u, target])",  # who knows where
        "subprocess.run(['git', 'clone', u, self.place])",
        "d = stack.enter_context(tempfile.TemporaryDirectory())\n    subprocess.run(['git', 'clone', u, d])",
        "d = target or tempfile.mkdtemp()\n    Repo.clone_from(u, d)",
        "subprocess.run(['git', 'log', '--oneline'], cwd=target)",
        "subprocess.run(['git', *arguments])",
        "self.clone()",
        "copy.clone(u, 'x')",
    ],
)
def test_a_clone_elsewhere_is_not_held_against_anybody(text: str) -> None:
    head = "import subprocess, tempfile\nfrom pathlib import Path\nfrom git import Repo\n"
    program = f"{head}def f(self, u, target, stack, copy, arguments):\n    {text}\n"
    assert "security.clone_in_place" not in flaws(program)


def test_where_a_clone_goes_is_followed_to_the_callers() -> None:
    clone = "import subprocess\ndef clone_repo(url, dest):\n    subprocess.run(['git', 'clone', url, dest])\n"
    fixed = detected(table(), clone, "from m0 import clone_repo\nclone_repo(input(), 'repos/x')\n")
    (finding,) = of(fixed, "security.clone_in_place")
    assert (finding.path, finding.line, finding.confidence) == ("app/m0.py", 3, CONFIRMED)
    assert "app/m1.py:2" in finding.text
    fresh = "import tempfile\nfrom m0 import clone_repo\nclone_repo(input(), tempfile.mkdtemp())\n"
    assert goals(detected(table(), clone, fresh)) == {"tools.no_unsafe_calls"}


KEY = "sk-proj-" + "a8Fz0Kq2" * 5


@each("text, sure", [
    (f"KEY = '{KEY}'", 0.95),
    (f"client = Client(api_key='{KEY}')", 0.95),
    (f"HEADERS = {{'x': '{KEY}'}}", 0.95),
    (f"import os\nos.environ['OPENAI_API_KEY'] = '{KEY}'", 0.95),
    ("password = 'hunter2hunter2'", 0.6),
    ("API_KEY = 'f81d4fae7dec11d0a76500a0c91e6bf6'", 0.85),
    ("url = 'postgres://admin:s3cr3tpw99@db.internal/x'", 0.95),
])
def test_a_secret_is_found_and_never_shown(text: str, sure: float) -> None:
    (finding,) = of(found(text), "security.secret")
    assert finding.confidence == sure
    for secret in (KEY, "hunter2hunter2", "f81d4fae7dec11d0a76500a0c91e6bf6", "s3cr3tpw99"):
        assert secret not in finding.text


@each("text", [
    "API_KEY = 'your-api-key-here'", "API_KEY = 'sk-xxxxxxxxxxxxxxxxxxxxxxxx'", "API_KEY = os.getenv('OPENAI_API_KEY')",
    "API_KEY = ''", "api_key = 'OPENAI_API_KEY'", "PASSWORD_FIELD = 'password'", "password = 'password'",
    "token_url = 'https://example.com/oauth/token'", "KEY = 'AKIAIOSFODNN7EXAMPLE'",
    "client_secret = 'm2m-client-credentials'", "secret_key = 'change-me-please'",
    "parser.add_argument('--password', help='password of the user, 8 characters')",
    "session_token = 'X-Session-Token-2'", "HASHES = {'AWS::ApiGateway::ApiKey': 'f81d4fae7dec11d0'}",
])
def test_a_placeholder_or_a_name_is_no_secret(text: str) -> None:
    assert flaws(text) == {}


def test_unsafe_calls_of_tests_and_examples_are_told_apart() -> None:
    unsafe = "import os\ndef test_it(x):\n    os.system(x)\n"
    findings = detected(table(), tests__test_it=unsafe, examples__show=unsafe)
    assert goals(findings) == {"security.in_tests"}
    assert [finding.path for finding in of(findings, "security.in_tests")] == ["examples/show.py", "tests/test_it.py"]


def test_no_unsafe_calls_is_told_once_and_only_where_calls_were_examined() -> None:
    assert found("x = 1") == []
    safe = "import subprocess\ndef f(x):\n    subprocess.run(['ls', x])\n    subprocess.run(['cat', x])\n"
    (finding,) = detected(table(), safe, safe)
    assert (finding.goal, finding.path, finding.line) == ("tools.no_unsafe_calls", "app/m0.py", 3)
    assert finding.confidence == 0.9
    assert "4 examined" in finding.text
    tested = detected(table(), safe, tests__test_it="def test_it(x):\n    eval(x)\n")
    assert goals(tested) == {"tools.no_unsafe_calls", "security.in_tests"}
    assert detected(table(), tests__test_it=safe) == []


def test_a_finding_shows_the_code_at_its_line() -> None:
    text = """
        import os

        def f(url):
            os.system(
                "git clone " + url,
            )
    """
    (finding,) = of(found(text), "security.os_system")
    assert (finding.line, finding.text) == (4, 'os.system(\n    "git clone " + url,\n)')


def test_a_parameter_with_a_fixed_default_is_told_but_not_confirmed() -> None:
    text = "import subprocess\ndef clone(url, to='repos'):\n    subprocess.run(['git', 'clone', url, to])\n"
    assert 0 < flaws(text)["security.clone_in_place"] < CONFIRMED
    assert lines(found(text), "security.clone_in_place") == [3]


@each("call, sure", [
    ("pickle.Unpickler(x)", 0.9),
    ("_pickle.loads(data=x)", 0.9),
    ("pickle5.loads(str=x)", 0.9),
    ("shelve.open(x)", 0.9),
    ("yaml.load_all(x)", 0.9),
    ("yaml.load(x, Loader=yaml.Loader)", 0.9),
    ("yaml.load(x, Loader=loader)", 0.5),
    ("yaml.load(x, Loader=MySafeLoader)", 0.0),
    ("yaml.load(x, Loader=yaml.CBaseLoader)", 0.0),
    ("yaml.full_load_all(x)", 0.5),
    ("yaml.safe_load_all(x)", 0.0),
    ("yaml.unsafe_load_all(x)", 0.95),
    ("torch.load(x, weights_only=flag)", 0.5),
    ("numpy.load(x, allow_pickle=flag)", 0.4),
    ("numpy.load(x, allow_pickle=False)", 0.0),
    ("pickle.loads(b'constant')", 0.0),
    ("pickle.load(open('own.pkl', 'rb'))", 0.6),
    ("jsonpickle.decode(x)", 0.9),
])
def test_a_load_is_as_unsafe_as_its_arguments_say(call: str, sure: float) -> None:
    head = "import _pickle, jsonpickle, numpy, pickle, pickle5, shelve, torch, yaml\n"
    assert flaws(f"{head}def f(x, loader, flag):\n    return {call}\n").get("security.unsafe_load", 0) == sure


def test_a_file_that_writes_with_another_library_has_no_cache_of_its_own() -> None:
    dumps = "import json, pickle\ndef save(x, f): json.dump(x, f)\ndef load(f): return pickle.load(f)\n"
    assert flaws(dumps)["security.unsafe_load"] == 0.9
