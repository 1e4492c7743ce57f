"""Git clones are found however they are started, with their URL, their target and what stands before it."""

from __future__ import annotations

import ast

from pmagent.actors.audit.detectors.code.clones import clones
from pmagent.actors.audit.detectors.code.scopes import module_of
from tests.support.cases import each
from tests.support.detected import source

HEAD = "import asyncio, git, os, pygit2, shlex, shutil, subprocess\nfrom dulwich import porcelain\n"


def cloned(statement: str) -> list[tuple[str, str | None, str | None, str | None, bool]]:
    """Kind, URL, target, folder and dashes of the clones of a statement."""
    module = module_of(source(f"{HEAD}async def f(url, to, run_git, run, more):\n    {statement}\n"))
    assert module is not None
    return [
        (one.kind, _text(one.url), _text(one.target), _text(one.folder), one.dashes)
        for one in clones(module)
        if not one.unknown
    ]


def _text(expression: ast.expr | None) -> str | None:
    return None if expression is None else ast.unparse(expression)


@each("statement, found", [
    ("subprocess.run(['git', 'clone', url, to])", ("git", "url", "to", None, False)),
    ("subprocess.run(['git', 'clone', '--', url, to])", ("git", "url", "to", None, True)),
    ("subprocess.run(['git', 'clone', '-b', 'main', '--depth', '1', url])", ("git", "url", None, None, False)),
    ("subprocess.run(['git', 'clone', '--depth=1', '--quiet', url, to])", ("git", "url", "to", None, False)),
    ("subprocess.run(['git', '-c', 'a.b=c', '-C', to, 'clone', url])", ("git", "url", None, "to", False)),
    ("subprocess.run(['git', '--exec-path', 'x', 'clone', url])", ("git", "url", None, None, False)),
    ("subprocess.run(['git', 'clone', '-u', 'x', '--namespace', 'n', url])", ("git", "url", None, None, False)),
    ("subprocess.run(['git', 'clone', url], cwd=to)", ("git", "url", None, "to", False)),
    ("subprocess.run(args=['/usr/bin/git', 'clone', url])", ("git", "url", None, None, False)),
    ("subprocess.run([r'C:\\\\Git\\\\git.exe', 'clone', url])", ("git", "url", None, None, False)),
    ("subprocess.run([shutil.which('git'), 'clone', url])", ("git", "url", None, None, False)),
    ("subprocess.run([git_bin, 'clone', url])", ("git", "url", None, None, False)),
    ("subprocess.run(['sudo', 'git', 'clone', url])", ("git", "url", None, None, False)),
    ("subprocess.run(f'git clone {url} {to}', shell=True)", ("git", "url", "to", None, False)),
    ("subprocess.run('git clone -- %s %s' % (url, to), shell=True)", ("git", "url", "to", None, True)),
    ("subprocess.run(shlex.split(f'git clone {url}'))", ("git", "url", None, None, False)),
    ("subprocess.run(f'git clone {url}'.split())", ("git", "url", None, None, False)),
    ("subprocess.getoutput('git clone ' + url)", ("git", "url", None, None, False)),
    ("os.system(f'git clone {url} dir/{to}')", ("git", "url", "f'dir/{to}'", None, False)),
    ("os.popen(f'git clone {url}')", ("git", "url", None, None, False)),
    ("await asyncio.create_subprocess_exec('git', 'clone', url, to)", ("git", "url", "to", None, False)),
    ("await asyncio.create_subprocess_shell(f'git clone {url}')", ("git", "url", None, None, False)),
    ("run_git('clone', url, to)", ("git", "url", "to", None, False)),
    ("run_git(['clone', '--', url, to], cwd=x)", ("git", "url", "to", "x", True)),
    ("run(['git', 'clone', url])", ("git", "url", None, None, False)),
    ("_run(cmd=['git', 'clone', url])", ("git", "url", None, None, False)),
    ("run_cmd(args=['git', 'clone', url])", ("git", "url", None, None, False)),
    ("git.Repo.clone_from(url, to)", ("GitPython", "url", "to", None, True)),
    ("git.Repo.clone_from(url=url, to_path=to)", ("GitPython", "url", "to", None, True)),
    ("Repo.clone_from(url, to)", ("GitPython", "url", "to", None, True)),
    ("git.Git(to).clone(url, path='x')", ("GitPython", "url", "'x'", None, True)),
    ("pygit2.clone_repository(url, path=to)", ("pygit2", "url", "to", None, True)),
    ("porcelain.clone(source=url, target=to)", ("dulwich", "url", "to", None, True)),
    ("GitLoader(repo_path=to, clone_url=url)", ("GitLoader", "url", "to", None, True)),
])
def test_a_clone_is_found_with_its_parts(
    statement: str, found: tuple[str, str | None, str | None, str | None, bool]
) -> None:
    assert cloned(statement) == [found]


@each("statement", [
    "subprocess.run(['git', 'log', 'clone'])", "subprocess.run(['git', '-C', 'clone', 'log'])",
    "subprocess.run(['git', *more])", "subprocess.run(['hg', 'clone', url])", "subprocess.run(['echo', 'git'])",
    "subprocess.run(['git', 'clone', *more])", "subprocess.run()", "os.system('echo clone')", "run(['ls'])",
    "run('clone', url)", "run_git(['log'])", "run_git()", "print('git clone', url)", "to.clone(url, 'x')",
    "to.clone_from(url, 'x')", "GitLoader(repo_path=to)", "x = 'git clone https://a'",
])
def test_what_is_no_clone_or_not_known_is_left_alone(statement: str) -> None:
    assert cloned(statement) == []
