"""The same-store controls and locality do what their descriptions say."""

import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from readers.com import ComFlat
from readers.ember import EmberFlat, facts, superseded
from readers.flat import AMemFlat, Mem0Flat
from readers.locality import Locality, beside, better_of_session
from readers.memcompile import MemcompileFlat, addressed, dated, packets, requirements
from readers.types import Budget, Note, Pool, Query
from tasks.access import Library, QuestionAccess

UNLIMITED = Budget()
WORDS = ["lake", "dog", "paint", "Ada", "Bo", "2022", "pizza", "went"]
thorough = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))

pytestmark = pytest.mark.filterwarnings("error")


# Builders ------------------------------------------------------------------------------------------------


def make_notes(texts, *, sessions=None, speakers=None, times=None, tokens=None):
    size = len(texts)
    return [
        Note(
            f"r{i}",
            texts[i],
            speakers[i] if speakers else "Ada",
            sessions[i] if sessions else 0,
            i,
            times[i] if times else math.nan,
            tokens[i] if tokens else 10,
        )
        for i in range(size)
    ]


def make_access(notes, embed=None, width=2):
    embed = embed or (lambda texts: np.ones((len(texts), width), np.float32))
    return QuestionAccess(Library(notes, embed), UNLIMITED)


def make_pool(notes, *, places=None, native=None, dense=None, lexical=None, vectors=None):
    """A pool of the notes at `places`, in that order."""
    places = list(range(len(notes))) if places is None else list(places)
    size = len(places)
    held = [notes[place] for place in places]
    speakers = {name: code for code, name in enumerate(dict.fromkeys(note.speaker for note in notes))}
    return Pool(
        ids=tuple(note.id for note in held),
        native=np.linspace(1, 0, size) if native is None else np.asarray(native, float),
        dense=np.linspace(1, 0, size) if dense is None else np.asarray(dense, float),
        lexical=np.linspace(1, 0, size) if lexical is None else np.asarray(lexical, float),
        vectors=np.zeros((size, 2), np.float32) if vectors is None else np.asarray(vectors, np.float32),
        tokens=np.array([note.tokens for note in held], np.int32),
        positions=np.array([note.position for note in held], np.int32),
        sessions=np.array([note.session for note in held], np.int32),
        speakers=np.array([speakers[note.speaker] for note in held], np.int32),
        times=np.array([note.time for note in held], float),
    )


def ask(text="", vector=(1.0, 0.0), seed=0, id="q"):
    return Query(id, text, np.asarray(vector, np.float32), seed=seed)


texts_of_words = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=12)


# Mem0: BM25-lite -----------------------------------------------------------------------------------------


@thorough
@given(texts_of_words, st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join))
def test_bm25_lite_is_the_sum_of_tf_times_smoothed_idf(texts, question):
    documents = [re.findall(r"[a-z0-9']+", text.lower()) for text in texts]
    scores = [
        sum(
            document.count(token) * math.log((len(texts) + 1) / (sum(token in other for other in documents) + 1))
            for token in re.findall(r"[a-z0-9']+", question.lower())
        )
        for document in documents
    ]
    notes = make_notes(texts)
    read = Mem0Flat().read(ask(question), make_pool(notes), UNLIMITED, make_access(notes)).ids
    got = [scores[int(id[1:])] for id in read]
    assert sorted(read) == sorted(note.id for note in notes)
    np.testing.assert_allclose(got, sorted(scores, reverse=True), atol=1e-9)


@thorough
@given(texts_of_words.filter(any), st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join))
def test_okapi_is_rank_bm25(texts, question):
    rival = BM25Okapi([re.findall(r"[a-z0-9']+", text.lower()) for text in texts])
    scores = rival.get_scores(re.findall(r"[a-z0-9']+", question.lower()))
    notes = make_notes(texts)
    read = Mem0Flat("okapi").read(ask(question), make_pool(notes), UNLIMITED, make_access(notes)).ids
    np.testing.assert_allclose([scores[int(id[1:])] for id in read], np.sort(scores)[::-1], atol=1e-9)


