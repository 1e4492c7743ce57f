"""Engineering at large: what stands in files by their names, and what in the code."""

from __future__ import annotations

from pmagent.actors.audit.detectors.code.engineering import ProjectReader
from pmagent.actors.audit.detectors.code.project import project_findings
from pmagent.contracts.audit_facts import Finding
from tests.support.cases import each
from tests.support.detected import Table, detected, goals, of, source


def found(files: dict[str, str], *programs: str, **named: str) -> list[Finding]:
    """Findings about a repository of these files, and of these programs."""
    reader = ProjectReader()
    inside = detected(reader, *programs, **named)
    of_table = detected(Table("project."), *programs, **named)
    settings = of(of_table, "project.environment")
    contents = {path: text.encode() for path, text in files.items()}
    others = [one for one in of_table if one not in settings]
    return [*project_findings(list(files), contents.get, reader, settings), *inside, *others]


@each("path, text, goal", [
    (".github/workflows/ci.yml", "run: pytest", "project.ci"),
    (".gitlab-ci.yml", "script: make test", "project.ci"),
    ("uv.lock", "", "project.lock"),
    ("backend/poetry.lock", "", "project.lock"),
    ("requirements.txt", "a==1\nb[x]==2.0 \\\n    --hash=sha256:1\n# c\n", "project.lock"),
    ("ruff.toml", "", "project.lint"),
    ("pyproject.toml", "[project]\n[tool.mypy]\nstrict = true", "project.lint"),
    ("setup.cfg", "[flake8]\n", "project.lint"),
    ("README.md", "# Tool\n\n```\npython -m tool run\n```\n", "project.readme"),
    ("README.rst", "Run `make test`.", "project.readme"),
    ("LICENSE", "", "project.license"),
    ("COPYING.txt", "", "project.license"),
    (".env.example", "KEY=", "project.environment"),
])
def test_a_file_counts_for_what_it_is(path: str, text: str, goal: str) -> None:
    (finding,) = found({path: text})
    assert (finding.goal, finding.path) == (goal, path)


@each("path, text", [
    ("requirements.txt", "a\nb>=2\nc==1\n"),
    ("pyproject.toml", "[tool.poetry]\n[tool.ruffle]\n"),
    ("README.md", "A tool. You need Python 3.11; make sure that it is there."),
    ("docs/README.md", "```\npython -m tool\n```"),
    ("vendor/x/LICENSE", ""),
    ("src/license.py", ""),
    (".env", "KEY=1"),
    ("workflows/ci.yml", "run: pytest"),
])
def test_a_file_that_only_looks_like_it_does_not_count(path: str, text: str) -> None:
    assert found({path: text}) == []


def test_a_readme_is_quoted_where_it_says_how() -> None:
    (finding,) = found({"README.md": "# Tool\n\nSee below.\n\n    $ uv run tool --help\n"})
    assert (finding.line, finding.text) == (5, "says how to run it: uv run tool --help")


def test_a_file_that_cannot_be_read_is_passed_over() -> None:
    reader = ProjectReader()
    findings = list(
        project_findings(["README.md", "pyproject.toml", ".github/workflows/a.yml"], lambda _path: None, reader, [])
    )
    assert [(finding.goal, finding.confidence) for finding in findings] == [("project.ci", 0.7)]


@each("body, counted", [
    ("assert f() == 1", True),
    ("with pytest.raises(ValueError):\n        f()", True),
    ("mock.assert_called_once()", True),
    ("self.assertEqual(1, f())", True),
    ("f()", False),
    ("print(f())", False),
])
def test_tests_count_where_they_assert(body: str, counted: bool) -> None:
    findings = found({}, tests__test_it=f"def test_f(self, mock):\n    {body}\n")
    assert ("project.tests" in goals(findings)) is counted


def test_tests_that_mostly_assert_nothing_count_less() -> None:
    text = "def test_a():\n    assert a()\ndef test_b(): assert 4 > 3\ndef test_c(): assert a\ndef helper(): a()\n"
    (finding,) = of(found({}, tests__test_it=text), "project.tests")
    assert (finding.confidence, finding.text) == (0.5, "3 tests, 1 of them assert something; the first is test_a")


def test_annotations_are_counted_over_the_code_not_over_tests() -> None:
    typed = "def f(a: int) -> int: ...\nclass A:\n    def g(self) -> None: ...\n    def __init__(self, a: int): ...\n"
    bare = "def test_a(x): assert x\ndef b(x): ...\n"
    (finding,) = of(found({}, typed, tests__test_it=bare * 5), "project.types")
    assert finding.text == "3 of 3 functions are annotated (100%)"
    (finding,) = of(found({}, typed, "def a(x): ...\ndef b(x) -> int: return 1\n"), "project.types")
    assert finding.text == "3 of 5 functions are annotated, 1 in part (70%)"
    assert "project.types" not in goals(found({}, "def a(x): ...\n" * 3))


