"""A model is shown the image itself; without one nothing is claimed to have been seen."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from pmagent.actors.audit.sources.pdf.diagrams import IMAGE_BYTES_MAX, NOT_INSPECTED, BadImage, analyze_diagram
from pmagent.actors.audit.sources.pdf.doc_tools import PDFImage
from tests.support.cases import each
from tests.support.pdfs import image

PNG: bytes = bytes(image(64, 48).tobytes("png"))


class Beholder(BaseChatModel):
    """Says what it was shown: the size of the PNG, and the question."""

    seen: list[dict[str, Any]] = []
    says: Any = None

    @property
    def _llm_type(self) -> str:
        return "beholder"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        (message,) = messages
        question, shown = message.content_blocks
        assert question["type"] == "text"
        assert shown["type"] == "image"
        data = base64.b64decode(shown["base64"])
        self.seen.append({"mime_type": shown["mime_type"], "data": data, "question": question["text"]})
        answer = AIMessage(self.says or f"{len(data)} bytes of {shown['mime_type']}: {question['text']}")
        return ChatResult(generations=[ChatGeneration(message=answer)])


class Broken(Beholder):
    """Cannot be reached."""

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise ConnectionError("nobody there")


def test_without_a_model_it_is_said_that_nothing_was_inspected() -> None:
    assert analyze_diagram(PNG, "What is it?") == NOT_INSPECTED == "not inspected: no vision model"


def test_a_model_sees_the_very_image_and_the_question() -> None:
    model = Beholder(seen=[])
    answer = analyze_diagram(PNG, "Are the judges parallel?", model)
    assert answer == f"{len(PNG)} bytes of image/png: Are the judges parallel?"
    assert model.seen == [{"mime_type": "image/png", "data": PNG, "question": "Are the judges parallel?"}]


def test_what_was_extracted_can_be_shown_and_other_kinds_of_images_too() -> None:
    model = Beholder(seen=[])
    analyze_diagram(PDFImage(png=PNG, page=1, kind="embedded", width=64, height=48), "?", model)
    analyze_diagram(bytearray(b"\xff\xd8\xff\xe0 jpeg"), "?", model)
    analyze_diagram(b"RIFF\x00\x00\x00\x00WEBPVP8 ", "?", model)
    assert [each["mime_type"] for each in model.seen] == ["image/png", "image/jpeg", "image/webp"]


def test_an_image_that_can_be_saved_is_saved_as_png_and_shown() -> None:
    class Drawn:
        """As Pillow's images are."""

        def save(self, file: Any, *, format: str) -> None:
            assert format == "PNG"
            file.write(PNG)

    model = Beholder(seen=[])
    analyze_diagram(Drawn(), "?", model)
    assert [each["data"] for each in model.seen] == [PNG]


def test_an_answer_in_blocks_is_its_text() -> None:
    model = Beholder(seen=[], says=[{"type": "text", "text": "Two "}, {"type": "text", "text": "branches."}])
    assert analyze_diagram(PNG, "?", model) == "Two branches."


@each(
    "given",
    [b"", b"%PDF-1.7", b"RIFF\x00\x00\x00\x00WAVE", "a path", None, 7, b"\x89PNG\r\n\x1a\n" + bytes(IMAGE_BYTES_MAX)],
)
def test_what_is_no_image_is_refused_with_and_without_a_model(given: Any) -> None:
    for model in (None, Beholder(seen=[])):
        with pytest.raises(BadImage) as raised:
            analyze_diagram(given, "?", model)
        assert raised.value.hint
        assert raised.value.exit_code == 2


def test_a_model_that_fails_is_not_taken_for_one_that_saw_nothing() -> None:
    with pytest.raises(ConnectionError):
        analyze_diagram(PNG, "?", Broken(seen=[]))
