"""The use of models' answers: bound, validated, asked for again, or taken as text."""

from __future__ import annotations

from pmagent.contracts.audit_facts import Finding
from tests.support.cases import each
from tests.support.detected import Table, detected, goals, lines, of

HEAD = """
import json, re
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, ValidationError
class Opinion(BaseModel):
    score: int
llm = ChatOpenAI(model="m")
"""


def found(*programs: str, **named: str) -> list[Finding]:
    return detected(Table("output."), *programs, **named)


def after_head(text: str) -> list[Finding]:
    """Findings of a program behind the head; its first line is line 1."""
    shift = HEAD.lstrip("\n").count("\n")
    findings = found(HEAD + text)
    return [one for one in findings if one.line > shift]


@each(
    "text, says",
    [
        ("llm.with_structured_output(Opinion)", "with_structured_output binds to Opinion, a Pydantic model"),
        ("llm.with_structured_output(schema=Opinion)", "with_structured_output binds to Opinion, a Pydantic model"),
        ("class J:\n    def __init__(self, m): self.m = m.with_structured_output(Opinion, method='json_mode')",
         "with_structured_output binds to Opinion"),
        ("llm.bind_tools([Opinion])", "bind_tools binds to Opinion, a Pydantic model"),
        ("c.chat.completions.create(response_model=Opinion)", "response_model binds to Opinion"),
        ("c.beta.chat.completions.parse(response_format=Opinion)", "response_format binds to Opinion"),
        ("c.chat.completions.create(response_format={'type': 'json_schema', 'json_schema': {}})",
         "response_format with a JSON schema binds to a schema"),
        ("c.responses.parse(text_format=Opinion)", "text_format binds to Opinion"),
        ("from langchain.agents import create_agent\ncreate_agent(llm, response_format=Opinion)",
         "response_format binds to Opinion"),
        ("create_agent(llm, response_format=ToolStrategy(Opinion))", "ToolStrategy binds to Opinion"),
        ("from pydantic_ai import Agent\nAgent('m', output_type=list[Opinion])", "output_type binds to Opinion"),
    ],
)  # fmt: skip
def test_a_binding_is_found_with_the_schema_it_binds_to(text: str, says: str) -> None:
    (finding,) = of(after_head(text), "output.structured")
    assert finding.text.startswith(says)
    assert finding.confidence >= 0.9


@each(
    "text",
    [
        "@app.get('/x', response_model=Opinion)\ndef f(): ...",  # a web framework's
        "c.chat.completions.create(response_format={'type': 'json_object'})",
        "c.chat.completions.create(response_format=None)",
        "def with_structured_output(schema): ...",
        "with_structured_output(Opinion)",
        "TEXT = 'llm.with_structured_output(Opinion)'",
        "c.images.edit(response_format='url')",
    ],
)
def test_what_only_looks_like_a_binding_is_none(text: str) -> None:
    assert "output.structured" not in goals(after_head(text))


def test_bound_tools_are_no_sure_schema_of_an_answer() -> None:
    (finding,) = of(after_head("def search(q): ...\nllm.bind_tools([search])"), "output.structured")
    assert finding.confidence == 0.5


def test_the_schema_is_recognised_in_another_module() -> None:
    models = "from pydantic import BaseModel\nclass Verdict(BaseModel):\n    score: int\n"
    judge = "from m0 import Verdict as V\ndef f(llm):\n    return llm.with_structured_output(V)\n"
    (finding,) = of(found(models, judge), "output.structured")
    assert "binds to Verdict, a Pydantic model (app/m0.py:2)" in finding.text


