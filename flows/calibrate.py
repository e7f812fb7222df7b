"""How often a judge errs: its verdicts on planted replies, and what they make of the arms' accuracy."""

from dataclasses import asdict, replace
from time import perf_counter
from typing import Any

import polars as pl
from prefect import flow

from flows.gate import open_split
from flows.ingest import ingest_stage
from flows.progress import WATCHER
from flows.protocol import Protocol
from flows.rejudge import report_arms
from flows.report import frames_of
from flows.shards import Log
from reports.calibration import Estimate, Proportion, corrected, errors, wilson
from storage.digests import tree_digest
from tasks import specs
from tasks.audit import audit_cases, audit_files
from tasks.calibrate import calibrate_task, cases_of, judge_cases, measured
from tasks.judges import JUDGES
from tasks.plan import Plan
from tasks.planted import Case, planted


@flow(name="calibrate", flow_run_name="calibrate: {protocol.name} ({protocol.data.split})", persist_result=False)
def calibrate(protocol: Protocol, lake: str, judge: str) -> dict[str, Any]:
    """Measure `judge` on replies planted for the protocol's questions.

    Returns what `summary` does, with a row for every arm whose answers the judge has judged. Replies are planted by
    gold, so a judge is measured on open questions alone: raises `StillSealed` for the sealed split.
    """
    log = Log()
    plan, _ = ingest_stage(protocol, lake, log)
    plan = replace(plan, judges=(judge,))
    log.run("calibrate", [(calibrate_task, (plan, judge, conversation)) for conversation in plan.conversation_ids()])
    cases = [case for conversation in plan.conversation_ids() for case in cases_of(plan, conversation)]
    return summary(judge, measured(plan, judge, cases), _scores(plan, protocol.data.apart)) | {
        "new": log.new["calibrate"]
    }


def calibrate_audit(protocol: Protocol, lake: str, judge: str, folder: str, limit: int | None) -> dict[str, Any]:
    """Measure `judge` on the audit of LoCoMo in `folder`, with good and vague replies planted for its questions.

    The audit's real answers, whose truth is unknown, stand where `calibrate` has arms. `limit` takes as many questions,
    evenly spaced. The protocol gives the models. Starts no server.
    """
    files = tree_digest((path.name, path) for path in audit_files(folder))
    plan = replace(open_split(protocol).plan(lake, files, files), judges=(judge,))
    cases = _limited(_audited(folder, judge, protocol.seed), limit)
    new = _judged(plan, judge, cases)
    found = measured(plan, judge, cases)
    real = found.filter(pl.col("truth") == "unknown")["score"].to_list()
    return summary(judge, found, {"the audit's real answers": real} if real else {}) | {"new": new}


def summary(judge: str, found: pl.DataFrame, answers: dict[str, list[float | None]]) -> dict[str, Any]:
    """The measured error rates of a judge, and what they make of the accuracy of `answers`, name → scores.

    `rates`: `what, n, rate, low, high` for false accepts of specific and of vague wrong replies, false rejects and, as
    far as replies were not judged, their share. `accuracy`: `answers, n, accuracy, low, high` with the corrected
    estimate and its interval by either kind of wrong reply, None where the rates allow none.
    """
    rates = errors(found)
    rows = [_rate(f"false accepts, {truth} wrong replies", each) for truth, each in rates.false_accept.items()]
    rows += [_rate("false rejects, good replies", rates.false_reject)] if rates.false_reject.n else []
    known = found.filter(pl.col("truth") != "unknown")
    rows += [_rate("not judged", wilson(rates.unjudged, len(known)))] if rates.unjudged else []
    accuracy = []
    for name, scores in answers.items():
        seen, by_specific = corrected(scores, rates, "specific")
        by_vague = corrected(scores, rates, "vague")[1]
        accuracy.append(
            {"answers": name, "n": seen.n, "accuracy": seen.rate, "low": seen.low, "high": seen.high}
            | {"by specific": _estimate(by_specific), "by vague": _estimate(by_vague)}
        )
    return {"judge": judge, "rates": rows, "accuracy": accuracy}


def _judged(plan: Plan, judge: str, cases: list[Case]) -> int:
    """Judge the cases of one conversation after the other; returns how many verdicts are new."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.question.conversation_id, []).append(case)
    watcher, start, new = WATCHER.get(), perf_counter(), 0
    watcher.begin("calibrate", len(groups))
    for group in groups.values():
        new += judge_cases(plan, judge, group)
        watcher.advance("calibrate")
    watcher.end("calibrate", new, perf_counter() - start)
    return new


def _audited(folder: str, judge: str, seed: int) -> list[Case]:
    """The audit's replies; but for its own votes, which know no others, with good ones for every question and vague."""
    cases = audit_cases(folder)
    if specs.make(JUDGES, judge, "judge").name == "recorded":
        return cases
    cases = [case for case in cases if case.truth != "good"]
    questions = {case.question.id: case.question for case in cases}
    held = {case.truth for case in cases}
    more = planted(list(questions.values()), {case.question.id: case.gold for case in cases}, seed)
    return [*cases, *(case for case in more if case.truth not in held)]


def _limited(cases: list[Case], limit: int | None) -> list[Case]:
    ids = list(dict.fromkeys(case.question.id for case in cases))
    kept = set(ids if limit is None else [ids[place * len(ids) // limit] for place in range(min(limit, len(ids)))])
    return [case for case in cases if case.question.id in kept]


def _scores(plan: Plan, apart: tuple[str, ...]) -> dict[str, list[float | None]]:
    """Arm → the judge's score of every question's answer, for arms of which it has judged any."""
    frames = frames_of(plan, report_arms(plan))
    kinds = frames.questions.filter(~pl.col("kind").is_in(list(apart)))
    verdicts = frames.verdicts.join(kinds, on="question_id", how="semi")
    by_arm = verdicts.group_by("arm", maintain_order=True).agg(
        "score", (pl.col("status") != "missing").any().alias("any")
    )
    return dict(by_arm.filter("any").select("arm", "score").iter_rows())


def _rate(what: str, found: Proportion) -> dict[str, Any]:
    return {"what": what, "n": found.n, "rate": found.rate, "low": found.low, "high": found.high}


def _estimate(found: Estimate | None) -> dict[str, float] | None:
    return asdict(found) if found else None
