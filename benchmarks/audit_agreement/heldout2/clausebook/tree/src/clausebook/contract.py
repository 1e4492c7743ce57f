"""A contract as clauses. Headings are found by their numbers, as lawyers write them."""

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from docx import Document
from docx.opc.exceptions import PackageNotFoundError

MAX_BYTES = 5_000_000
HEADING = re.compile(r"^(?:(?:§|Article|Clause|Section)\s*)?(\d{1,2}(?:\.\d{1,2})?)[.)]?\s+(\S.{0,80})$")


class ContractError(Exception):
    """The file is no contract that can be read."""


@dataclass(frozen=True)
class Clause:
    number: str
    title: str
    text: str


def lines_of(path: Path) -> list[str]:
    if not path.is_file():
        raise ContractError(f"{path}: no such file")
    if path.stat().st_size > MAX_BYTES:
        raise ContractError(f"{path}: larger than {MAX_BYTES // 10**6} MB")
    if path.suffix == ".docx":
        try:
            return [paragraph.text for paragraph in Document(str(path)).paragraphs]
        except (PackageNotFoundError, zipfile.BadZipFile, KeyError) as error:
            raise ContractError(f"{path}: not a Word document ({error})") from error
    if path.suffix not in (".txt", ".md"):
        raise ContractError(f"{path}: only .docx, .txt and .md are read")
    try:
        return path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ContractError(f"{path}: not UTF-8 at byte {error.start}") from error


def clauses(lines: list[str]) -> list[Clause]:
    found: list[Clause] = []
    number, title, body = "", "Preamble", []
    for line in [*lines, "99. end"]:
        heading = HEADING.match(line.strip())
        if heading is None:
            body.append(line.strip())
            continue
        text = " ".join(part for part in body if part)
        if text:
            found.append(Clause(number, title, text))
        number, title, body = heading[1], heading[2].strip(), []
    if not found:
        raise ContractError("no text in it")
    return found
