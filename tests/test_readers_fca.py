"""FCA-MS: coverage by hand, lattices against another library, covers against exhaustive search."""

from itertools import combinations
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers import lattice
from readers.fca_ms import FcaMs, Scene, greedy, grounded, looked_at, overlaps, prefiltered
from readers.fca_ms_lattice import FcaMsLattice, cover, covering, kept_candidates
from readers.requirements import attributes, coverage, overlap, rare, rules, unit
from readers.types import Budget, Note, Pool, Query
from tasks.access import Library, QuestionAccess

NOWHEN = float("nan")
UNLIMITED = Budget()


def note(text, speaker="", *, id="r0", session=0, time=NOWHEN):
    return Note(id, text, speaker, session, 0, time, 10)


def conversation(texts, vectors, question="When did Ada visit Paris?", vector=(1.0, 0.0), speakers=None, embed=None):
    """A query, the pool of `texts` in native order, and access to it."""
    size = len(texts)
    vectors = np.asarray(vectors, np.float32).reshape(size, 2)
    query = Query("q", question, np.asarray(vector, np.float32))
    notes = [note(text, speakers[i] if speakers else "", id=f"r{i}") for i, text in enumerate(texts)]
    codes = np.arange(size, dtype=np.int32)
    pool = Pool(
        ids=tuple(item.id for item in notes),
        native=np.linspace(1, 0, size),
        dense=vectors.astype(float) @ query.vector.astype(float),
        lexical=np.zeros(size),
        vectors=vectors,
        tokens=np.full(size, 10, np.int32),
        positions=codes,
        sessions=codes,
        speakers=codes,
        times=np.full(size, NOWHEN),
    )
    return query, pool, QuestionAccess(Library(notes, embed or (lambda _: np.zeros((0, 2), np.float32))), UNLIMITED)


def scene_of(strength):
    """A scene of which only coverage matters."""
    strength = np.asarray(strength, float)
    size = strength.shape[1]
    notes = attributes([note("", id=f"r{i}") for i in range(size)])
    requirements = rules("x")[:1] * len(strength)
    return Scene(requirements, np.arange(size), ("",) * size, notes, strength, np.eye(size))


def random_context(rng, widest=8, most=50):
    width, size = int(rng.integers(1, widest + 1)), int(rng.integers(1, most + 1))
    return rng.random((width, size)) < rng.uniform(0.1, 0.9)


def covers_all(rows, places):
    wanted = np.bitwise_or.reduce(rows) if len(rows) else 0
    return np.bitwise_or.reduce(rows[list(places)]) == wanted if places else wanted == 0


def smallest_covers(rows):
    for size in range(len(rows) + 1):
        found = [places for places in combinations(range(len(rows)), size) if covers_all(rows, places)]
        if found:
            return found
    return []


# Requirements --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what is new?", ["R1"]),
        ("What did Ada paint for Bo?", ["R1", "R2 entity anchor for Ada"]),
        ("How long did the trip take?", ["R1", "R3"]),
        ("How many days did Bo wait?", ["R1", "R3"]),
        ("When did Ada leave?", ["R1", "R2 entity anchor for Ada", "R3"]),
        ("Which book came out in 2021?", ["R1", "R3"]),
        ("What happened in June?", ["R1"]),
        ("", ["R1"]),
    ],
)
def test_rules_give_the_question_its_first_person_and_a_temporal_bridge(question, expected):
    """A name has at least three letters, as in the release: Bo is none."""
    made = [f"{r.id} {r.text}" if r.kind == "entity_anchor" else r.id for r in rules(question)]
    assert made == expected
    assert rules(question)[0].text == question


