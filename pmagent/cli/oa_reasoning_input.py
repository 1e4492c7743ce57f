"""The input of the reasoning commands: an argument, or a form as JSON, with options laid over it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeVar

import msgspec

from pmagent.cli.inputs import STDIN, BadInput, json_object, read_input, source_of, stdin_waits
from pmagent.contracts.reasoning_forms import GuardFailureInterpreterInput, Hint, KernelStateForm
from pmagent.oa.forms import Input

F = TypeVar("F", bound=Input)

OPTIONS: Final = "the command line"
_UNKNOWN: Final = re.compile(r"unknown field `(.*?)`", re.DOTALL)
_YES: Final = {"yes": True, "true": True, "no": False, "false": False}


def form_from(kind: type[F], key: str, argument: str | None, given: str | None) -> F:
    """The form: its field ``key`` from an argument, else all of it as JSON from the place ``given`` (None: stdin, if
    something waits there). An argument "-" is stdin. Raises BadInput."""
    where = place_of(key, argument, given)
    if where is None:
        assert argument is not None
        return as_form(kind, {key: text_of(argument, key.upper())}, key.upper())
    unsaid = argument is None and given is None  # most often nobody meant stdin
    raw = read_input(where, holds=f"give {key.upper()}, or a form as JSON on stdin") if unsaid else read_input(where)
    return as_form(kind, json_object(raw, source_of(where)), source_of(where))


def place_of(key: str, argument: str | None, given: str | None) -> str | None:
    """Where a form is to be read from; None: the argument says it. Raises BadInput when both or neither is given."""
    if argument is not None and given is not None:
        raise BadInput(f"both {key.upper()} and --input are given", "give one of them")
    if argument is not None:
        return STDIN if argument == STDIN else None
    if given is None and not stdin_waits():
        raise BadInput(f"{key.upper()} is missing", "give it, or the form as JSON: --input FILE, or - for stdin")
    return STDIN if given is None else given


def as_form(kind: type[F], content: dict[str, Any], source: str) -> F:
    """The content as a form. Raises BadInput, which names the key that is wrong and the nearest that exists."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        known = [*kind.__struct_fields__, *KernelStateForm.__struct_fields__, *Hint.__struct_fields__]
        unknown = _UNKNOWN.search(str(error))
        near = get_close_matches(unknown[1], known, 1) if unknown else []
        hint = f"did you mean {near[0]}?" if near else f"its keys are: {', '.join(kind.__struct_fields__)}"
        raise BadInput(f"{source}: {_readable(error)}", hint) from error


def laid_over(form: F, **fields: Any) -> F:
    """The form with fields from options in place of its own. Raises BadInput."""
    if not fields:
        return form
    plain: dict[str, Any] = msgspec.to_builtins(form)
    return as_form(type(form), {**plain, **fields}, OPTIONS)


def text_of(argument: str, name: str) -> str:
    """An argument that is text. Raises BadInput for what is none, or says nothing."""
    if not argument.strip():
        raise BadInput(f"{name} is empty", "say what is meant, or leave it out and give a form with --input")
    if "\0" in argument:
        raise BadInput(f"{name} holds a NUL", "give text")
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{name} is not text in the locale's encoding", "give it in a file, with --input") from None
    return argument


def hints_of(options: Sequence[str]) -> list[dict[str, str]]:
    """``FLOW=HINT`` each. Raises BadInput."""
    pairs = [option.partition("=") for option in options]
    if not all(separator and flow.strip() and hint.strip() for flow, separator, hint in pairs):
        raise BadInput("a --hint is not FLOW=HINT", "for example: --hint 'docs.create=Update the index too'")
    return [{"flow_id": flow.strip(), "hint": hint.strip()} for flow, _, hint in pairs]


def criteria_of(options: Sequence[str]) -> dict[str, bool]:
    """``NAME=yes|no`` each. Raises BadInput."""
    found: dict[str, bool] = {}
    for option in options:
        name, _, verdict = option.rpartition("=")
        name, met = name.strip(), _YES.get(verdict.strip().lower())
        if not name or met is None:
            example = "for example: --criterion 'Tests pass=yes'"
            raise BadInput(f"--criterion {option[:80]!r} is not NAME=yes or NAME=no", example)
        if found.get(name, met) is not met:
            raise BadInput(f"--criterion {name[:80]!r} is given as yes and as no", "decide")
        found[name] = met
    return found


def _readable(error: msgspec.ValidationError) -> str:
    text = str(error)
    return text[:1].lower() + text[1:]


def interpreted(argument: str | None, given: str | None) -> GuardFailureInterpreterInput:
    """The interpreter's form: ``given`` names one; an argument is a guard's report, as JSON or a file; what comes on
    stdin is either, told apart by its keys. Raises BadInput."""
    kind, key = GuardFailureInterpreterInput, "guard_output"
    where = place_of(key, argument, given)
    if where is None:
        assert argument is not None
        text = text_of(argument, key.upper())
        if text.lstrip()[:1] in ("{", "["):
            return as_form(kind, {key: json_object(text.encode(), key.upper())}, key.upper())
        where = text
    content = json_object(read_input(where), source_of(where))
    if given is not None or _is_form(content):
        return as_form(kind, content, source_of(where))
    return as_form(kind, {key: content}, source_of(where))


def _is_form(content: dict[str, Any]) -> bool:
    """Whether it is the interpreter's form: no guard's report has a form's keys and no others."""
    return "guard_output" in content and content.keys() <= set(GuardFailureInterpreterInput.__struct_fields__)