def test_mem0_reads_beyond_the_pool_without_a_call_and_ties_go_to_the_older():
    notes = make_notes(["a dog", "a lake", "the lake", "no"])
    access = make_access(notes)
    evidence = Mem0Flat().read(ask("which lake"), make_pool(notes, places=[0]), Budget(records=3), access)
    assert evidence.ids == ("r1", "r2", "r0")
    assert (evidence.calls, access.calls, evidence.stop_reason) == (0, 0, "budget")


def test_the_date_of_a_record_is_among_its_words_where_asked_for():
    times = [86400.0 * 31, 0.0]  # 1 February and 1 January 1970
    notes = make_notes(["x", "x"], times=times)
    reads = [
        Mem0Flat(dated=dated).read(ask("in February?"), make_pool(notes), UNLIMITED, make_access(notes)).ids
        for dated in (True, False)
    ]
    later = make_notes(["x", "x"], times=times[::-1])
    assert reads == [("r0", "r1"), ("r0", "r1")]
    assert Mem0Flat().read(ask("in February?"), make_pool(later), UNLIMITED, make_access(later)).ids == ("r1", "r0")


def test_a_mem_is_the_pool_by_cosine():
    notes = make_notes(["x"] * 4)
    pool = make_pool(notes, dense=[0.1, np.nan, 0.9, 0.1])
    assert AMemFlat().read(ask(), pool, UNLIMITED, make_access(notes)).ids == ("r2", "r0", "r3", "r1")


# CoM: chains ---------------------------------------------------------------------------------------------


def naive_com(query, pool, texts, embed, k, *, context, anchors, candidates, beta):
    """Chains in plain Python; all followed to their end."""
    rank = sorted(range(len(pool)), key=lambda i: (-pool.dense[i], i))
    near, found = sorted(rank[:candidates]), []
    for anchor in rank[: min(anchors, candidates)]:
        members, previous = [anchor], pool.dense[anchor]
        while True:
            if len(members) == 1 or context == "last":
                ctx = pool.vectors[members[-1]].astype(float)
            elif context == "average":
                ctx = np.sum([pool.vectors[i].astype(float) for i in members], axis=0)
                ctx = ctx / (np.sqrt((ctx**2).sum()) or 1)
            else:
                ctx = embed([" ".join(texts[i] for i in members)])[0].astype(float)
            best, pick = -math.inf, None
            for i in near:
                score = pool.dense[i] * float(np.dot(pool.vectors[i].astype(float), ctx))
                if i not in members and score > best + 1e-9:
                    best, pick = score, i
            if pick is None or best < beta * previous:
                break
            members.append(pick)
            previous = best
        found += members
    return tuple(pool.ids[i] for i in dict.fromkeys(found + rank))[:k]


def hashed_embed(texts):
    rows = [np.random.default_rng(list(text.encode()) or [0]).normal(size=3) for text in texts]
    return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


