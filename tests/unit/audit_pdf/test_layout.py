"""Paragraphs and headings are made out of lines by their look."""

from __future__ import annotations

from pmagent.actors.audit.sources.pdf.layout import Line, Paragraph, headings, look, paragraphs


class Page:
    """Lines one below the other."""

    def __init__(self, number: int = 1) -> None:
        self.number = number
        self.lines: list[Line] = []
        self._y = 50.0
        self._block = 0

    def add(
        self, *texts: str, size: float = 11.0, bold: bool = False, code: bool = False, gap: float = 14.0,
        soft: bool = False,
    ) -> Page:
        """A block of lines, ``gap`` below the last."""
        self._y += gap
        self._block += 1
        for text in texts:
            span = ((0, len(text)),) if code else ()
            y0, y1 = self._y, self._y + size
            self.lines.append(Line(text, self.number, self._block, size, bold, span, 50.0, y0, 500.0, y1, soft))
            self._y = y1 + size * 0.2
        return self


def joined(*pages: Page) -> list[Paragraph]:
    every = [line for page in pages for line in page.lines]
    return paragraphs(every, look(every))


def texts(*pages: Page) -> list[str]:
    return [each.text for each in joined(*pages)]


BOLD = False
BODY = "A line of the running text that says how the graph of the auditor is built."


def test_lines_of_a_block_are_one_paragraph_and_blocks_far_apart_are_several() -> None:
    assert texts(Page().add("The judges run", "side by side.").add("Another paragraph.", gap=20)) == [
        "The judges run side by side.", "Another paragraph.",
    ]


def test_blocks_of_one_line_each_are_joined_where_a_sentence_goes_on() -> None:
    page = (
        Page()
        .add("The judges run side by side and each of", gap=2)
        .add("them cites evidence.", gap=2)
        .add("New one.", gap=2)
    )
    assert texts(page) == ["The judges run side by side and each of them cites evidence.", "New one."]


def test_items_of_a_list_are_paragraphs_of_their_own() -> None:
    page = Page().add(
        "It has two parts:", "\u2022 the first part", "that goes on", "\u2022 the second", "1. and one more"
    )
    assert texts(page) == [
        "It has two parts:", "\u2022 the first part that goes on", "\u2022 the second", "1. and one more",
    ]


def test_a_word_broken_at_the_end_of_a_line_is_whole_again() -> None:
    assert texts(Page().add("The aggre-", "gator waits.")) == ["The aggregator waits."]
    assert texts(Page().add("The Fan-", "In waits.")) == ["The Fan-In waits."]
    assert texts(Page().add("The aggre", "gator waits.", soft=True))[0].startswith("The aggregator")


def test_a_hyphen_stays_where_a_report_breaks_no_words() -> None:
    page = Page().add(*[BODY] * 200).add("The multi-", "agent system is in my-", "app/main.py.", gap=20)
    assert texts(page)[-1] == "The multi-agent system is in my-app/main.py."


def test_a_path_broken_at_the_end_of_a_line_is_whole_again() -> None:
    assert texts(Page().add("It is in src/nodes/", "judges.py for all.")) == ["It is in src/nodes/judges.py for all."]
    assert texts(Page().add("It is in src/nodes", "/judges.py for all.")) == ["It is in src/nodes/judges.py for all."]
    assert texts(Page().add("It is in src/nodes/judges", ".py for all.")) == ["It is in src/nodes/judges.py for all."]
    assert texts(Page().add("It is in src/nodes/judges", "_base.py for all.")) == [
        "It is in src/nodes/judges_base.py for all."
    ]
    assert texts(Page().add("It is in src/tools/ast_par-", "ser.py for all.")) == [
        "It is in src/tools/ast_parser.py for all."
    ]


def test_a_path_in_a_font_for_code_keeps_its_hyphen() -> None:
    lines = [
        Line("It is in my-", 1, 1, 11.0, BOLD, ((9, 12),), 50, 60, 500, 71),
        Line("app/main.py for all.", 1, 1, 11.0, BOLD, ((0, 11),), 50, 73, 500, 84),
    ]
    (found,) = paragraphs(lines, look(lines))
    assert found.text == "It is in my-app/main.py for all."
    assert [found.text[slice(*span)] for span in found.codes] == ["my-app/main.py"]


