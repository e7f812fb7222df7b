"""The question explorer as its reader has it: opened from a file in a real browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reports.explorer import explorer_page
from reports.results import Results
from tests.report_fixture import HOSTILE, build_results

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One headless Chromium for these tests; they skip where there is none.

    It ends with them: while Playwright is open its event loop counts as running, and no other test could start one.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("needs a `chromium` on the path")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def results() -> Results:
    return build_results()


@pytest.fixture(scope="module")
def file(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / "questions.html"
    path.write_text(explorer_page(results), encoding="utf-8")
    return path


@pytest.fixture
def page(browser: Any, file: Path) -> Iterator[Any]:
    """The explorer, opened; on leaving: it asked for nothing but itself, and said nothing on the console."""
    opened = browser.new_page(viewport={"width": 1300, "height": 900})
    asked: list[str] = []
    complaints: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    opened.goto(file.as_uri())
    yield opened
    opened.close()
    assert {url.partition("#")[0] for url in asked} == {file.as_uri()}
    assert complaints == []


def listed(page: Any) -> set[str]:
    """Ids of the questions found, each read off by its row's place in the page's data."""
    script = "() => [...document.querySelectorAll('#list li')].map((row) => Number(row.dataset.q))"
    ids = page.evaluate("() => JSON.parse(document.getElementById('data').textContent).questions.id")
    return {ids[q] for q in page.evaluate(script)}


def expected(results: Results, arm: str, **values: float) -> set[str]:
    return set(results.cells.filter(arm=arm, **values)["question_id"])


def right(results: Results, arm: str) -> set[str]:
    verdicts = results.verdicts.filter(judge=results.judges[0], arm=arm, status="ok")
    return {q for q, score in verdicts.select("question_id", "score").iter_rows() if score is not None and score > 0.5}


def wrong(results: Results, arm: str) -> set[str]:
    verdicts = results.verdicts.filter(judge=results.judges[0], arm=arm, status="ok")
    return {q for q, score in verdicts.select("question_id", "score").iter_rows() if score is not None and score <= 0.5}


def test_filters_find_what_the_frames_hold(page: Any, results: Results) -> None:
    arm, other = results.arms[1].label, results.arms[2].label
    assert listed(page) == set(results.questions["question_id"])
    page.select_option("#arm", label=arm)
    page.select_option("#outcome", "2")
    complete = expected(results, arm, complete_evidence=1.0)
    assert listed(page) == complete and 0 < len(complete) < results.questions.height
    page.select_option("#other", label=other)
    page.select_option("#relation", "above")
    both = results.cells.filter(arm=other).drop_nulls("complete_evidence")
    assert listed(page) == complete & set(both.filter(complete_evidence=0.0)["question_id"])
    page.click("button[type=reset]")
    page.wait_for_function(f"document.querySelectorAll('#list li').length === {results.questions.height}")
    page.select_option("#kind", label="temporal")
    page.fill("#search", "week 1")
    rows = results.questions.filter(kind="temporal").select("question_id", "text", "answer").iter_rows()
    found = {q: f"{text} {answer or ''} {q}".lower() for q, text, answer in rows}
    assert listed(page) == {q for q, text in found.items() if "week" in text and "1" in text} < set(found)


def test_answers_are_filtered_by_what_the_chosen_judge_said(page: Any, results: Results) -> None:
    arm, other = results.arms[0].label, results.arms[2].label
    page.select_option("#arm", label=arm)
    for verdict, ids in (("right", right(results, arm)), ("wrong", wrong(results, arm))):
        page.select_option("#verdict", verdict)
        assert listed(page) == ids and ids
    page.select_option("#verdict", "none")
    assert listed(page) == set(results.questions["question_id"]) - right(results, arm) - wrong(results, arm)
    page.select_option("#verdict", "")
    page.select_option("#other", label=other)
    page.select_option("#relation", "won")
    assert listed(page) == right(results, arm) & wrong(results, other)
    page.select_option("#relation", "lost")
    assert listed(page) == wrong(results, arm) & right(results, other)


def test_keys_walk_the_list_and_the_address_keeps_the_question(page: Any, file: Path, results: Results) -> None:
    ids = results.questions["question_id"].to_list()
    for key in ("j", "ArrowDown", "ArrowDown", "k"):
        page.keyboard.press(key)
    assert page.locator("[aria-selected=true] .q").text_content() == results.questions["text"][2]
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.press("j")  # a letter typed into the search is no command
    assert page.input_value("#search") == "j"
    page.fill("#search", "")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "list"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"
    address = page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(address)
    assert address.startswith(file.as_uri() + "#")
    assert page.locator("#detail .meta a").text_content() == ids[2]


def test_every_control_has_a_label(page: Any) -> None:
    script = "() => [...document.querySelectorAll('input, select')].filter((c) => !c.labels.length).map((c) => c.id)"
    assert page.evaluate(script) == []


def test_hostile_texts_are_shown_and_never_run(page: Any, results: Results) -> None:
    title = page.title()
    texts = [q for q, text in enumerate(results.questions["text"]) if text in HOSTILE]
    assert len(texts) > 2
    for q in texts:
        page.evaluate(
            "(id) => { location.hash = `#q=${encodeURIComponent(id)}`; }", results.questions["question_id"][q]
        )
        page.wait_for_function(f"document.querySelector('#list [aria-selected=true]').dataset.q === '{q}'")
        for summary in page.locator("#detail summary").all()[:3]:
            summary.click()
        assert page.locator("#detail h2").text_content().startswith(results.questions["text"][q][:3])
    assert page.title() == title
    assert page.locator("#detail img, #detail script, #list img, #list script, #detail b b").count() == 0