@pytest.mark.parametrize("context", ["text", "last", "average"])
@thorough
@given(st.integers(0, 2**32 - 1), st.integers(0, 14), st.integers(0, 14), st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_chains_agree_with_a_naive_twin(context, seed, size, k, beta):
    rng = np.random.default_rng(seed)
    vectors = np.abs(rng.normal(size=(size, 3))) + 0.1
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    query = ask(vector=hashed_embed(["q"])[0])
    notes = make_notes([f"text {i}" for i in range(size)])
    pool = make_pool(notes, dense=vectors.astype(float) @ query.vector.astype(float), vectors=vectors.reshape(-1, 3))
    parameters = {"context": context, "anchors": 3, "candidates": 8, "beta": beta}
    access = make_access(notes, hashed_embed)
    read = ComFlat(**parameters).read(query, pool, Budget(records=k), access).ids
    assert read == naive_com(query, pool, [note.text for note in notes], hashed_embed, k, **parameters)


def test_a_chain_follows_its_context_until_blocked():
    # Cosines with the question .9, .8, .6, .5; r2 lies beside r0, r1 apart from both.
    notes = make_notes(["a", "b", "c", "d"])
    pool = make_pool(notes, dense=[0.9, 0.8, 0.6, 0.5], vectors=[(1, 0), (0, 1), (0.8, 0.6), (0.6, 0.8)])
    evidence = ComFlat("last", anchors=1).read(ask(), pool, UNLIMITED, make_access(notes))
    # From r0: r2 .6 x .8 = .48 >= .45; then r3 .5 x .96 = .48 >= .24; then r1 .8 x .8 = .64.
    assert evidence.ids == ("r0", "r2", "r3", "r1")
    blocked = ComFlat("last", anchors=1, beta=0.6).read(ask(), pool, UNLIMITED, make_access(notes))
    assert blocked.ids == ("r0", "r1", "r2", "r3")
    assert [step.returned for step in blocked.trace] == [("r0",)]
    assert evidence.trace[0].kept == evidence.ids


def test_only_the_text_context_embeds_and_never_for_a_chain_of_one():
    seen = []

    def embed(texts):
        seen.extend(texts)
        return np.ones((len(texts), 2), np.float32)

    notes = make_notes(["a", "b", "c"])
    pool = make_pool(notes, dense=[0.9, 0.8, 0.7], vectors=[(1, 0)] * 3)
    for context in ("last", "average"):
        ComFlat(context).read(ask(), pool, UNLIMITED, make_access(notes, embed))
    assert seen == []
    ComFlat(anchors=1).read(ask(), pool, UNLIMITED, make_access(notes, embed))
    assert seen == ["a b"]


# MemCompile: packets -------------------------------------------------------------------------------------


def test_a_packet_is_a_hit_with_the_supporting_turns_beside_it_in_its_session():
    notes = make_notes(["x"] * 5, sessions=[0, 0, 0, 1, 1])
    pool = make_pool(notes, places=[1, 3, 2, 0])
    everyone = np.ones(4, bool)
    assert packets(pool, everyone, 2).tolist() == [[0, 3, 2], [1, 4, 4], [2, 0, 4], [3, 4, 0]]
    assert packets(pool, everyone, 1).tolist() == [[0, 3, 4], [1, 4, 4], [2, 0, 4], [3, 4, 0]]
    assert packets(pool, np.array([False, True, True, True]), 2)[3].tolist() == [3, 4, 4]


def test_a_key_counts_only_where_it_matches():
    notes = make_notes(["x", "Bo said", "x"], speakers=["Ada", "Ada", "Bo"])
    got = addressed("What did Bo say?", make_pool(notes), tuple(notes), 60)
    np.testing.assert_allclose(got, [1 / 61, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])


def test_dates_match_by_year_month_and_day():
    at = [np.datetime64(day, "s").astype(float) for day in ("2023-05-07", "2023-05-08", "2022-05-07", "2023-06-07")]
    times = np.array([*at, np.nan])
    assert dated("on 7 May, 2023", times).tolist() == [3, 2, 2, 1, 0]
    assert dated("in May", times).tolist() == [1, 1, 1, 0, 0]
    assert dated("who?", times).tolist() == [0, 0, 0, 0, 0]


def test_requirements_are_the_words_of_the_question_that_at_most_half_of_the_pool_holds():
    notes = make_notes(["ada lake", "ada dog", "ada", "bo dog"])
    holds, weights = requirements("Did Ada see the dog by the lake or a cat?", tuple(notes))
    assert holds.T.tolist() == [[False, True, False, True], [True, False, False, False]]  # dog, lake
    np.testing.assert_allclose(weights, np.log1p([2, 4]) / np.log1p([2, 4]).sum())


def test_packets_prefer_what_is_not_covered_yet():
    texts = ["dog one", "dog two", "nothing", "lake here", "other", "more"]
    notes = make_notes(texts, sessions=list(range(6)))
    question = ask("dog and lake")
    read = MemcompileFlat(redundancy=0.0, coverage=9.0).read
    assert read(question, make_pool(notes), Budget(records=2), make_access(notes)).ids == ("r3", "r0")
    alone = MemcompileFlat(redundancy=0.0, coverage=0.0).read
    assert alone(question, make_pool(notes), Budget(records=2), make_access(notes)).ids == ("r0", "r1")


def test_a_requirement_counts_for_the_first_packet_that_holds_it_only():
    notes = make_notes(["x", "lake", "lake", "dog"], sessions=list(range(4)))
    read = MemcompileFlat(redundancy=0.0, coverage=9.0).read
    evidence = read(ask("dog or lake"), make_pool(notes), UNLIMITED, make_access(notes))
    assert evidence.ids == ("r3", "r1", "r0", "r2")


def test_redundancy_is_the_largest_cosine_with_the_hits_before():
    notes = make_notes(["x"] * 4, sessions=list(range(4)))
    pool = make_pool(notes, vectors=[(1, 0), (1, 0), (0, 1), (0.6, 0.8)])
    # Relevance 1, .66, .33, 0 (nearly); after r0 less 1, 1, 0, .6: r2; then r1 and r3 stand at 0, natively.
    read = MemcompileFlat(redundancy=1.0).read
    assert read(ask(), pool, UNLIMITED, make_access(notes)).ids == ("r0", "r2", "r1", "r3")


def test_cost_divides_by_the_tokens_of_the_packet():
    notes = make_notes(["x"] * 3, sessions=[0, 1, 2], tokens=[100, 10, 40])
    reads = [
        MemcompileFlat(redundancy=0.0, cost=cost).read(ask(), make_pool(notes), UNLIMITED, make_access(notes)).ids
        for cost in (0.0, 1.0)
    ]
    assert reads == [("r0", "r1", "r2"), ("r1", "r0", "r2")]  # about 1, .5, 0 a hit


def test_a_neighbour_that_holds_a_requirement_comes_with_its_hit():
    notes = make_notes(["a", "b", "c", "the lake", "d"])
    pool = make_pool(notes, places=[2, 0, 1, 4, 3])
    reads = [
        MemcompileFlat(coverage=0.0, neighbours=most).read(ask("lake"), pool, Budget(records=2), make_access(notes)).ids
        for most in (2, 0)
    ]
    assert reads == [("r2", "r3"), ("r2", "r0")]


def test_memcompile_keeps_its_own_bound_of_tokens():
    notes = make_notes(["x"] * 9, tokens=[30] * 9)
    read = MemcompileFlat(tokens=100).read
    assert len(read(ask(), make_pool(notes), UNLIMITED, make_access(notes)).ids) == 3
    assert len(read(ask(), make_pool(notes), Budget(tokens=60), make_access(notes)).ids) == 2


def test_a_full_cell_sends_the_rest_of_its_session_behind_all_packets():
    notes = make_notes(["x"] * 4, sessions=[0, 0, 0, 1])
    read = MemcompileFlat(cell=1).read
    assert read(ask(), make_pool(notes), UNLIMITED, make_access(notes)).ids == ("r0", "r3", "r1", "r2")


# EMBER: written before the question ----------------------------------------------------------------------


@pytest.mark.parametrize("writer", ["utility", "recency", "random"])
@thorough
@given(texts_of_words, st.integers(0, 60), st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join))
def test_what_is_kept_does_not_depend_on_the_question_and_fits_the_capacity(writer, texts, capacity, question):
    notes = make_notes(texts, tokens=[1 + i % 9 for i in range(len(texts))])
    reader = EmberFlat(capacity=capacity, writer=writer)
    first, second = (
        reader.read(ask(text, id=text), make_pool(notes, places=places), UNLIMITED, make_access(notes)).ids
        for text, places in [(question, range(len(texts))), ("other", range(len(texts))[::-1])]
    )
    assert set(first) == set(second) == reader.kept(make_access(notes), 0)
    assert sum(notes[int(id[1:])].tokens for id in first) <= capacity