def test_attributes_of_a_note_by_hand():
    (found,) = attributes(
        [note('Ada: Bob and I visited Rome on 8 May, 2023 and read "The Waves" there', "Ada", session=3)]
    )
    assert found.buckets == {
        "entity": {"ada", "bob", "rome", "the", "waves"},
        "speaker": {"ada"},
        "time": {"2023-05-08", "2023-05", "2023"},
        "event": {"visited", "read"},
        "action": {"visited", "read"},
        "keyword": {"ada", "bob", "visited", "rome", "read", "waves"},
        "answer_candidate": {"the waves", "2023", "2023-05", "2023-05-08"},
        "session": {"3"},
    }


def test_the_time_of_a_note_is_an_attribute_and_every_speaker_is_a_name():
    first, second = attributes([note("hello, ada", "Bob", time=1683504000.0), note("hi", "Ada")])
    assert first.buckets["time"] == {"2023-05-08", "2023-05", "2023"}
    assert first.buckets["speaker"] == {"ada", "bob"}
    assert "time" not in second.buckets


def test_coverage_by_hand():
    requirements = rules("Did Ada visit Rome in 2023?")
    assert [requirement.id for requirement in requirements] == ["R1", "R2", "R3"]
    notes = attributes([note("Ada visited Rome in 2023"), note("nothing of that"), note("Bob slept"), note("x")])
    rows = unit(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [np.nan, 1.0]]))
    vectors = unit(np.array([[0.6, 0.8], [0.0, 0.0], [0.0, 0.0]]))
    # Values of R1: entity did, ada, rome (1.0 each); time 2023 (1.2); event visit (1.1); keyword ada, visit, rome (.5
    # each); marks multihop, multihop (.6 each, never matched). Matched by the first note: all but did and the marks.
    share = (2 * 1.0 + 1.2 + 1.1 + 3 * 0.5) / (3 * 1.0 + 1.2 + 1.1 + 3 * 0.5 + 2 * 0.6)
    # Time (.18), event (.165) and the year as an answer candidate (.195) are each in one of four notes: .54, capped.
    expected = 0.45 * share + 0.35 * 0.6 + 0.20 * 0.3
    strength = coverage(requirements, vectors, notes, rows)
    assert strength.shape == (3, 4)
    assert strength[0] == pytest.approx([expected, 0.35 * 0.8, 0.0, 0.0], abs=1e-9)
    # R2 "entity anchor for Ada": entity ada; keywords entity, anchor, ada; the marks. It has neither time nor event.
    assert strength[1] == pytest.approx([0.45 * 1.5 / 3.7 + 0.20 * 0.195, 0, 0, 0], abs=1e-9)
    # R3 shares no word; the first note's answer candidate is rare.
    assert strength[2] == pytest.approx([0.20 * 0.195, 0, 0, 0], abs=1e-9)


def test_substrings_match_either_way_within_their_bucket():
    notes = attributes([note("painting"), note("paint"), note("pai"), note("ain't"), note("")])
    assert overlap({"keyword": frozenset({"paint"})}, notes).tolist() == [1, 1, 1, 0, 0]
    assert overlap({"event": frozenset({"paint"}), "keyword": frozenset({"paint"})}, notes).tolist() == pytest.approx(
        [0.5 / 1.6, 1, 0.5 / 1.6, 0, 0]
    )
    assert overlap({}, notes).tolist() == [0] * 5
    long = "paint" * 3000
    assert overlap({"keyword": frozenset({long})}, notes).tolist() == [0, 1, 1, 0, 0]


def test_a_bucket_in_half_of_the_notes_is_not_rare():
    one = note('she said "so it is"')
    assert rare({}, attributes([one, note("x"), note("y")])).tolist() == pytest.approx([0.195, 0, 0])
    assert rare({}, attributes([one, note("x")])).tolist() == [0, 0]


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match=r"vectors \(0\) must match requirements \(1\)"):
        coverage(rules(""), np.zeros((0, 2)), [], np.zeros((0, 2)))
    with pytest.raises(ValueError, match=r"rows \(1\) must match notes \(0\)"):
        coverage(rules(""), np.zeros((1, 2)), [], np.zeros((1, 2)))