@each(
    "text, line",
    [
        ("def f():\n    r = llm.invoke('x')\n    return json.loads(r.content)", 3),
        ("def f():\n    return json.loads(llm.invoke('x').content)", 2),
        ("def f():\n    t = llm.invoke('x').content.strip()\n    return int(re.search('[0-9]', t)[0])", 3),
        ("def f():\n    t = llm.invoke('x').content\n    return t.split(':')[1]", 3),
        ("async def f():\n    r = await llm.ainvoke('x')\n    return json.loads(r.content)", 3),
        ("def f(p):\n    chain = p | llm | StrOutputParser()\n    return json.loads(chain.invoke({}))", 3),
        (("class J:\n    def __init__(self): self.llm = ChatOpenAI()\n"
         "    def f(self):\n        r = self.llm.invoke('x')\n        return float(r.content)"), 5),
        (("def f(client):\n    r = client.chat.completions.create(model='m', messages=[])\n"
         "    return json.loads(r.choices[0].message.content)"), 3),
        ("PATTERN = re.compile('x')\ndef f():\n    r = llm.invoke('x')\n    return PATTERN.search(r.content)", 4),
    ],
)  # fmt: skip
def test_an_answer_taken_as_text_is_a_flaw(text: str, line: int) -> None:
    findings = of(after_head(text), "output.freeform")
    shift = HEAD.lstrip("\n").count("\n")
    assert line in [finding.line - shift for finding in findings]
    assert all(finding.confidence >= 0.8 for finding in findings)


@each("text", [
    "def f():\n    s = llm.with_structured_output(Opinion)\n    return int(s.invoke('x').score)",
    "def f(graph):\n    return json.loads(graph.invoke({}))",
    "def f(builder):\n    app = builder.compile()\n    return app.invoke({})['a'].split()",
    "def f(tool):\n    return json.loads(tool.invoke('x'))", "def f(response):\n    return json.loads(response.text)",
    "def f():\n    r = llm.invoke('x')\n    return r.content",
    "def f():\n    r = llm.invoke('x')\n    r = fetch()\n    return json.loads(r)",
    "def f():\n    return json.loads(llm.invoke('x').tool_calls[0].function.arguments)",
    "def f():\n    calls = llm.invoke('x').tool_calls\n    return json.loads(calls[0]['args'])",
    "def ask():\n    return llm.invoke('x').tool_calls\ndef f():\n    return json.loads(ask()[0])",
    (
        "def read(a):\n    m = a.choices[0].message\n    return json.loads(m.tool_calls[0].function.arguments)\n"
        "def f():\n    return read(llm.invoke('x'))"
    ),
    "def f(subprocess):\n    return subprocess.run('x').stdout.split()",
])
def test_a_bound_answer_and_what_no_model_said_are_no_free_text(text: str) -> None:
    assert "output.freeform" not in goals(after_head(text))


def test_free_text_that_is_validated_afterwards_is_not_confirmed() -> None:
    text = "def f():\n    r = llm.invoke('x')\n    return Opinion.model_validate(json.loads(r.content))"
    findings = after_head(text)
    assert [one.confidence for one in of(findings, "output.freeform")] == [0.5]
    assert len(of(findings, "output.validated")) == 1


@each("text", [
    ("def f():\n    for attempt in range(3):\n        try:\n            return llm.invoke('x')\n"
    "        except ValidationError:\n            continue"),
    ("def f():\n    while True:\n        try:\n            return llm.invoke('x')\n"
    "        except Exception as error:\n            messages.append(str(error))"),
    "import tenacity\ndef f():\n    for again in tenacity.Retrying(stop=3):\n        with again: llm.invoke('x')",
    "import tenacity\n@tenacity.retry(stop=3)\ndef f():\n    return llm.invoke('x')",
    "from tenacity import retry as again\n@again\ndef f():\n    return llm.invoke('x')",
    "s = llm.with_structured_output(Opinion).with_retry(stop_after_attempt=3)",
    "from langgraph.types import RetryPolicy\ng.add_node('a', f, retry_policy=RetryPolicy(max_attempts=3))",
    "c.chat.completions.create(response_model=Opinion, max_retries=3)",
    "p = RetryOutputParser.from_llm(llm)\nq = RetryOutputParser(llm)",
])  # fmt: skip
def test_an_answer_that_is_asked_for_again_is_found(text: str) -> None:
    assert of(after_head(text), "output.retried")


@each(
    "text",
    [
        ("def f(items):\n    for item in items:\n        try:\n            llm.invoke(item)\n"
        "        except ValueError:\n            continue"),  # over things, not attempts
        ("def f():\n    for attempt in range(3):\n        try:\n            return llm.invoke('x')\n"
        "        except ValueError:\n            raise"),
        "def f():\n    for attempt in range(3):\n        llm.invoke('x')",
        "def f():\n    while True:\n        try:\n            g()\n        except E:\n            llm.invoke('x')",
        "def retry(f): ...",
    ],
)  # fmt: skip
def test_a_loop_over_things_or_one_that_gives_up_is_no_retry(text: str) -> None:
    assert "output.retried" not in goals(after_head(text))


