import pytest

from wardline.flags import masked, red_flags


@pytest.mark.parametrize(("text", "flag"), [
    ("I have had chest pressure since noon", "chest pain"), ("can't breathe properly", "breathing"),
    ("I want to end my life", "self-harm"), ("my throat is closing", "allergy"),
])
def test_red(text, flag):
    assert flag in red_flags(text)


def test_not_red():
    assert red_flags("I need a new prescription for my blood pressure pills") == []


def test_masked():
    assert masked("call 0171 234 5678 or a.b@c.example, A123456789") == "call [phone] or [mail], [insurance]"