# Lattice -------------------------------------------------------------------------------------------------


def test_intents_of_a_small_context_by_hand():
    rows = np.array([0b011, 0b110, 0b010])
    assert lattice.intents(rows, 3).tolist() == [0b010, 0b110, 0b011, 0b111]
    assert lattice.concepts(rows, 3) == [
        ((0, 1, 2), (1,)),
        ((1,), (1, 2)),
        ((0,), (0, 1)),
        ((), (0, 1, 2)),
    ]


@pytest.mark.parametrize(
    ("rows", "width", "expected"), [([], 0, [0]), ([], 2, [3]), ([0], 2, [0, 3]), ([3, 3], 2, [3]), ([0, 0], 0, [0])]
)
def test_degenerate_contexts(rows, width, expected):
    assert lattice.intents(np.array(rows, np.int64), width).tolist() == expected


@settings(deadline=None)
@given(st.integers(0, 7).flatmap(lambda w: st.tuples(st.just(w), st.lists(st.integers(0, 2**w - 1), max_size=12))))
def test_intents_are_all_intersections_of_rows_in_lectic_order(context):
    width, rows = context
    naive = {2**width - 1}
    for row in rows:
        naive |= {row & other for other in naive}
    lectic = sorted(naive, key=lambda intent: int(f"{intent:b}".zfill(width)[::-1], 2))
    assert lattice.intents(np.array(rows, np.int64), width).tolist() == lectic


def named_context(incidence):
    package = pytest.importorskip("concepts", reason="the package `concepts` is the oracle and is not installed")
    width, size = incidence.shape
    bools = [tuple(bool(value) for value in row) for row in incidence.T]
    return package.Context([f"o{i}" for i in range(size)], [f"a{j}" for j in range(width)], bools)


def test_intents_agree_with_the_package_concepts():
    rng = np.random.default_rng(4)
    for _ in range(40):
        incidence = random_context(rng)
        theirs = {frozenset(int(name[1:]) for name in intent) for _, intent in named_context(incidence).lattice}
        rows = lattice.context(incidence)
        ours = [frozenset(intent) for _, intent in lattice.concepts(rows, len(incidence))]
        assert len(ours) == len(set(ours))
        assert set(ours) == theirs


def test_enumeration_is_ten_times_faster_than_the_package_concepts():
    incidence = np.random.default_rng(5).random((8, 50)) < 0.5
    rows = lattice.context(incidence)
    lattice.intents(rows, 8)
    ours = min(timed(lambda: lattice.intents(rows, 8)) for _ in range(5))
    theirs = min(timed(lambda: list(named_context(incidence).lattice)) for _ in range(3))
    assert theirs >= 10 * ours


def timed(run):
    start = perf_counter()
    run()
    return perf_counter() - start


def test_a_clarified_context_keeps_the_worthiest_of_equal_rows():
    rows = np.array([0b01, 0b10, 0b01, 0, 0b10])
    assert lattice.clarified(rows, np.array([0.2, 0.5, 0.3, 9.0, 0.5])) == [1, 2]
    assert lattice.clarified(np.zeros(0, np.int64), np.zeros(0)) == []


def test_maximal_intents_contain_a_minimum_cover():
    rng = np.random.default_rng(6)
    for _ in range(300):
        rows = lattice.context(random_context(rng, widest=5, most=8))
        peaks = lattice.maximal(rows, lattice.clarified(rows, rng.random(len(rows))))
        assert len(peaks) <= 10
        assert any(set(found) <= set(peaks) for found in smallest_covers(rows)) or not rows.any()
        assert len(smallest_covers(rows[peaks])[0]) == len(smallest_covers(rows)[0])
        objects = [frozenset(extent) for extent, _ in lattice.concepts(rows, 5) if extent]
        for place in peaks:
            extent = frozenset(np.flatnonzero(rows & rows[place] == rows[place]).tolist())
            assert not any(other < extent for other in objects)


