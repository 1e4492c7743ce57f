"""Texts that look like keys and are none; keys that do not look like them."""

from __future__ import annotations

from tests.support.cases import each
from tests.support.detected import Table, detected, of

URL_PATTERN = r"http[s]?://(?:[a-zA-Z]|[0-9]|[$-_@.&+]|[!*\\(\\),]|(?:%[0-9a-fA-F][0-9a-fA-F]))+"


@each(
    "pattern",
    [URL_PATTERN, r"https?://([^\s:@]+):([^\s@]+)@", r"^(?:https?|ftp)://\S+(?::\S*)?@", "://{user}:{word}@host"],
)
def test_a_pattern_of_urls_holds_no_password(pattern: str) -> None:
    program = f"import re\nfound = re.search(r'{pattern}', text)\nURL = r'{pattern}'\n"
    assert of(detected(Table("security."), program), "security.secret") == []


@each("password", ["s3cr3tpw99", "s3cr%5Bet99", "a!b$c&d*e+f", "geheim-9_x~y.z"])
def test_a_password_in_a_url_is_found_with_all_signs_that_urls_have_there(password: str) -> None:
    program = f"connect('postgres://admin:{password}@db.internal/x')\n"
    (finding,) = of(detected(Table("security."), program), "security.secret")
    assert password not in finding.text
