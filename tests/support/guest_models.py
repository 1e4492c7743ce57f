"""A loopback model server for real agents: it says what the prompt tells it to say.

A prompt contains ``SCRIPT`` and a JSON list of turns; a turn is a text, or a list of calls ``[tool, input]``. The turn
is chosen by the number of results in the conversation, so it depends on nothing else; a subagent's prompt has a script
of its own. Anthropic's messages, OpenAI's responses and chat completions, Gemini's content, as streams.
"""

from __future__ import annotations

import itertools
import json
import re
import ssl
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MARK = "SCRIPT"
Turn = str | list[list[Any]]
_NUMBERS = itertools.count()


def prompt(*turns: Turn) -> str:
    """A prompt that makes the model say these turns."""
    return MARK + json.dumps(list(turns), separators=(",", ":"))


def _turn(texts: list[str], results: int) -> Turn:
    """The turn that follows ``results`` results of tools."""
    for text in texts:
        _, mark, script = text.partition(MARK)
        if mark:
            turns: list[Turn] = json.JSONDecoder().raw_decode(script)[0]
            done = 0
            for turn in turns:
                if done >= results:
                    return turn
                done += 1 if isinstance(turn, str) else len(turn)
            return "done"
    return "nothing is scripted"


def _mark(turn: Turn) -> str:
    """A turn's mark: calls of different turns have different ids, and a turn that is said again has new ones."""
    return f"{zlib.crc32(json.dumps(turn).encode()):08x}{next(_NUMBERS)}"


def _texts(content: Any) -> list[str]:
    return [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]


class Models:
    """The server; ``seen``: the bodies of all requests, ``results``: what tools returned to the model, as text."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.results: list[str] = []
        self.url = ""

    def messages(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Anthropic's stream of events."""
        said = [part for message in asked["messages"] if message["role"] == "user" for part in _parts(message)]
        returned = [part for part in said if part.get("type") == "tool_result"]
        self.results = [json.dumps(part.get("content")) for part in returned]
        turn = _turn([part["text"] for part in said if part.get("type") == "text"], len(returned))
        usage = {"input_tokens": 1, "output_tokens": 1}
        head = {"id": f"msg_{next(_NUMBERS)}", "type": "message", "role": "assistant", "model": asked["model"]}
        head["content"] = []
        yield {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}}
        blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
        if isinstance(turn, str):
            blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": turn}))
        else:
            for number, (name, given) in enumerate(turn):
                block = {"type": "tool_use", "id": f"toolu_{_mark(turn)}_{number}", "name": name, "input": {}}
                blocks.append((block, {"type": "input_json_delta", "partial_json": json.dumps(given)}))
        for index, (block, delta) in enumerate(blocks):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        reason = "end_turn" if isinstance(turn, str) else "tool_use"
        yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}

    def responses(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """OpenAI's stream of events."""
        returned = [item for item in asked["input"] if item.get("type") == "function_call_output"]
        self.results = [json.dumps(item["output"]) for item in returned]
        texts = [text for item in asked["input"] if item.get("role") == "user" for text in _texts(item["content"])]
        turn = _turn(texts, len(returned))
        yield {"type": "response.created", "response": {"id": "resp_1"}}
        items: list[dict[str, Any]] = []
        if isinstance(turn, str):
            text = {"type": "output_text", "text": turn, "annotations": []}
            items.append({"type": "message", "id": "msg_1", "role": "assistant", "content": [text]})
        else:
            for number, (name, given) in enumerate(turn):
                if given.get("session_id") == "last":  # of a program that runs on
                    given["session_id"] = int(re.findall(r"session ID (\d+)", " ".join(self.results))[-1])
                space, _, last = name.rpartition(".")
                item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{_mark(turn)}_{number}"}
                item |= {"name": last, "arguments": json.dumps(given)} | ({"namespace": space} if space else {})
                items.append(item)
        for index, item in enumerate(items):
            yield {"type": "response.output_item.added", "output_index": index, "item": item}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        usage = {
            "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
        }  # fmt: skip
        yield {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}

    def completions(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """OpenAI's stream of chunks."""
        returned = [message for message in asked["messages"] if message["role"] == "tool"]
        said = [message["content"] for message in asked["messages"] if message["role"] == "user"]
        turn: Turn = "a title"  # which is asked for beside, without tools
        if asked.get("tools"):
            self.results = [json.dumps(message["content"]) for message in returned]
            turn = _turn([text for content in said for text in _texts(content)], len(returned))
        delta: dict[str, Any] = {"role": "assistant"}
        if isinstance(turn, str):
            delta["content"] = turn
        else:
            delta["tool_calls"] = [
                {
                    "index": number, "id": f"call_{_mark(turn)}_{number}", "type": "function",
                    "function": {"name": name, "arguments": json.dumps(given)},
                }
                for number, (name, given) in enumerate(turn)
            ]  # fmt: skip
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": asked["model"]}
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        reason = "stop" if isinstance(turn, str) else "tool_calls"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}

    def contents(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Gemini's stream of chunks."""
        parts = [part for content in asked["contents"] if content.get("role") == "user" for part in content["parts"]]
        returned = [part["functionResponse"] for part in parts if "functionResponse" in part]
        self.results = [json.dumps(one.get("response")) for one in returned]
        turn = _turn([part["text"] for part in parts if "text" in part], len(returned))
        made: list[dict[str, Any]]
        if isinstance(turn, str):
            made = [{"text": turn}]
        else:
            made = [{"functionCall": {"name": name, "args": given}} for name, given in turn]
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        content = {"role": "model", "parts": made}
        yield {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@contextmanager
def models() -> Iterator[Models]:
    """A running server."""
    made = Models()
    with served(made) as port:
        made.url = f"http://127.0.0.1:{port}"
        yield made


@contextmanager
def served(made: Models, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a server of these models, with TLS or without."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            made.seen.append(asked)
            path = self.path.partition("?")[0]
            known = {
                "/v1/messages": made.messages, "/v1/responses": made.responses,
                "/v1/chat/completions": made.completions, ":streamGenerateContent": made.contents,
            }  # fmt: skip
            said = known.get(path) or known.get(path[path.rfind(":") :])
            if said is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in said(asked):
                named = f"event: {event['type']}\n" if "type" in event else ""
                self.wfile.write(f"{named}data: {json.dumps(event)}\n\n".encode())
            if path.endswith("completions"):
                self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True

        def do_GET(self) -> None:
            self.send_error(404)

        def do_HEAD(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
