"""Which file an import means."""

from __future__ import annotations

from pmagent.actors.audit.detectors.code.imported import defined_in
from tests.support.cases import each


@each("name, importer, path", [
    (":Work", "app/a.py", "app/a.py"),
    (".state.Work", "app/a.py", "app/state.py"),
    (".Work", "app/a.py", "app/__init__.py"),
    ("..memory.state.Work", "app/agents/a.py", "app/memory/state.py"),
    ("..Work", "app/agents/a.py", "app/__init__.py"),
    ("..Work", "app/a.py", "__init__.py"),
    ("app.state.Work", "main.py", "src/app/state.py"),
    ("app.Work", "main.py", "src/app/__init__.py"),
    ("state.Work", "main.py", "state.py"),
    (".state.Work", "a.py", "state.py"),
])
def test_an_import_means_this_file(name: str, importer: str, path: str) -> None:
    assert defined_in(name, importer, path)


@each("name, importer, path", [
    (":Work", "app/a.py", "app/b.py"),
    (".state.Work", "app/a.py", "lib/state.py"),
    ("..state.Work", "app/a.py", "app/state.py"),
    ("...state.Work", "app/a.py", "state.py"),
    ("app.state.Work", "main.py", "myapp/state.py"),
    ("app.state.Work", "main.py", "app/other.py"),
    ("Work", "main.py", "Work.py"),
    ("Work", "main.py", "__init__.py"),
])
def test_an_import_does_not_mean_that_file(name: str, importer: str, path: str) -> None:
    assert not defined_in(name, importer, path)