def test_a_misfit_that_is_caught_where_a_model_is_asked_counts_as_validation() -> None:
    text = "def f():\n    try:\n        return llm.invoke('x')\n    except (ValidationError, KeyError):\n        raise"
    (finding,) = of(after_head(text), "output.validated")
    assert finding.text.startswith("catches ValidationError")


def test_files_that_ask_no_model_say_nothing() -> None:
    text = "import json\nfrom pydantic import BaseModel\nclass A(BaseModel): ...\nA.model_validate(json.loads(input()))"
    assert found(text) == []
    assert found(tests__test_it=HEAD + "llm.with_structured_output(Opinion)\n") == []


def test_the_line_is_that_of_the_call() -> None:
    assert lines(found(HEAD + "x = 1\ny = llm.with_structured_output(Opinion)\n"), "output.structured") == [8]


def test_an_answer_is_followed_through_the_functions_that_hand_it_on_and_read_it() -> None:
    text = """
def ask(prompt):
    return llm.invoke(prompt).content
def again(prompt):
    return ask(prompt)
def clean(raw):
    return raw.strip()
def read(raw):
    text = clean(raw)
    return json.loads(text[text.find("{"):])
def judge(state):
    raw = again(str(state))
    return read(raw)
"""
    (finding,) = of(found(HEAD + text), "output.freeform")
    assert "is read by read(), that is by json.loads" in finding.text
    assert finding.confidence >= 0.7


def test_a_bound_model_is_followed_through_the_functions_that_make_it() -> None:
    text = """
def make():
    return ChatOpenAI().with_structured_output(Opinion)
class Judge:
    def __init__(self, raw):
        self.llm = self._bound(raw)
    def _bound(self, raw):
        return raw.with_structured_output(Opinion)
    def one(self):
        return int(self.llm.invoke("x").score)
def two():
    return int(make().invoke("x").score)
"""
    assert "output.freeform" not in goals(found(HEAD + text))


def test_a_client_of_their_own_is_a_model_by_its_name() -> None:
    text = """
from src.llm_provider import LLMProvider
import json as _json
def judge(persona):
    llm = LLMProvider(provider="x")
    response = llm.chat([{"role": "user", "content": persona}])
    return _json.loads(response[response.index("{"):])
"""
    (finding,) = of(found(text), "output.freeform")
    assert finding.confidence >= 0.8


def test_a_function_that_repeats_what_it_is_given_is_a_retry() -> None:
    text = "def judge(self):\n    return self.with_backoff(lambda: llm.invoke('x'))\n"
    assert of(after_head(text), "output.retried")
    assert not of(after_head("def judge(self):\n    return self.wrap(lambda: llm.invoke('x'))\n"), "output.retried")


@each("text", [
    "def f():\n    r = llm.invoke('x')\n    Opinion.parse_obj(r)",
    "def f():\n    r = llm.invoke('x')\n    Opinion.parse_raw(r)",
    "def f():\n    r = llm.invoke('x')\n    TypeAdapter(Opinion).validate_json(r.content)",
    "def f():\n    r = llm.invoke('x')\n    Opinion(**r)",
    "def f():\n    r = llm.invoke('x')\n    assert isinstance(r, Opinion)",
    "import jsonschema\ndef f():\n    r = llm.invoke('x')\n    jsonschema.validate(r, SCHEMA)",
    "def f():\n    p = PydanticOutputParser(pydantic_object=Opinion)\n    return p.parse(llm.invoke('x'))",
    "def f():\n    try:\n        llm.invoke('x')\n    except OutputParserException:\n        raise",
])
def test_a_validation_of_an_answer_is_found(text: str) -> None:
    assert max(finding.confidence for finding in of(after_head(text), "output.validated")) >= 0.7