@thorough
@given(texts_of_words, st.integers(0, 60))
def test_the_lazy_greedy_is_the_greedy(texts, capacity):
    notes = make_notes(texts, tokens=[1 + i % 9 for i in range(len(texts))])
    bags = [set(re.findall(r"\w+", text.lower())) for text in texts]
    count = Counter(word for bag in bags for word in bag)
    idf = {word: math.log(len(texts) / count[word]) / math.log(max(2, len(texts))) for word in count}
    left, kept, covered = capacity, [], set()

    def value(i):
        known, new = (math.fsum(idf[word] for word in words) for words in (bags[i], bags[i] - covered))
        return (facts(texts[i]) + known + new) / notes[i].tokens

    while fitting := [i for i in range(len(texts)) if i not in kept and notes[i].tokens <= left]:
        kept.append(max(fitting, key=lambda i: (value(i), -i)))
        covered |= bags[kept[-1]]
        left -= notes[kept[-1]].tokens
    reader = EmberFlat(capacity=capacity, supersede=2.0)
    assert reader.kept(make_access(notes), 0) == {f"r{i}" for i in kept}


def test_the_newest_are_kept_by_recency_and_reading_ranks_them():
    notes = make_notes(["a", "b", "c", "d"])
    pool = make_pool(notes, dense=[0.9, 0.8, 0.1, 0.5], lexical=[0, 0, 9, 1])
    read = [
        EmberFlat(20, "recency", by).read(ask(), pool, UNLIMITED, make_access(notes)).ids
        for by in ("dense", "lexical", "native")
    ]
    assert read == [("r3", "r2"), ("r2", "r3"), ("r2", "r3")]


