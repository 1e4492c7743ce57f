from glossator.segments import Segment
from glossator.terms import complaints

GLOSSARY = {"waiting list": "čakalna vrsta"}


def test_inflected_terms_are_accepted():
    assert complaints(Segment("On the waiting list", target="Na čakalni vrsti"), GLOSSARY) == []


def test_wrong_terms_are_told():
    assert complaints(Segment("On the waiting list", target="Na seznamu"), GLOSSARY) == ["'waiting list' is 'čakalna vrsta'"]


def test_placeholders_must_stay():
    assert complaints(Segment("Hello %(name)s!", target="Pozdravljeni!"), {}) == ["placeholders must be ['%(name)s']"]
