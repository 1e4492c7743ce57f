"""Structural analysis by the syntax tree."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field


@dataclass
class StructureVisitor(ast.NodeVisitor):
    """Collects graphs, edges, reducers and dangerous calls."""

    edges: list[tuple[str, str]] = field(default_factory=list)
    reducers: list[str] = field(default_factory=list)
    dangerous: list[int] = field(default_factory=list)

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name == "add_edge" and len(node.args) == 2:
            self.edges.append((ast.unparse(node.args[0]), ast.unparse(node.args[1])))
        if name in {"system", "popen", "eval", "exec"}:
            self.dangerous.append(node.lineno)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        text = ast.unparse(node.annotation)
        if "Annotated" in text and "operator" in text:
            self.reducers.append(ast.unparse(node.target))
        self.generic_visit(node)


def inspect_source(source: str) -> StructureVisitor:
    visitor = StructureVisitor()
    visitor.visit(ast.parse(source))
    return visitor
