from grantweaver import writer
from grantweaver.schemas import Requirement, Review

SECTION = Requirement(heading="Aims", question="Which aims?", max_words=30)


def test_too_many_words_are_refused_without_asking():
    state = {"requirement": SECTION, "text": "word " * 31, "profile": ""}
    assert writer.review(state)["review"].complaints == ["31 words instead of 30"]


def test_rounds_are_bounded():
    assert writer.again({"review": Review(ok=False), "rounds": 3}) == "finish"
    assert writer.again({"review": Review(ok=False), "rounds": 2}) == "write"
    assert writer.again({"review": Review(ok=True), "rounds": 1}) == "finish"
