"""Every row is a test or says why not, and the page says the same."""

from collections import Counter

from tests.reports.catalogue import PAGE, covered, page, rows


def test_rows_are_listed_once() -> None:
    assert [row for row, times in Counter(row.id for row in rows()).items() if times > 1] == []


def test_every_row_is_a_test_or_says_why_not() -> None:
    names = covered()

    assert [row.id for row in rows() if row.id not in names and not row.untested] == []


def test_rows_with_a_verdict_are_exactly_the_tested_ones() -> None:
    assert {row.id for row in rows() if row.verdict} == set(covered())


def test_page_is_made_of_the_rows() -> None:
    written = PAGE.read_text(encoding="utf-8")

    assert written == page(), "write it again with `python -m tests.reports.catalogue`"