@each("text", [
    "def f():\n    r = llm.invoke('x')\n    assert isinstance(other, Opinion)",
    "def f():\n    r = llm.invoke('x')\n    dict(**r)", "def f():\n    r = llm.invoke('x')\n    Opinion(**other)",
    "def f():\n    try:\n        llm.invoke('x')\n    except ValueError:\n        raise",
])
def test_a_check_of_something_else_validates_no_answer(text: str) -> None:
    assert "output.validated" not in goals(after_head(text))


def test_a_schema_that_the_caller_gives_is_half_a_binding() -> None:
    text = "def f(schema):\n    return c.chat.completions.create(response_format=schema)"
    (finding,) = of(after_head(text), "output.structured")
    assert finding.confidence == 0.5


@each("text", [
    "genai.GenerativeModel('m', generation_config=GenerationConfig(response_schema=Opinion))",
    "Task(description='x', output_pydantic=Opinion)", "import dspy\np = dspy.ChainOfThought(Opinion)",
    "create_react_agent(llm, tools, response_format=ProviderStrategy(Opinion))",
])
def test_other_libraries_bind_in_their_own_words(text: str) -> None:
    (finding,) = of(after_head(text), "output.structured")
    assert "binds to Opinion, a Pydantic model" in finding.text


@each("text, sure, says", [
    ("s = llm.with_retry()", 1.0, "with_retry()"),
    ("s = llm.with_fallbacks([other])", 0.7, "with_fallbacks()"),
    ("p = RetryWithErrorOutputParser(llm)", 0.95, "RetryWithErrorOutputParser asks again"),
    ("p = OutputFixingParser(llm)", 0.95, "OutputFixingParser asks again"),
    ("p = ToolStrategy(Opinion, handle_errors=True)", 0.8, "ToolStrategy handles errors"),
    ("from langgraph.types import RetryPolicy\np = RetryPolicy()", 0.8, "RetryPolicy of a node"),
    ("from pydantic_ai import Agent\na = Agent('m', retries=2)", 0.8, "retries of an agent"),
    ("c.chat.completions.create(response_model=Opinion, max_retries=2)", 0.95, "max_retries with a response_model"),
    (
        "def f():\n    while True:\n        try:\n            llm.invoke('x')\n        except E: pass", 0.9,
        "asked again in the loop of line 8"
    ),
])  # fmt: skip
def test_a_retry_is_told_with_how_sure_it_is(text: str, sure: float, says: str) -> None:
    (finding,) = of(after_head(text), "output.retried")
    assert (finding.confidence, finding.text.split("\n")[0]) == (sure, says)


@each(
    "text",
    [
        "p = RetryPolicy()",  # somebody's own
        "p = ToolStrategy(Opinion)",
        "c.chat.completions.create(max_retries=2)",
        "f(retries=2)",
        "with_retry(llm)",
        "x = ChatOpenAI(max_retries=2)",  # of the transport
    ],
)
def test_other_settings_are_no_retry_of_an_answer(text: str) -> None:
    assert "output.retried" not in goals(after_head(text))


@each("asked", ["client.images.generate", "client.audio.transcriptions.create"])
def test_the_format_of_an_image_or_a_sound_is_no_schema(asked: str) -> None:
    program = f"{HEAD}import openai\nclient = openai.OpenAI()\ndef f(kind):\n    return {asked}(response_format=kind)\n"
    assert "output.structured" not in goals(found(program))


CAUGHT = """
def f(data):
    try:
        {tried}
    except json.JSONDecodeError:
        raise ValueError("no")
"""


@each("tried", [
    "return json.loads(llm.invoke('x').content)", "return parse_answer(llm.invoke('x'))",
    "call = llm.invoke('x').tool_calls[0]; return json.loads(call['args'])",
])
def test_who_catches_what_is_no_json_validates_the_answer_that_is_read(tried: str) -> None:
    assert "output.validated" in goals(found(HEAD + CAUGHT.format(tried=tried)))


@each("tried", [
    "asked = json.loads(data); send(llm.invoke(asked['x']).content)",
    "answer = llm.invoke('x'); settings = json.loads(data); return answer, settings",
])
def test_who_catches_that_something_else_is_no_json_does_not_validate_answers(tried: str) -> None:
    assert "output.validated" not in goals(found(HEAD + CAUGHT.format(tried=tried)))
