"""Which models there are: by name, from the environment's keys or given by a Python caller (docs/design.md §4.5).

A name is ``provider:model``, e.g. ``anthropic:claude-sonnet-4-5``. Providers come as extras; nothing of LangChain or
DSPy is imported before a model is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from pmagent.actors.core.extras import install
from pmagent.events.errors import PmagentError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

Engine = Literal["langchain", "dspy"]


class Provider(msgspec.Struct, frozen=True):
    """Where a provider's chat model class is, which extra brings it, which variables may hold its key (one is needed,
    unless none is named), how to switch its own retries off, and its name in DSPy."""

    package: str
    cls: str
    extra: str
    keys: tuple[str, ...]
    options: dict[str, Any]
    dspy: str


PROVIDERS: Final[Mapping[str, Provider]] = {
    "anthropic": Provider(
        "langchain_anthropic", "ChatAnthropic", "anthropic", ("ANTHROPIC_API_KEY",), {"max_retries": 0}, "anthropic"
    ),
    "openai": Provider("langchain_openai", "ChatOpenAI", "openai", ("OPENAI_API_KEY",), {"max_retries": 0}, "openai"),
    "google_genai": Provider(
        "langchain_google_genai", "ChatGoogleGenerativeAI", "google", ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        {"max_retries": 1},  # here it counts the calls; 0 would be the client's own default
        "gemini",
    ),
    "mistralai": Provider(
        "langchain_mistralai", "ChatMistralAI", "mistral", ("MISTRAL_API_KEY",), {"max_retries": 0}, "mistral"
    ),
    "groq": Provider("langchain_groq", "ChatGroq", "groq", ("GROQ_API_KEY",), {"max_retries": 0}, "groq"),
    "ollama": Provider("langchain_ollama", "ChatOllama", "ollama", (), {}, "ollama_chat"),
}


class ModelUnavailable(PmagentError, exit_code=2):
    """No such model here. ``code`` is that of ``model.call_failed``: no_key or unavailable."""

    def __init__(self, message: str, hint: str, code: Literal["no_key", "unavailable"] = "unavailable") -> None:
        super().__init__(message, hint)
        self.code = code


class Models:
    """Models by name. ``environ`` holds the keys; ``given`` are models of a caller's own: ``BaseChatModel`` objects for
    the engine ``langchain``, ``dspy.LM`` objects for ``dspy``. They go before providers'.

    A provider's client is made once and kept. Threads may share this. Clients keep connections open: where a process
    runs one event loop after another, the first call in a later one may fail as ``network`` and be tried again.
    """

    def __init__(self, environ: Mapping[str, str], given: Mapping[str, object] | None = None) -> None:
        self._environ = environ
        self._given = dict(given or {})
        self._made: dict[tuple[object, ...], Any] = {}

    def check(self, engine: Engine, name: str) -> None:
        """Whether the model can be made; nothing is imported, made or sent. Raises ModelUnavailable, which names the
        missing key first, then the missing package."""
        if engine == "langchain":
            _check_untraced(self._environ)
        if name in self._given:
            _check_kind(engine, name, self._given[name])
            return
        provider, _ = _provider(name)
        if provider.keys and not self._key(provider):
            raise ModelUnavailable(
                f"{name} needs a key: {' or '.join(provider.keys)} is not set", f"set {provider.keys[0]}", "no_key"
            )
        package, extra = ("dspy", "dspy") if engine == "dspy" else (provider.package, provider.extra)
        if find_spec(package) is None:
            raise ModelUnavailable(f"{name} needs the package {package}", install(extra))

    def chat(self, name: str) -> BaseChatModel:
        """The chat model of this name. Imports its package: call it in a thread. Raises ModelUnavailable."""
        made: BaseChatModel = self._get("langchain", name)
        return made

    def lm(self, name: str, seconds: float) -> Any:
        """The DSPy language model of this name; a provider's gives up after so many seconds, because the thread that
        it blocks cannot be stopped. Imports DSPy: call it in a thread. Raises ModelUnavailable."""
        return self._get("dspy", name, timeout=seconds)

    def variable(self, name: str) -> str:
        """The variable that holds the key for this model; "" where the caller gave the model, or it needs none."""
        if name in self._given:
            return ""
        provider, _ = _provider(name)
        return next((key for key in provider.keys if self._environ.get(key)), "")

    def _get(self, engine: Engine, name: str, **more: float) -> Any:
        self.check(engine, name)
        if name in self._given:
            return self._given[name]
        kept = (engine, name, *more.values())
        made = self._made.get(kept)
        return made if made is not None else self._made.setdefault(kept, self._make(engine, name, more))

    def _make(self, engine: Engine, name: str, more: dict[str, float]) -> Any:
        provider, model = _provider(name)
        key = {"api_key": self._key(provider)} if provider.keys else {}
        if engine == "dspy":
            from dspy import LM

            return LM(f"{provider.dspy}/{model}", cache=False, num_retries=0, **more, **key)
        cls = getattr(import_module(provider.package), provider.cls)
        return cls(model=model, cache=False, **provider.options, **key)

    def _key(self, provider: Provider) -> str:
        return next((self._environ[key] for key in provider.keys if self._environ.get(key)), "")


def _provider(name: str) -> tuple[Provider, str]:
    """The provider, and what it calls the model. Raises ModelUnavailable."""
    given, colon, model = name.partition(":")
    provider = PROVIDERS.get(given)
    if provider is not None and model:
        return provider, model
    if not colon or provider is not None:
        raise ModelUnavailable(f"{name!r} names no model", "write provider:model, e.g. anthropic:claude-sonnet-4-5")
    near = get_close_matches(given, PROVIDERS, 1, 0.5)
    hint = f"did you mean {near[0]}:{model}?" if near else f"there are: {', '.join(PROVIDERS)}"
    raise ModelUnavailable(f"there is no model provider {given!r}", hint)


def _check_untraced(environ: Mapping[str, str]) -> None:
    """LangChain makes no call at all where its first way of tracing is asked for; today's is switched off by us."""
    for name in ("LANGCHAIN_TRACING", "LANGCHAIN_HANDLER"):
        if environ.get(name, "") not in ("", "0", "false", "False"):
            raise ModelUnavailable(f"{name} asks LangChain for a tracing that it has no more", f"unset {name}")


def _check_kind(engine: Engine, name: str, model: object) -> None:
    wanted = ("ainvoke", "bind_tools", "with_structured_output") if engine == "langchain" else ("forward",)
    if isinstance(model, type) or not all(callable(getattr(model, method, None)) for method in wanted):
        what = "a LangChain chat model" if engine == "langchain" else "a DSPy language model"
        raise ModelUnavailable(f"the model {name} is no {what[2:]}", f"give {what} under this name, or another engine")