def test_a_random_memory_is_one_for_all_questions_of_a_seed():
    notes = make_notes(["x"] * 40)
    reader = EmberFlat(100, "random")
    same, again, other = (
        frozenset(reader.read(ask(id=id, seed=seed), make_pool(notes), UNLIMITED, make_access(notes)).ids)
        for id, seed in (("q1", 1), ("q2", 1), ("q1", 2))
    )
    assert same == again != other
    assert len(same) == 10


def test_facts_are_names_numbers_dates_and_the_first_person():
    assert facts("Ada: I went to Paris with Kiwi in May, 3 dogs in my car.") == 2 + 1 + 1 + 2
    assert facts("Ada: nice, you may, cool!") == 0


@pytest.mark.parametrize(
    ("older", "newer", "goes"),
    [
        ("my dog Rex weighs 30 kilos", "my dog Rex weighs 32 kilos", True),
        ("my dog Rex weighs 30 kilos", "my dog Rex weighs 30 kilos", False),
        ("my dog Rex weighs 30 kilos", "my cat Tom weighs 32 kilos", False),
        ("my dog eats cheese pizza daily", "my dog never eats cheese pizza daily", True),
        ("dog weighs 30 kilos", "dog weighs 32 kilos", True),
        ("my dog Rex weighs kilos", "my dog Rex weighs 32 kilos", False),
    ],
)
def test_a_newer_record_supersedes_what_it_contradicts(older, newer, goes):
    assert superseded([older, newer], ["Ada", "Ada"], 0.6) == ({0} if goes else set())
    assert superseded([older, newer], ["Ada", "Bo"], 0.6) == set()


@thorough
@given(st.lists(st.lists(st.sampled_from([*WORDS, "7", "8", "never"]), max_size=5).map(" ".join), max_size=10))
def test_the_prefix_filter_loses_no_contradiction(texts):
    bags = [set(text.lower().split()) for text in texts]
    expected = set()
    for new in range(len(texts)):
        for old in range(new):
            union = bags[old] | bags[new]
            close = union and 10 * len(bags[old] & bags[new]) >= 6 * len(union)
            left, right = ({w for w in bags[i] if w.isdigit()} for i in (old, new))
            denial = ("never" in bags[old]) != ("never" in bags[new])
            if close and (denial or (left - right and right - left)):
                expected.add(old)
    assert superseded(texts, ["Ada"] * len(texts), 0.6) == expected


# Locality ------------------------------------------------------------------------------------------------


