"""The explorer's page and the scripts beside it: what they hold, how they are written, that they are data alone."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from reports import explorer as explorer_module
from reports.explorer import embedded, explorer, write_explorer
from reports.question_details import PICKS_SHOWN, SCRIPT_SIZE
from reports.results import Results
from storage.errors import InputError
from tests.report_fixture import HOSTILE, build_results, read_explorer, step, traced


@pytest.fixture(scope="module")
def results() -> Results:
    return traced(build_results(), 1)


@pytest.fixture(scope="module")
def folder(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explorer")
    write_explorer(explorer(results), folder)
    return folder


def ids(own: dict[str, Any], store: int, places: list[Any]) -> list[str]:
    """What places of a script stand for."""
    return [own["records"][store]["id"][at] if isinstance(at, int) else at for at in places]


def test_each_question_lies_in_one_script_with_others_of_its_conversation_alone(tmp_path: Path) -> None:
    results = build_results(questions=SCRIPT_SIZE + 1, conversations=2, readers=("hybrid",), full_context=False)
    mixed = replace(results, questions=results.questions.sample(fraction=1, shuffle=True, seed=1))
    write_explorer(explorer(mixed), tmp_path)
    data, details = read_explorer(tmp_path)
    assert sorted(details) == list(range(mixed.questions.height))
    scripts = sorted(path.name for path in (tmp_path / data["folder"]).iterdir())
    assert scripts == [f"{n:03d}.js" for n in range(4)]
    together: dict[int, list[str]] = {}
    for q, script in enumerate(data["questions"]["script"]):
        together.setdefault(script, []).append(mixed.questions["conversation_id"][q])
    assert sorted(map(len, together.values())) == [1, 1, SCRIPT_SIZE, SCRIPT_SIZE]
    assert all(len(set(own)) == 1 for own in together.values())


def test_every_pick_resolves_and_hits_are_marked_as_the_metrics_do(results: Results, folder: Path) -> None:
    data, details = read_explorer(folder)
    cells = {(row["arm"], row["question_id"]): row for row in results.cells.iter_rows(named=True)}
    picked = {(row["arm"], row["question_id"]): row["record_ids"] for row in results.selections.iter_rows(named=True)}
    for q, question in enumerate(data["questions"]["id"]):
        own = details[q]
        for a, arm in enumerate(results.arms):
            places, cell = own["picks"][a], cells[arm.label, question]
            if (arm.label, question) not in picked:
                assert places is None
                continue
            assert ids(own, 0, places) == picked[arm.label, question]
            hits = {gold for place, gold in own["hits"][0] if place in places}
            assert [turn for turn, _, _ in own["gold"]] == results.questions["gold_turn_ids"][q].to_list()
            recall = cell["evidence_recall"]
            assert recall is None or recall == pytest.approx(len(hits) / len(own["gold"]))
            assert (own["answers"][own["answer"][a]], own["calls"][a]) == (cell["answer"], cell["calls"])
            label = own["label"][a]
            assert (None if label < 0 else own["labels"][label]) == cell["sufficiency"]


def test_records_are_told_with_where_in_the_conversation_they_were_said(results: Results, folder: Path) -> None:
    _, details = read_explorer(folder)
    rows = {row["id"]: row for row in results.records.iter_rows(named=True)}
    for own in details.values():
        assert [session for session, _ in own["sessions"]] == sorted({session for session, _ in own["sessions"]})
        told = own["records"][0]
        for i, record in enumerate(told["id"]):
            session, place = int(re.findall(r"D(\d+):", record)[0]), int(record.split(":")[1])
            assert told["x"][i] == pytest.approx(session - 1 + (place - 0.5) / 8, abs=0.006)
            assert told["text"][i] == rows[record]["text"].removeprefix(f"{rows[record]['speaker']}: ")
            assert own["sessions"][session - 1][0] == rows[record]["session_id"]


def test_records_without_a_session_come_last_on_the_axis(tmp_path: Path) -> None:
    plain = build_results(conversations=1, sessions=2, questions=2)
    last = pl.when(pl.col("position") >= 8).then(None).otherwise("session_id")
    write_explorer(explorer(replace(plain, records=plain.records.with_columns(session_id=last))), tmp_path)
    _, details = read_explorer(tmp_path)
    assert [session for session, _ in details[0]["sessions"]] == ["conv-0/session_1", ""]
    told = dict(zip(details[0]["records"][0]["id"], details[0]["records"][0]["x"], strict=True))
    assert {record for record, x in told.items() if x > 1} == {record for record in told if "/D2:" in record}


def test_outcomes_are_complete_partial_miss_missing_or_without_gold(results: Results, folder: Path) -> None:
    data, _ = read_explorer(folder)
    arm = [a.label for a in results.arms].index("mem_pursuit@k2")
    own = results.cells.filter(pl.col("arm") == "mem_pursuit@k2")
    for q, row in enumerate(own.iter_rows(named=True)):
        complete, hit = row["complete_evidence"], row["gold_hit"]
        unknown = "?" if len(results.questions["gold_turn_ids"][q]) else "-"
        expected = unknown if complete is None else "2" if complete == 1 else "1" if hit else "0"
        assert data["outcome"][arm][q] == expected
    assert "?" in data["outcome"][arm]


def cause(row: dict[str, Any], score: float | None) -> str:
    """The diagnosis of one cell, said case by case."""
    if score is None or row["sufficiency"] in (None, "uncertain"):
        return "undecided"
    if row["sufficiency"] == "sufficient":
        return "sound" if score > 0.5 else "misread"
    if score > 0.5:
        return "lucky"
    if row["complete_evidence"] is None:
        return "undecided"
    return "insufficient" if row["complete_evidence"] == 1 else "absent"


def test_every_cell_has_the_diagnosis_that_follows_from_panel_and_judge(results: Results, folder: Path) -> None:
    data, _ = read_explorer(folder)
    names = [name for name, _ in data["diagnoses"]]
    cells = {(row["arm"], row["question_id"]): row for row in results.cells.iter_rows(named=True)}
    seen = set()
    for verdict in results.verdicts.iter_rows(named=True):
        at = verdict["arm"], verdict["question_id"]
        judge, arm = data["judges"].index(verdict["judge"]), [each["label"] for each in data["arms"]].index(at[0])
        found = names[int(data["diagnosis"][judge][arm][data["questions"]["id"].index(at[1])])]
        assert found == cause(cells[at], verdict["score"]), at
        seen.add(found)
    assert seen == set(names)


def test_a_run_without_a_panel_has_nothing_to_diagnose(results: Results, tmp_path: Path) -> None:
    nobody = results.cells.with_columns(sufficiency=pl.lit(None, pl.String))
    write_explorer(explorer(replace(results, cells=nobody)), tmp_path)
    data, _ = read_explorer(tmp_path)
    assert (data["panel"], data["diagnoses"], data["diagnosis"]) == (False, [], [])


def test_long_evidence_is_counted_with_its_hits_alone(tmp_path: Path) -> None:
    results = build_results(turns=30, questions=3)
    write_explorer(explorer(results), tmp_path)
    _, details = read_explorer(tmp_path)
    whole = details[0]["picks"][[a.reader for a in results.arms].index("full_context")]
    assert whole["n"] == 120 > PICKS_SHOWN
    assert ids(details[0], 0, whole["hits"]) == results.questions["gold_turn_ids"][0].to_list()


def test_steps_tell_what_came_back_and_what_was_kept(tmp_path: Path) -> None:
    results = build_results(readers=("hybrid",), budgets=(5,), conversations=1, questions=3, full_context=False)
    picked = results.selections["record_ids"].to_list()
    traces = [
        [step("init", "hybrid", own[:1], own[:1]), step("text", text, [own[1], "conv-0/D4:8", own[2]], own[1:])]
        for own, text in zip(picked, results.questions["text"], strict=True)
    ]
    trace = pl.Series(traces, dtype=traced(results, 1).selections.schema["trace"])
    write_explorer(explorer(replace(results, selections=results.selections.with_columns(trace=trace))), tmp_path)
    _, details = read_explorer(tmp_path)
    for q, own in details.items():
        first, second = own["steps"][0]
        assert (own["views"][first[0]], own["cues"][first[1]]) == ("init", "hybrid")
        assert (own["views"][second[0]], second[1], second[2]) == ("text", -1, 3)
        assert ids(own, 0, [place for place in second[3] if place >= 0]) == list(dict.fromkeys(picked[q][1:]))
        left = ids(own, 0, [-1 - place for place in second[3] if place < 0])
        assert left == [record for record in ["conv-0/D4:8"] if record not in picked[q]]
        assert own["stops"][own["stop"][0]] == "budget"


def test_the_page_holds_nothing_of_the_evidence(results: Results) -> None:
    one = explorer(results)
    other = explorer(replace(results, selections=results.selections.clear(), records=results.records.clear()))
    assert one.folder != other.folder
    assert one.page == other.page.replace(other.folder, one.folder)


def test_the_page_of_a_full_benchmark_with_forty_arms_would_stay_below_five_megabytes() -> None:
    results = build_results(readers=("hybrid", "bm25", "dense", "mmr"), questions=50, full_context=False)
    page = explorer(results).page
    data = page.split('id="data">')[1].split("</script>")[0]
    questions = sum(len(str(row)) for row in results.questions.drop("gold_turn_ids").iter_rows())
    assert results.questions.height * len(results.arms) == 1200
    by_cell = (len(data.encode()) - questions) / 1200
    assert len(page) - len(data) + questions / 150 * 1540 + by_cell * 1540 * 40 < 5_000_000


def test_a_script_is_data_and_one_call(folder: Path) -> None:
    data, _ = read_explorer(folder)
    for path in (folder / data["folder"]).iterdir():
        text = path.read_text(encoding="utf-8")
        assert re.fullmatch(r"details\(\d+,\{.*\}\);\n", text, re.DOTALL)
        assert not re.search("[<>&\u2028\u2029]", text)
        json.loads(text[text.index(",") + 1 : -3])


def test_embedded_json_can_neither_end_its_element_nor_a_line() -> None:
    text = embedded({"t": list(HOSTILE), "half": "\ud800"})
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == {"t": list(HOSTILE), "half": "\ufffd"}


def test_scripts_of_an_earlier_page_go_and_what_is_not_ours_stays(results: Results, tmp_path: Path) -> None:
    first = write_explorer(explorer(results), tmp_path)
    (tmp_path / "questions-mine").mkdir()
    second = write_explorer(explorer(build_results(conversations=1)), tmp_path)
    assert first["details"] != second["details"]
    assert {path.name for path in tmp_path.iterdir()} == {"questions.html", "questions-mine", second["details"].name}
    assert len(list(second["details"].iterdir())) == 1


def test_a_page_that_cannot_be_written_leaves_the_old_one_with_its_scripts(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_explorer(explorer(results), tmp_path)
    before = read_explorer(tmp_path)
    write = explorer_module.write

    def full(path: Path, text: str) -> Path:
        if path.suffix == ".html":
            raise InputError("the disk is full")
        return write(path, text)

    monkeypatch.setattr(explorer_module, "write", full)
    with pytest.raises(InputError):
        write_explorer(explorer(build_results(conversations=1)), tmp_path)
    assert read_explorer(tmp_path) == before
