"""A question to a DSPy program, and its prediction in the gateway's words (docs/design.md §13.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from pmagent.actors.model.chat import Reply, estimated
from pmagent.actors.model.signatures import signature
from pmagent.contracts.model import ModelAsked, ModelUsage


def prepare(lm: Any, asked: ModelAsked) -> Callable[[], Reply]:
    """The run of the program named in ``asked`` on its inputs, ready to be made once, in a thread: it blocks. Imports
    DSPy. Raises KeyError for a program that has no signature."""
    dspy = _dspy()
    predict = dspy.Predict(signature(asked.program))
    texts = {name: _text(value) for name, value in asked.inputs.items()}
    example = dspy.Example(**texts).with_inputs(*texts)

    def run() -> Reply:
        # One call: where the text does not fit the signature, who asked decides whether to ask again.
        adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
        settings = dspy.context(lm=lm, adapter=adapter, callbacks=[], disable_history=True)
        with settings, dspy.track_usage() as used:
            try:
                prediction = predict(**example.inputs())
            except dspy.utils.exceptions.AdapterParseError as error:
                text = str(error.lm_response)
                return Reply(content=text, usage=_usage(used, asked, text), model=_name(lm), finish="unparsed")
        fields = msgspec.to_builtins(dict(prediction.items()))
        text = msgspec.json.encode(fields).decode()
        return Reply(content=text, usage=_usage(used, asked, text), model=_name(lm), fields=fields)

    return run


@cache
def _dspy() -> Any:
    """DSPy, with nothing of it kept on the disk or in memory: what was asked and replied is in the log."""
    import dspy

    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    return dspy


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()


def _usage(used: Any, asked: ModelAsked, text: str) -> ModelUsage:
    """The usage that the language model counted; a guess where it counts nothing."""
    calls: list[Mapping[str, Any]] = list(used.get_total_tokens().values())
    into = sum(int(call.get("prompt_tokens") or 0) for call in calls)
    out = sum(int(call.get("completion_tokens") or 0) for call in calls)
    if into + out == 0:
        return estimated(asked, len(text))
    return ModelUsage(input_tokens=into, output_tokens=out, counted=True)


def _name(lm: Any) -> str:
    name = getattr(lm, "model", "")
    return name if isinstance(name, str) else ""