@each("record, is_one", [
    ("@dataclass\nclass A:\n    x: int", True), ("@attrs.define(frozen=True)\nclass A:\n    x: int", True),
    ("class A(BaseModel):\n    x: int", True), ("class A(NamedTuple):\n    x: int", True),
    ("class A(TypedDict, total=False):\n    x: int", True),
    ("class A:\n    x: int", False), ("class A(BaseModel):\n    pass", False),
    ("@dataclass\nclass A:\n    x = 1", False),
])
def test_a_record_has_fields_with_types(record: str, is_one: bool) -> None:
    assert ("project.records" in goals(found({}, f"{record}\n"))) is is_one


@each("head, body, is_loose", [
    ("row", "return row['a'] + row['b']", True), ("row: dict[str, int]", "return row['a'] + row['b']", True),
    ("row", "return row['a'] + row['a']", False), ("row: Row", "return row['a'] + row['b']", False),
    ("row", "return row[0] + row[1]", False), ("row", "return row.a + row.b", False),
])
def test_functions_that_take_dicts_apart_handle_loose_records(head: str, body: str, is_loose: bool) -> None:
    text = "".join(f"def f{number}({head}):\n    {body}\n" for number in range(3))
    assert ("project.loose_dicts" in goals(found({}, text))) is is_loose
    assert "project.loose_dicts" not in goals(found({}, text[: len(text) // 3], "def g(): ...\n"))


@each("handler, sure", [
    ("except:\n    pass", 0.9),
    ("except Exception:\n    pass", 0.9),
    ("except (KeyError, BaseException) as error:\n    ...", 0.9),
    ("except Exception:\n    '''It does not matter.'''", 0.9),
    ("except Exception:\n    f = None", 0.0),
    ("except KeyError:\n    pass", 0.0),
    ("except Exception:\n    raise", 0.0),
    ("except Exception as error:\n    log(error)", 0.0),
])
def test_an_exception_that_is_dropped_is_a_flaw(handler: str, sure: float) -> None:
    findings = of(found({}, f"try:\n    f()\n{handler}\n"), "project.swallowed")
    assert [finding.confidence for finding in findings] == ([sure] if sure else [])


@each("value", ["", " None", " []", " {}", " ()", " False", " {'ok': False}"])
def test_a_silent_return_is_told_but_not_confirmed(value: str) -> None:
    text = f"def g():\n    try:\n        f()\n    except Exception:\n        return{value}\n"
    (finding,) = of(found({}, text), "project.swallowed")
    assert finding.confidence < 0.8


def test_settings_count_whole_with_code_and_example() -> None:
    reads = "import os\nKEY = os.environ['KEY']\nOTHER = os.getenv('OTHER')\n"
    (both,) = of(found({".env.example": "KEY=\n"}, reads), "project.environment")
    assert (both.confidence, both.path) == (1.0, ".env.example")
    assert "app/m0.py:2, app/m0.py:3" in both.text
    (alone,) = of(found({}, reads), "project.environment")
    assert (alone.confidence, alone.path) == (0.5, "app/m0.py")


def test_a_file_that_does_not_parse_is_passed_over() -> None:
    reader = ProjectReader()
    reader.take(source("x = 1")._replace(tree=None, reason="does not parse"))
    assert list(reader.findings()) == []


def test_a_secret_in_settings_that_were_committed_is_found_and_never_shown() -> None:
    key = "sk-proj-" + "a8Fz0Kq2" * 5
    settings = f"# local\nDEBUG=true\nexport OPENAI_API_KEY='{key}'\nOTHER_API_KEY=your-key-here\n"
    (secret,) = of(found({".env": settings, ".env.example": settings, "tests/.env": settings}), "security.secret")
    assert (secret.path, secret.line, secret.confidence) == (".env", 3, 0.95)
    assert key not in secret.text


@each("function, annotated", [
    ("def f(a: int, *, b: str) -> None: ...", True),
    ("async def f() -> int: ...", True),
    ("def f(a: int): ...", True),
    ("def f(a): ...", False),
    ("def f(): ...", False),
    ("class A:\n    def __init__(self, a: int): ...", True),
    ("class A:\n    def __init__(self): ...", False),
    ("class A:\n    @classmethod\n    def f(cls) -> int: ...", True),
])
def test_a_function_is_annotated_that_says_what_it_takes_and_returns(function: str, annotated: bool) -> None:
    findings = of(found({}, f"x = 1\n{function}\n"), "project.types")
    assert [finding.line for finding in findings] == ([function.count("\n") + 2] if annotated else [])


def test_how_a_module_is_built_and_which_test_imports_it_is_told() -> None:
    body = "".join(f"    a{number} = {number}\n" for number in range(6))
    program = f"def first(a):\n{body}\ndef tmp(a):\n{body}\ndef long(a):\n" + "    a += 1\n" * 149
    built, other = of(found({}, program, "def g(): ...\n", tests__test_it="import app.m0\n"), "repo.structure")
    assert (built.path, built.line) == ("app/m0.py", 17)
    assert built.text == (
        "3 functions in 167 lines, the longest is long with 150, 2 stand elsewhere too, 1 have names that say nothing, "
        "a test imports it (50%)"
    )
    assert other.text == (
        "1 functions in 2 lines, the longest is g with 1, 1 have names that say nothing, no test imports it (50%)"
    )
    (tested,) = of(found({}, program, "def g(): ...\n", tests__test_it="import app.m0\n"), "repo.tested")
    assert (tested.path, tested.text) == ("app/m0.py", "tests/test_it.py imports it")