def naive_locality(reader, question, pool, notes, k):
    """The score record by record, the choice one at a time."""
    low, high = min(pool.native), max(pool.native)
    h = [(score - low) / (high - low) if high > low else 0.0 for score in pool.native]
    held = {(int(s), int(p)): h[i] for i, (s, p) in enumerate(zip(pool.sessions, pool.positions, strict=True))}

    def neighbour(i, distance):
        near = [(int(pool.sessions[i]), int(pool.positions[i]) + step) for step in (-distance, distance)]
        return max(held.get(place, 0.0) for place in near)

    asked = {word for word in re.findall(r"[a-z0-9]+", question.lower()) if word not in ("did", "the", "and")}
    bags = {}
    for note in notes:
        bags.setdefault(note.session, []).extend(re.findall(r"[a-z0-9]+", note.text.lower()))
    mean = max(1, sum(map(len, bags.values())) / len(bags)) if bags else 1
    bm25 = {}
    for session, bag in bags.items():
        bm25[session] = 0.0
        for word in asked:
            df = sum(word in other for other in bags.values())
            idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
            tf = bag.count(word)
            bm25[session] += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(bag) / mean))
    spread = max(bm25.values(), default=0) - min(bm25.values(), default=0)
    prior = {s: (bm25[s] - min(bm25.values())) / spread if spread > 1e-12 else 0.0 for s in bm25}
    named = {note.speaker for note in notes if note.speaker.lower() in asked}
    speaker = {note.id: note.speaker for note in notes}
    scores = [
        h[i]
        + reader.rho * max(neighbour(i, 1), reader.gamma * neighbour(i, 2))
        + reader.sigma * prior[int(pool.sessions[i])]
        + reader.epsilon * (len(named) == 1 and speaker[pool.ids[i]] in named)
        for i in range(len(pool))
    ]
    taken, count = [], Counter()
    while len(taken) < min(k, len(pool)):
        now = {i: scores[i] - reader.delta * count[pool.sessions[i]] for i in range(len(pool)) if i not in taken}
        pick = next(i for i in sorted(now) if now[i] >= max(now.values()) - 1e-9)
        taken.append(pick)
        count[pool.sessions[pick]] += 1
    return tuple(pool.ids[i] for i in taken)


@st.composite
def conversations(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.integers(1, 25))
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 6))) for _ in range(size)]
    sessions = np.cumsum(rng.random(size) < 0.25).tolist()
    notes = make_notes(texts, sessions=sessions, speakers=[str(rng.choice(["Ada", "Bo"])) for _ in range(size)])
    places = rng.permutation(size)[: rng.integers(1, size + 1)].tolist()
    native = np.sort(rng.normal(size=len(places)))[::-1]
    question = " ".join(rng.choice([*WORDS, "did", "the"], rng.integers(0, 5)))
    return notes, make_pool(notes, places=places, native=native), question


@pytest.mark.parametrize(
    "reader",
    [
        Locality(),
        Locality(rho=0.7, gamma=0.6),
        Locality(sigma=0.4),
        Locality(epsilon=0.3),
        Locality(rho=0.0, delta=0.1),
        Locality(gamma=0.5, sigma=0.5, epsilon=0.2, delta=0.05),
    ],
    ids=str,
)
@thorough
@given(conversations(), st.integers(0, 30))
def test_locality_agrees_with_a_naive_twin(reader, conversation, k):
    notes, pool, question = conversation
    read = reader.read(ask(question), pool, Budget(records=k), make_access(notes)).ids
    assert read == naive_locality(reader, question, pool, notes, k)


@thorough
@given(conversations())
def test_without_weights_locality_is_the_native_order(conversation):
    notes, pool, question = conversation
    assert Locality(rho=0.0).read(ask(question), pool, UNLIMITED, make_access(notes)).ids == pool.ids


@thorough
@given(conversations(), st.sampled_from([0.01, 3.0]), st.sampled_from([-2.0, 5.0]))
def test_locality_does_not_depend_on_the_scale_of_the_native_score(conversation, factor, shift):
    notes, pool, question = conversation
    reader = Locality(gamma=0.5, sigma=0.5, epsilon=0.2)
    scaled = Pool(**(vars(pool) | {"native": pool.native * factor + shift}))
    reads = [reader.read(ask(question), p, UNLIMITED, make_access(notes)).ids for p in (pool, scaled)]
    assert reads[0] == reads[1]