def test_what_only_ends_with_a_slash_or_a_name_is_not_joined() -> None:
    assert texts(Page().add("It is in src/state.py", "and elsewhere.")) == ["It is in src/state.py and elsewhere."]
    assert texts(Page().add("Tests are in tests/unit", "where they belong.")) == [
        "Tests are in tests/unit where they belong."
    ]
    assert texts(Page().add("Tests are in tests/", "which is large.")) == ["Tests are in tests/ which is large."]


def test_lines_of_code_stay_lines() -> None:
    (found,) = joined(Page().add("src/", "  state.py", "  graph.py", code=True))
    assert found.text == "src/\n  state.py\n  graph.py"
    assert found.code


def test_larger_and_bold_lines_are_headings_by_their_size() -> None:
    page = Page().add("The Report", size=24).add("Architecture", size=16).add(*[BODY] * 5)
    page.add("Judges", bold=True).add(*[BODY] * 5).add("History", size=16).add(BODY)
    found = headings(joined(page))
    assert [(each.text, each.level) for each in found] == [
        ("The Report", 1),
        ("Architecture", 2),
        ("Judges", 3),
        ("History", 2),
    ]
    below = [each.heading for each in joined(page) if not each.level]
    assert below == ["Architecture", "Judges", "History"]


def test_paragraphs_know_the_headings_above_theirs_but_not_the_title() -> None:
    page = Page().add("Future of Auditing", size=24).add("7 Future work", size=16).add(*[BODY] * 5)
    page.add("7.1 Caching", size=16).add(BODY).add("Details", bold=True).add(BODY).add("8 History", size=16).add(BODY)
    assert [(each.heading, each.above) for each in joined(page) if not each.level] == [
        ("7 Future work", ()),
        ("7.1 Caching", ("7 Future work",)),
        ("Details", ("7 Future work", "7.1 Caching")),
        ("8 History", ()),
    ]


def test_what_repeats_on_pages_ends_like_a_sentence_or_is_code_is_no_heading() -> None:
    pages = [Page(number).add("Running head", size=14).add(*[BODY] * 5) for number in range(1, 5)]
    pages[0].add("Note that this is bold.", bold=True).add("import os", size=14, code=True).add("42", size=20)
    assert headings(joined(*pages)) == []


def test_numbers_and_capitals_make_headings_of_lines_that_look_like_the_rest() -> None:
    page = Page().add("EXECUTIVE SUMMARY").add(*[BODY] * 5).add("2.1 How judges are kept apart").add(*[BODY] * 5)
    page.add("3. JUDGES").add(BODY)
    assert [each.text for each in headings(joined(page))] == [
        "EXECUTIVE SUMMARY", "2.1 How judges are kept apart", "3. JUDGES",
    ]
    others = (
        Page().add(*[BODY] * 9).add("1.5 seconds").add("API").add("2. Clone it").add("2.1 It ends. Then it goes on.")
    )
    others.add("src/MAIN").add("2.1 A LINE THAT GOES ON " + "AND ON " * 20)
    assert headings(joined(others)) == []


def test_running_text_beside_much_code_or_many_tables_in_small_type_is_no_heading() -> None:
    listings = Page().add(*["    return state"] * 100, size=8, code=True).add(*[BODY] * 9).add("Judges", size=16)
    tables = Page().add(*[BODY] * 20, size=8).add(*[BODY] * 15).add("Judges", size=16)
    for page in (listings, tables):
        assert [each.text for each in headings(joined(page))] == ["Judges"]


def test_a_heading_of_two_lines_is_one() -> None:
    page = Page().add("How judges are kept apart", "and what they share", size=18).add(*[BODY] * 5)
    assert [each.text for each in headings(joined(page))] == ["How judges are kept apart and what they share"]


def test_a_report_all_in_bold_has_no_bold_headings() -> None:
    assert headings(joined(Page().add(*[BODY] * 5, bold=True).add("Judges", bold=True))) == []


def test_nothing_makes_nothing() -> None:
    assert paragraphs([], look([])) == []
