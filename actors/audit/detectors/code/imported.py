"""Which file an import means; pure. Files of the repository are known by their paths, folders on the search path are
not: an absolute import means any file whose path ends in it."""

from __future__ import annotations

_INIT = "/__init__"


def defined_in(name: str, importer: str, path: str) -> bool:
    """Whether ``name``, dotted as ``names.dotted`` gives it in the file ``importer``, is one of the file ``path``:
    ``:Name`` is of the importer itself, ``..package.module.Name`` relative to it, ``package.module.Name`` absolute."""
    if name.startswith(":"):
        return path == importer
    module = name.rpartition(".")[0]
    if name.startswith("."):
        return _stem(path) == _relative(name, importer)
    wanted = module.replace(".", "/")
    return bool(wanted) and f"/{_stem(path)}".endswith(f"/{wanted}")


def _stem(path: str) -> str:
    """The path as a module is named by it, with slashes."""
    stem = path.rpartition(".")[0]
    return stem.removesuffix(_INIT) if stem != "__init__" else ""


def _relative(name: str, importer: str) -> str | None:
    """The stem of the module that a relative ``name`` is of; None: above the repository."""
    written = name.lstrip(".")
    folder = importer.split("/")[:-1]
    above = len(name) - len(written) - 1
    if above > len(folder):
        return None
    return "/".join([*folder[: len(folder) - above], *written.split(".")[:-1]])
