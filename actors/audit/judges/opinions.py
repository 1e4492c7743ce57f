"""How a model's reply is read as an opinion; pure (docs/design.md §15.8).

Only what is a ``JudicialOpinion`` by the asked judge on the asked criterion is one. Everything else is a ``Misfit``,
whose text can be told to the model: it is in our words alone, because it becomes part of decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from pmagent.actors.audit.clerk import Brief
from pmagent.contracts.audit import JUDGES, SCORE_MAX, SCORE_MIN, JudicialOpinion
from pmagent.contracts.audit_events import ARGUMENT_CHARS_MAX, CITATION_CHARS_MAX, CITATIONS_MAX
from pmagent.contracts.model import ModelAnswer, ModelReplied
from pmagent.contracts.reasoning import DEPTH_MAX, is_too_deep

SHAPE_NAME: Final = JudicialOpinion.__name__
"""Names the answer in ``model.asked``, and the tool call that holds it."""

FIELDS: Final = ("judge", "criterion_id", "score", "argument", "cited_evidence")


_BLANK: Final = " \t\r\n"


class Misfit(ValueError):
    """A reply is no opinion; its text says why, without quoting it."""


def answer_shape() -> ModelAnswer:
    """The shape that a judge's model is bound to, as the log holds it: the JSON Schema of ``JudicialOpinion``, written
    here because what pydantic generates differs between its versions. The gateway binds the class itself."""
    kinds: dict[str, dict[str, Any]] = {
        "judge": {"type": "string", "enum": list(JUDGES)},
        "criterion_id": {"type": "string"},
        "score": {"type": "integer", "minimum": SCORE_MIN, "maximum": SCORE_MAX},
        "argument": {"type": "string"},
        "cited_evidence": {"type": "array", "items": {"type": "string"}},
    }
    properties = {
        name: {**kind, "description": JudicialOpinion.model_fields[name].description} for name, kind in kinds.items()
    }
    description = " ".join((JudicialOpinion.__doc__ or "").split())
    schema = {
        "title": SHAPE_NAME, "description": description, "type": "object", "properties": properties,
        "required": list(FIELDS), "additionalProperties": False,
    }  # fmt: skip
    return ModelAnswer(name=SHAPE_NAME, description=description, schema=schema)


def read_opinion(brief: Brief, reply: ModelReplied) -> JudicialOpinion:
    """The opinion that a reply holds: in the arguments of its one call named ``JudicialOpinion``, or as JSON text.

    An argument longer than ``ARGUMENT_CHARS_MAX`` is cut, and says so: the reply keeps the whole, and a judge who has
    said too much has given an opinion. Citations are never cut, since what is cited decides whether it counts.

    Raises Misfit.
    """
    given = _object(reply)
    missing = [name for name in FIELDS if name not in given]
    if missing:
        raise Misfit(f"it lacks {', '.join(missing)}")
    if len(given) > len(FIELDS):
        raise Misfit(f"it has more fields than {', '.join(FIELDS)}")
    for name, check in _CHECKS.items():
        check(given[name], brief)
    argument = shown(given["argument"], ARGUMENT_CHARS_MAX)
    return JudicialOpinion.model_validate({**given, "argument": argument})


def _judge(value: object, brief: Brief) -> None:
    if value != brief.judge:
        raise Misfit(f"judge has to be {brief.judge}")


def _criterion(value: object, brief: Brief) -> None:
    if value != brief.dimension_id:
        raise Misfit("criterion_id has to be the id of the criterion that you were given")


def _score(value: object, _brief: Brief) -> None:
    if type(value) is not int or not SCORE_MIN <= value <= SCORE_MAX:
        raise Misfit(f"score has to be an integer from {SCORE_MIN} to {SCORE_MAX}, written as a number")


def _argument(value: object, _brief: Brief) -> None:
    if not isinstance(value, str) or not value.strip(_BLANK):
        raise Misfit("argument has to be a text, and may not be empty")
    if not _is_utf8(value):
        raise Misfit("argument holds characters that cannot be written")


def _citations(value: object, _brief: Brief) -> None:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise Misfit("cited_evidence has to be a list of texts")
    if len(value) > CITATIONS_MAX or any(len(one) > CITATION_CHARS_MAX or not _is_utf8(one) for one in value):
        raise Misfit(
            f"cited_evidence has to hold keys of the evidence: at most {CITATIONS_MAX}, each of at most "
            f"{CITATION_CHARS_MAX} characters"
        )


_CHECKS: Final[Mapping[str, Callable[[object, Brief], None]]] = {
    "judge": _judge, "criterion_id": _criterion, "score": _score, "argument": _argument, "cited_evidence": _citations,
}  # fmt: skip


def _object(reply: ModelReplied) -> dict[str, Any]:
    """The JSON object that the reply answers with. Raises Misfit."""
    if reply.tool_calls:
        if len(reply.tool_calls) > 1:
            raise Misfit("there is more than one tool call in it")
        if reply.tool_calls[0].name != SHAPE_NAME:
            raise Misfit(f"it calls a tool other than {SHAPE_NAME}")
        return reply.tool_calls[0].args
    if reply.finish == "refusal":
        raise Misfit("it is a refusal; an opinion on this criterion is needed")
    text = reply.content.strip(_BLANK)
    if not text:
        raise Misfit("it is empty")
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text[text.index("\n") : -3].strip(_BLANK)
    try:
        given = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        raise Misfit(_CUT_OFF if reply.finish in _CUT else _NO_JSON) from None
    if is_too_deep(given):  # how deep decoders get differs, and with it what they would say; so they all say the same
        raise Misfit(_NO_JSON)
    if not isinstance(given, dict):
        raise Misfit("it is JSON, but not an object")
    return given


def shown(text: str, length: int) -> str:
    """The text, or its first ``length`` characters and that it was cut; never longer than ``length`` where that leaves
    room to say so."""
    if len(text) <= length:
        return text
    mark = f" … (cut: {len(text)} characters in all)"
    return text[: max(length - len(mark), 0)] + mark


def _is_utf8(text: str) -> bool:
    """Whether the text can be written: no half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


_CUT: Final = frozenset(("length", "max_tokens", "MAX_TOKENS"))
"""How providers say that a reply has ended because it may not be longer."""

_CUT_OFF: Final = "it was cut off at the length that a reply may have; say it in fewer words"
_NO_JSON: Final = f"it is not one JSON object and nothing else, or nested deeper than {DEPTH_MAX}"