def test_a_neighbour_counts_in_its_session_only_and_the_second_ring_by_gamma():
    scores, positions = np.array([1.0, 0.6, 0.2, 0.0]), np.array([5, 6, 7, 8])
    sessions = np.array([0, 0, 0, 1])
    np.testing.assert_allclose(beside(scores, positions, sessions, 0.0), [0.6, 1.0, 0.6, 0.0])
    np.testing.assert_allclose(beside(scores, positions, sessions, 0.9), [0.6, 1.0, 0.9, 0.0])
    np.testing.assert_allclose(beside(scores, positions[[3, 1, 2, 0]], sessions, 0.0), [0.2, 0.2, 1.0, 0.0])


def test_a_low_record_beside_a_high_one_rises():
    notes = make_notes(["x"] * 6, sessions=[0, 0, 0, 1, 1, 1])
    pool = make_pool(notes, places=[1, 3, 2, 5], native=[1.0, 0.5, 0.2, 0.0])
    # h 1, .5, .2, 0: r1 1 + .5 x .2, r3 .5, r2 .2 + .5 x 1, r5 0
    assert Locality().read(ask(), pool, UNLIMITED, make_access(notes)).ids == ("r1", "r2", "r3", "r5")


@pytest.mark.parametrize(
    ("question", "expected"),
    [("Where is Bo?", "r1"), ("Where are Ada and Bo?", "r0"), ("Where?", "r0"), ("Where is Bob?", "r0")],
)
def test_the_speaker_counts_where_exactly_one_is_named(question, expected):
    notes = make_notes(["x", "y"], speakers=["Ada", "Bo"], sessions=[0, 1])
    read = Locality(rho=0.0, epsilon=2.0).read(ask(question), make_pool(notes), UNLIMITED, make_access(notes))
    assert read.ids[0] == expected


def test_two_named_speakers_of_three_count_for_none():
    notes = make_notes(["x", "y", "z"], speakers=["Cy", "Ada", "Bo"], sessions=[0, 1, 2])
    read = Locality(rho=0.0, epsilon=2.0).read
    assert read(ask("Ada or Bo?"), make_pool(notes), UNLIMITED, make_access(notes)).ids[0] == "r0"
    assert read(ask("Ada or he?"), make_pool(notes), UNLIMITED, make_access(notes)).ids[0] == "r1"


def test_a_record_whose_score_is_nan_comes_last_and_lends_nothing():
    notes = make_notes(["x"] * 3)
    pool = make_pool(notes, native=[np.nan, 1.0, 0.5])
    assert Locality().read(ask(), pool, UNLIMITED, make_access(notes)).ids == ("r1", "r2", "r0")


def test_better_ones_of_a_session_are_counted_with_ties_native():
    assert better_of_session(np.array([1.0, 3.0, 1.0, 2.0]), np.array([0, 0, 0, 1])).tolist() == [1, 0, 2, 0]


def test_locality_issues_no_call_and_stays_in_the_pool():
    notes = make_notes(["lake"] * 9, sessions=[0, 0, 0, 1, 1, 1, 2, 2, 2])
    access = make_access(notes)
    pool = make_pool(notes, places=[4, 2])
    read = Locality(gamma=0.5, sigma=0.5, epsilon=0.2, delta=0.1).read(ask("lake"), pool, UNLIMITED, access)
    assert set(read.ids) == set(pool.ids)
    assert (read.calls, access.calls) == (0, 0)


# Parameters ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reader", "parameters"),
    [
        (Mem0Flat, {"formula": "tfidf"}),
        (ComFlat, {"context": "all"}),
        (ComFlat, {"beta": float("nan")}),
        (ComFlat, {"anchors": -1}),
        (MemcompileFlat, {"cost": -1.0}),
        (EmberFlat, {"writer": "oracle"}),
        (EmberFlat, {"by": "gold"}),
        (EmberFlat, {"capacity": -1}),
        (EmberFlat, {"supersede": 0.0}),
        (Locality, {"rho": -0.5}),
        (Locality, {"delta": float("inf")}),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(reader, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        reader(**parameters)
