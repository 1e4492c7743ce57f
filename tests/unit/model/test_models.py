"""Models by name: what is missing is named before anything is imported, made or sent."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from pmagent.actors.core.extras import EXTRAS, install
from pmagent.actors.model import models as module
from pmagent.actors.model.models import PROVIDERS, Engine, Models, ModelUnavailable
from pmagent.actors.pla.line import discovery
from tests.support.cases import each
from tests.support.models import live_gateway, scripted


def unavailable(models: Models, name: str, engine: Engine = "langchain") -> ModelUnavailable:
    """The error about the model."""
    with pytest.raises(ModelUnavailable) as caught:
        models.check(engine, name)
    assert caught.value.exit_code == 2
    return caught.value


@each("engine", ["langchain", "dspy"])
@each("provider", [name for name, provider in PROVIDERS.items() if provider.keys])
def test_a_missing_key_is_named_first(provider: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    key = PROVIDERS[provider].keys[0]
    for environ in ({}, {key: ""}):
        said = unavailable(Models(environ), f"{provider}:one", engine)
        assert said.code == "no_key"
        assert f"{key} " in said.message
        assert said.hint == f"set {key}"


@each("provider", PROVIDERS)
def test_then_the_missing_package_with_the_extra_that_brings_it(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    known = PROVIDERS[provider]
    models = Models(dict.fromkeys(known.keys[-1:], "k"))
    said = unavailable(models, f"{provider}:one")
    assert said.code == "unavailable"
    assert known.package in said.message
    assert said.hint == install(known.extra)
    assert known.package.replace("_", "-") in said.hint, "by its own name: an index may know another project by ours"
    assert unavailable(models, f"{provider}:one", "dspy").hint == "pip install 'dspy>=3.4,<4'"


def test_what_is_to_be_installed_is_what_the_metadata_says() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    extras = {name: needed for name, needed in project["optional-dependencies"].items() if name not in {"dev", "bench"}}
    assert {name: list(needed) for name, needed in EXTRAS.items()} == extras
    assert {provider.extra for provider in PROVIDERS.values()} < set(EXTRAS)


def test_an_install_command_is_one_of_the_program_that_made_the_environment(tmp_path: Path) -> None:
    uv, pipx = tmp_path / "tools" / "pmagent", tmp_path / "venvs" / "pmagent"
    for folder, mark in ((uv, "uv-receipt.toml"), (pipx, "pipx_metadata.json")):
        folder.mkdir(parents=True)
        (folder / mark).touch()
    assert install("dspy", tmp_path) == "pip install 'dspy>=3.4,<4'"
    assert install("dspy", uv) == f"uv pip install --python {uv} 'dspy>=3.4,<4'"
    assert install("pla", pipx) == "pipx inject pmagent 'pyserial>=3.5,<4' 'pyserial-asyncio>=0.6,<0.7'"


def test_without_pyserial_a_device_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "find_spec", lambda _: None)
    with pytest.raises(discovery.PortUnusable) as raised:
        discovery.require_pyserial()
    assert (raised.value.code, raised.value.hint) == ("failed", install("pla"))


@each(
    "name, message, hint",
    [
        ("antropic:claude", "there is no model provider 'antropic'", "did you mean anthropic:claude?"),
        ("zzz:one", "there is no model provider 'zzz'",
         "there are: anthropic, openai, google_genai, mistralai, groq, ollama"),
        ("gpt", "'gpt' names no model", "write provider:model, e.g. anthropic:claude-sonnet-4-5"),
        ("openai:", "'openai:' names no model", "write provider:model, e.g. anthropic:claude-sonnet-4-5"),
        ("openai", "'openai' names no model", "write provider:model, e.g. anthropic:claude-sonnet-4-5"),
        ("", "'' names no model", "write provider:model, e.g. anthropic:claude-sonnet-4-5"),
    ],
)
def test_a_name_that_means_nothing_is_an_error_with_a_way_out(name: str, message: str, hint: str) -> None:
    said = unavailable(Models({}), name)
    assert (said.message, said.hint, said.code) == (message, hint, "unavailable")


def test_a_given_model_needs_no_provider_and_must_be_of_the_engines_kind() -> None:
    model = FakeListChatModel(responses=["x"])
    others = {"odd": object(), "class": FakeListChatModel, "chain": RunnableLambda(str)}
    models = Models({}, {"mine": model, **others})
    models.check("langchain", "mine")
    assert models.chat("mine") is model
    for name in others:
        assert unavailable(models, name).message == f"the model {name} is no LangChain chat model"
    assert unavailable(models, "mine", "dspy").message == "the model mine is no DSPy language model"


@each("name", ["LANGCHAIN_TRACING", "LANGCHAIN_HANDLER"])
def test_tracing_of_the_old_kind_is_named_because_langchain_would_not_call(name: str) -> None:
    models = Models({name: "true"}, {"mine": FakeListChatModel(responses=["x"])})
    assert unavailable(models, "mine").hint == f"unset {name}"
    Models({name: "false"}, {"mine": FakeListChatModel(responses=["x"])}).check("langchain", "mine")


def test_a_providers_client_is_made_once_with_the_key_at_hand_and_without_retries_of_its_own() -> None:
    models = Models({"OPENAI_API_KEY": "k-1"})
    made: Any = models.chat("openai:gpt-5")
    assert isinstance(made, ChatOpenAI)
    assert isinstance(made.openai_api_key, SecretStr)
    assert (made.model_name, made.max_retries, made.cache) == ("gpt-5", 0, False)
    assert made.openai_api_key.get_secret_value() == "k-1"
    assert models.chat("openai:gpt-5") is made
    assert models.chat("openai:gpt-5-mini") is not made


@each("provider", PROVIDERS)
def test_the_table_names_what_the_installed_packages_have(provider: str) -> None:
    known = PROVIDERS[provider]
    if find_spec(known.package) is None:
        pytest.skip(f"{known.package} is not installed")
    made = Models(dict.fromkeys(known.keys, "k")).chat(f"{provider}:some-model")
    assert made.cache is False
    assert type(made).__name__ == known.cls


async def test_a_call_of_a_model_that_is_not_here_fails_without_another_attempt() -> None:
    async with live_gateway({"toy:one": scripted()}) as rig:
        no_key = await rig.ask(model="openai:gpt-5")
        unknown = await rig.ask(model="opnai:gpt-5")
    assert (no_key.code, no_key.attempts) == ("no_key", 1)
    assert (unknown.code, unknown.attempts) == ("unavailable", 1)
    assert [one.error for one in rig.failed_calls] == ["ModelUnavailable", "ModelUnavailable"]


def test_checking_a_name_imports_neither_langchain_nor_dspy() -> None:
    script = (
        "import sys\n"
        "import pmagent.service.host\n"
        "from pmagent.actors.model.models import Models\n"
        "Models({'OPENAI_API_KEY': 'k'}).check('langchain', 'openai:gpt-5')\n"
        "Models({'OPENAI_API_KEY': 'k'}).check('dspy', 'openai:gpt-5')\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & "
        "{'langchain_core', 'langchain_openai', 'openai', 'dspy', 'litellm', 'langsmith', 'pydantic'}))\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
