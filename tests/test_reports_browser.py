"""The question explorer as its reader has it: opened from a file in a real browser."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reports.page import write_report
from reports.results import Results
from tests.report_fixture import HOSTILE, build_results, read_explorer, traced
from tests.test_reports_explorer import cause

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
    return traced(build_results(samples=50), 1)


@pytest.fixture(scope="module")
def folder(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(results, folder)
    return folder


@pytest.fixture
def page(browser: Any, folder: Path) -> Iterator[Any]:
    """The explorer, opened; on leaving: it asked for nothing but files beside it and said nothing on the console."""
    opened = browser.new_page(viewport={"width": 1300, "height": 900})
    opened.asked = []
    complaints: list[str] = []
    opened.on("request", lambda request: opened.asked.append(request.url.partition("#")[0]))
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    opened.goto((folder / "questions.html").as_uri())
    yield opened
    opened.close()
    assert not [url for url in opened.asked if not url.startswith(f"{folder.as_uri()}/")]
    assert complaints == []


def choose(page: Any, results: Results, q: int) -> None:
    """Open a question by its address and wait for its details."""
    page.evaluate("(id) => { location.hash = `#q=${encodeURIComponent(id)}`; }", results.questions["question_id"][q])
    page.wait_for_selector(f"#list [aria-selected=true][data-q='{q}']")
    page.wait_for_selector("#detail .timeline")


def expect(locator: Any) -> Any:
    """Playwright's waiting assertions. (`wait_for_function` would evaluate text, which the page's policy forbids.)"""
    from playwright.sync_api import expect as waiting

    return waiting(locator)


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
    assert page.is_disabled("#relation")  # a relation to no other arm
    page.select_option("#other", label=other)
    page.select_option("#relation", "above")
    both = results.cells.filter(arm=other).drop_nulls("complete_evidence")
    assert listed(page) == complete & set(both.filter(complete_evidence=0.0)["question_id"])
    page.click("button[type=reset]")
    expect(page.locator("#list li")).to_have_count(results.questions.height)
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


def test_keys_walk_the_list_and_the_address_keeps_the_question(page: Any, folder: Path, results: Results) -> None:
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
    assert address.startswith((folder / "questions.html").as_uri() + "#")
    assert page.locator("#detail .meta a").text_content() == ids[2]


def test_the_list_is_filtered_by_diagnosis(page: Any, results: Results) -> None:
    arm, judge = results.arms[2].label, results.judges[1]
    scores = {
        row["question_id"]: row["score"] for row in results.verdicts.filter(arm=arm, judge=judge).iter_rows(named=True)
    }
    causes = {
        row["question_id"]: cause(row, scores[row["question_id"]])
        for row in results.cells.filter(arm=arm).iter_rows(named=True)
    }
    page.select_option("#arm", label=arm)
    page.select_option("#judge", label=judge)
    names = [text.partition(":")[0] for text in page.locator("#diagnosis option").all_text_contents()[1:]]
    found = set()
    for place, name in enumerate(names):
        page.select_option("#diagnosis", str(place))
        assert listed(page) == {q for q, own in causes.items() if own == name}
        found |= listed(page)
    assert found == set(causes) and len(set(causes.values())) > 3


def test_details_come_from_the_script_of_the_chosen_question_alone(page: Any, folder: Path, results: Results) -> None:
    data, details = read_explorer(folder)
    scripts = (folder / data["folder"]).as_uri()
    page.wait_for_selector("#detail .timeline")
    assert page.asked[1:] == [f"{scripts}/000.js"]
    choose(page, results, 12)
    choose(page, results, 11)
    assert page.asked[1:] == [f"{scripts}/000.js", f"{scripts}/001.js"]
    cell = results.cells.filter(arm=results.arms[0].label, question_id=results.questions["question_id"][11])
    box = page.locator("#detail details").first
    assert f"evidence {cell['sufficiency'][0] or 'not judged'}" in box.locator(".scores").text_content()
    assert [each.text_content() for each in box.locator(".steps td:nth-child(2)").all()] == ["init", "text"]
    assert box.locator(".steps .chip.kept").count() == box.locator("ol.turns > li").count() == 2
    box.locator("summary").press("Enter")
    assert box.get_attribute("open") is None
    box.locator("summary").press("Enter")
    assert box.get_attribute("open") is not None
    assert page.locator("#detail .turns .text").first.text_content()
    assert details[11]["records"][0]["text"]


def test_the_arms_that_the_filters_name_are_shown_first_and_open(page: Any, results: Results) -> None:
    page.select_option("#arm", label="oracle@k5")
    page.select_option("#other", label="bm25@k2")
    expect(page.locator("#detail details[open]")).to_have_count(3)
    labels = [text.removesuffix(" (uses gold)") for text in page.locator("#detail summary .label").all_text_contents()]
    rest = [arm.label for arm in results.arms if arm.label not in ("oracle@k5", "bm25@k2")]
    assert labels == ["oracle@k5", "bm25@k2", *rest]
    assert page.locator(".timeline .label").all_text_contents() == labels
    opened = page.locator("#detail details[open] .label").all_text_contents()
    assert opened[:2] == ["oracle@k5 (uses gold)", "bm25@k2"]
    page.click("button[type=reset]")
    expect(page.locator(".timeline .label").first).to_have_text(results.arms[0].label)


def test_the_timeline_draws_every_gold_turn_and_every_pick(page: Any, folder: Path, results: Results) -> None:
    _, details = read_explorer(folder)
    for q in (0, 2, 21):
        own = details[q]
        choose(page, results, q)
        drawn = page.evaluate(
            """() => [...document.querySelectorAll(".marks > svg")].map((mark) =>
              [mark.firstChild.getAttribute("class"), ...["x", "y"].map((at) => parseFloat(mark.getAttribute(at)))])"""
        )
        golden = {place for place, _ in own["hits"][0]}
        wide = len(own["sessions"])
        rows = [[("gold", own["records"][0]["x"][place]) for _, _, place in own["gold"]]]
        rows += [
            [("gold" if at in golden else "pick", own["records"][0]["x"][at]) for at in picked or []]
            for picked in own["picks"]
        ]
        expected = sorted(
            (kind, round(100 * x / wide, 3), 18.0 * (line + 0.5))
            for line, row in enumerate(rows, start=1)
            for kind, x in row
        )
        assert sorted((kind, x, y) for kind, x, y in drawn) == expected
        assert page.locator(".guide").count() == len(own["gold"])
    gold, pick = (page.locator(f".marks .{kind}").first.get_attribute("d") for kind in ("gold", "pick"))
    assert gold != pick, "told apart by shape, not by colour alone"


def test_a_script_that_is_missing_is_said_and_the_rest_works(
    browser: Any, folder: Path, results: Results, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    data, _ = read_explorer(folder)
    (tmp_path / "copy" / data["folder"] / "001.js").unlink()
    page = browser.new_page()
    page.goto((tmp_path / "copy" / "questions.html").as_uri())
    choose(page, results, 0)
    page.keyboard.press("End")
    page.evaluate("(id) => { location.hash = `#q=${id}`; }", results.questions["question_id"][11])
    said = page.wait_for_selector("#detail [role=alert]").text_content()
    assert f"{data['folder']}/001.js" in said and "not there" in said
    assert page.locator("#detail h2").text_content() == results.questions["text"][11]
    shutil.copy(folder / data["folder"] / "001.js", tmp_path / "copy" / data["folder"])
    page.keyboard.press("k")
    page.wait_for_selector("#detail .timeline")
    page.close()


def test_every_link_of_both_pages_leads_somewhere(page: Any, folder: Path) -> None:
    script = "() => [...document.querySelectorAll('[href]')].map((link) => link.getAttribute('href'))"
    for name in ("questions.html", "report.html"):
        page.goto((folder / name).as_uri())
        links = page.evaluate(script)
        assert links
        for link in links:
            file, _, anchor = link.partition("#")
            assert not file or (folder / file).is_file(), link
            if anchor and not anchor.startswith("q="):
                assert page.evaluate("(id) => document.getElementById(id) !== null", anchor), link
    page.click("text=Look up a question")
    page.wait_for_selector("#detail .timeline")
    page.click("h1 a")
    assert page.url == (folder / "report.html").as_uri()


def test_tables_scroll_by_themselves_and_never_the_page(page: Any, folder: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto((folder / "report.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_every_control_has_a_label(page: Any) -> None:
    script = "() => [...document.querySelectorAll('input, select')].filter((c) => !c.labels.length).map((c) => c.id)"
    assert page.evaluate(script) == []


ALL_TEXT = """() => {
  const titles = [...document.querySelectorAll("[title]")].map((own) => own.title);
  const texts = [...document.querySelectorAll("main, form, h1, .marks title")].map((own) => own.textContent);
  return [...titles, ...texts].join("");
}"""
UNSEEN = re.compile("[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def test_hostile_texts_are_shown_and_never_run(page: Any, results: Results) -> None:
    title = page.title()
    texts = [q for q, text in enumerate(results.questions["text"]) if text in HOSTILE]
    assert len(texts) > 2
    seen = ""
    for q in texts:
        choose(page, results, q)
        for summary in page.locator("#detail summary").all()[1:]:
            summary.click()
        assert page.locator("#detail h2").text_content().startswith(results.questions["text"][q][:3])
        seen += page.evaluate(ALL_TEXT)
        for summary in page.locator("#detail summary").all()[1:]:
            summary.click()
    assert page.title() == title
    assert page.locator("#detail img, #detail script, #list img, #list script, #detail b b").count() == 0
    assert "\u27e8U+202E\u27e9txet\u27e8U+202C\u27e9" in seen and "NUL \u27e8U+0000\u27e9 bell" in seen
    assert UNSEEN.findall(seen) == []
    for text in HOSTILE[:3]:
        assert text in seen