def test_a_minimum_cover_is_the_smallest_and_of_those_the_strongest():
    rng = np.random.default_rng(7)
    for _ in range(300):
        incidence = random_context(rng, widest=6, most=8)
        strength = np.where(incidence, rng.uniform(0.25, 0.86, incidence.shape), 0.0)
        rows = lattice.context(incidence)
        chosen = lattice.minimum_cover(rows, strength)
        best = smallest_covers(rows)
        assert tuple(chosen) in best
        if chosen:
            value = {places: strength[:, places].max(axis=1).sum() for places in best}
            assert value[tuple(chosen)] == pytest.approx(max(value.values()))


def test_equal_covers_tie_to_the_lower_places():
    assert lattice.minimum_cover(np.array([1, 1, 2, 2]), np.full((2, 4), 0.5)) == [0, 2]


def test_a_cover_beyond_the_most_becomes_a_greedy_one():
    strength = np.diag(np.linspace(0.9, 0.3, 7))
    rows = lattice.context(strength > 0)
    assert lattice.minimum_cover(rows, strength) == [0, 1, 2, 3, 4, 5, 6]
    assert cover(rows, strength, 5) == [0, 1, 2, 3, 4]
    wide = np.ones((12, 3))
    assert cover(lattice.context(wide > 0), wide, 5) == [0]
    with pytest.raises(ValueError, match="at most 10 attributes expected, 12 found"):
        lattice.minimum_cover(lattice.context(wide > 0), wide)
    with pytest.raises(ValueError, match="at most 62 attributes expected, 63 found"):
        lattice.context(np.ones((63, 1), bool))


def test_the_prefilter_keeps_every_maximal_intent_of_up_to_six_requirements():
    rng = np.random.default_rng(8)
    for _ in range(100):
        incidence = random_context(rng, widest=6)
        strength = np.where(incidence, rng.uniform(0.25, 0.86, incidence.shape), 0.1)
        rows = lattice.context(incidence)
        kept = kept_candidates(rows, strength, 20)
        assert len(kept) <= 20 and len(set(kept)) == len(kept)
        assert {int(row) for row in rows[lattice.maximal(rows, range(len(rows)))]} - {0} <= {int(r) for r in rows[kept]}
        assert len(lattice.minimum_cover(rows[kept], strength[:, kept])) == len(lattice.minimum_cover(rows, strength))


def test_a_requirement_that_nothing_meets_is_left_out_of_the_cover():
    scene = scene_of([[0.3, 0.5, 0.0], [0.0, 0.0, 0.6], [0.1, 0.2, 0.1]])
    assert covering(scene, 20, 0.25, 5) == [1, 2]
    assert covering(scene_of([[0.1, 0.2, 0.2]]), 20, 0.25, 5) == [1]
    assert covering(scene_of(np.zeros((1, 0))), 20, 0.25, 5) == []


# The readers ---------------------------------------------------------------------------------------------


def test_overlap_counts_distinct_shared_tokens_of_each_selected_note():
    assert overlaps(["a cat and a cat", "dog", "cat dog"], ["the cat", "cat dog dog"]).tolist() == [2, 1, 3]
    assert overlaps([], ["x"]).tolist() == []


def test_the_prefilter_skips_near_copies_until_places_are_left():
    texts = ["Ada visited Paris"] * 3 + ["Bob sleeps"]
    query, pool, access = conversation(texts, [[1, 0], [1, 0], [1, 0], [0, 1]])
    scene = looked_at(query, pool, access, 50, rules(query.text), encode=False)
    assert prefiltered(scene, 2) == [0, 3]
    assert prefiltered(scene, 3) == [0, 3, 1]
    assert prefiltered(scene, 4) == [0, 1, 2, 3]


def test_greedy_gain_by_hand():
    texts = ["Ada visited Paris", "Ada visited Paris", "nothing"]
    query, pool, access = conversation(texts, [[1, 0], [1, 0], [0, 1]])
    scene = looked_at(query, pool, access, 50, rules(query.text), encode=False)
    assert greedy(scene, [0, 1, 2], 0.25, 6) == [0]
    assert greedy(scene, [1, 0, 2], 0.25, 6) == [1]
    assert greedy(scene, [], 0.25, 6) == []
    # The third note has one new attribute, its keyword: .05 * .5 - .02 is under .05.
    assert greedy(scene, [2], 0.25, 6) == [2]


@pytest.mark.parametrize("reader", [FcaMs, FcaMsLattice])
def test_overlap_fills_the_budget_and_pointer_returns_the_selection(reader):
    texts = ["We saw a dog", "Ada visited Paris", "Paris is big", "zzz"]
    case = conversation(texts, [[0.6, 0.8], [1, 0], [0.8, 0.6], [0, 1]], speakers=["Ada"] * 4)
    whole = reader().read(*case[:2], UNLIMITED, case[2])
    assert whole.ids[0] == "r1" and set(whole.ids) == set(case[1].ids)
    assert whole.stop_reason == "pool_exhausted" and whole.calls == 0
    assert reader().read(*case[:2], Budget(tokens=25), case[2]).ids == whole.ids[:2]
    pointed = reader(grounding="pointer").read(*case[:2], Budget(records=10), case[2])
    assert pointed.ids[0] == "r1" and len(pointed.ids) <= 5
    assert pointed.stop_reason == "adaptive"


@pytest.mark.parametrize("reader", [FcaMs, FcaMsLattice])
def test_the_trace_names_requirements_with_what_covers_them(reader):
    case = conversation(["Ada visited Paris", "zzz"], [[1, 0], [0, 1]])
    steps = reader().read(*case[:2], UNLIMITED, case[2]).trace
    assert [step.cue.split()[0] for step in steps] == ["R1", "R2", "R3"]
    assert steps[0].returned == ("r0",) and steps[0].kept == ("r0",)
    assert steps[2].returned == ()


@pytest.mark.parametrize("reader", [FcaMs, FcaMsLattice])
def test_requirements_other_than_the_question_are_encoded_where_asked_for(reader):
    asked = []

    def embed(texts):
        asked.extend(texts)
        return np.tile(np.array([0, 1], np.float32), (len(texts), 1))

    case = conversation(["Ada visited Paris", "zzz"], [[1, 0], [0, 1]], embed=embed)
    steps = reader(encode=True).read(*case[:2], UNLIMITED, case[2]).trace
    assert len(asked) == 2 and case[0].text not in asked
    assert steps[2].returned == ("r1",)


@pytest.mark.parametrize("reader", [FcaMs, FcaMsLattice])
@pytest.mark.parametrize("size", [0, 1, 3])
def test_candidates_without_sound_vectors_come_in_native_order(reader, size):
    case = conversation(["a dog"] * size, np.full((size, 2), np.nan))
    evidence = reader().read(*case[:2], UNLIMITED, case[2])
    assert evidence.ids == case[1].ids
    assert reader(grounding="pointer").read(*case[:2], UNLIMITED, case[2]).ids == ()


@pytest.mark.parametrize(
    "parameters",
    [{"n": 0}, {"prefilter": 0}, {"most": 0}, {"threshold": 0.0}, {"grounding": "x"}],
)
@pytest.mark.parametrize("reader", [FcaMs, FcaMsLattice])
def test_a_parameter_out_of_range_is_refused_by_name(reader, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        reader(**parameters)


def test_grounding_needs_no_selection():
    query, pool, access = conversation([], np.zeros((0, 2)))
    scene = looked_at(query, pool, access, 50, rules(query.text), encode=False)
    assert grounded(scene, [], pool, UNLIMITED, access, "overlap", 0.25).stop_reason == "empty_pool"
