"""Records are ranked by who can tell and by what a short turn stands beside, as the description says."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readers.speaker_context import SpeakerContext, as_told, talk_of, tellers
from readers.types import Budget, Note, Pool, Query
from tasks.access import Library, QuestionAccess

WORDS = ["i", "my", "you", "lake", "boat", "Ada", "bo", "recommended", "the", "house", "me"]
UNLIMITED = Budget()


def note(place, speaker, text, session=0, tokens=10):
    return Note(f"r{place}", text, speaker, session, place, 0.0, tokens)


def embed(texts):
    """(n, 2) a direction of its own for every text."""
    angles = np.array([sum(place * ord(letter) for place, letter in enumerate(text, 1)) for text in texts], float)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def pool_of(notes, places, dense, lexical):
    """The notes at `places`, in that native order."""
    chosen = [notes[place] for place in places]
    codes = {speaker: code for code, speaker in enumerate(dict.fromkeys(n.speaker for n in notes))}
    return Pool(
        ids=tuple(n.id for n in chosen),
        native=np.linspace(1, 0, len(chosen)),
        dense=np.asarray(dense, float),
        lexical=np.asarray(lexical, float),
        vectors=embed([n.text for n in chosen]),
        tokens=np.array([n.tokens for n in chosen], np.int32),
        positions=np.array([n.position for n in chosen], np.int32),
        sessions=np.array([n.session for n in chosen], np.int32),
        speakers=np.array([codes[n.speaker] for n in chosen], np.int32),
        times=np.zeros(len(chosen)),
    )


def read(reader, question, notes, pool, budget=UNLIMITED):
    library = Library(notes, embed)
    return reader.read(Query("q", question, np.zeros(2, np.float32)), pool, budget, QuestionAccess(library, budget))


def naive_order(reader, question, notes, pool):
    """Record by record, from the description."""

    def deviations(scores):
        mean = sum(scores) / len(scores)
        spread = math.sqrt(sum((score - mean) ** 2 for score in scores) / len(scores))
        return [(score - mean) / spread if spread > 1e-12 else 0.0 for score in scores]

    by_id = {n.id: n for n in notes}
    speakers = list(dict.fromkeys(n.speaker for n in notes))
    told = " ".join("I" if word in speakers else word for word in question.split())
    dense = deviations(pool.dense)
    if reader.retold and told != question:
        cosines = [float(row @ embed([told])[0].astype(float)) for row in pool.vectors.astype(float)]
        dense = deviations([one + other for one, other in zip(dense, deviations(cosines), strict=True)])
    matched = dict(zip(pool.ids, map(sum, zip(dense, deviations(pool.lexical), strict=True)), strict=True))
    rates = {}
    for speaker in speakers:
        said = re.findall(r"[a-z0-9]+", " ".join(n.text for n in notes if n.speaker == speaker).lower())
        rates[speaker] = sum(word in ("i", "me", "my", "mine", "myself") for word in said) / max(1, len(said))
    total = sum(rates.values())
    shares = {speaker: rates[speaker] / total if total else 1 / len(speakers) for speaker in speakers}
    order = sorted(shares.values())
    evenness = order[-2] / order[-1] if len(order) > 1 else 0.0
    asked = re.findall(r"[a-z0-9]+", question.lower())
    named = [speaker for speaker in speakers if speaker.lower() in asked]
    told = dict(shares)
    if named:
        told = {speaker: 1 / len(named) if speaker in named else 0.0 for speaker in speakers}
    elif len(speakers) == 2 and re.search(r"\byou recommended\b", question):
        told = {speakers[0]: shares[speakers[1]], speakers[1]: shares[speakers[0]]}
    scores = []
    for id in pool.ids:
        own = by_id[id]
        need = 40 / (40 + own.tokens)
        usual = [40 / (40 + n.tokens) for n in notes if n.speaker == own.speaker]
        near = 0.0
        for other in pool.ids:
            gap = abs(by_id[other].position - own.position)
            if gap in (1, 2) and by_id[other].session == own.session:
                near += max(0.0, matched[other]) / gap
        scores.append(
            matched[id]
            + reader.speaker * told[own.speaker]
            + reader.context * need * near
            - reader.brief * evenness * (need - sum(usual) / len(usual))
        )
    middle = sum(scores) / len(scores) + 1e-12
    for session in {n.session for n in notes}:
        own = [place for place, id in enumerate(pool.ids) if by_id[id].session == session]
        if own:
            best = max(own, key=lambda place: (scores[place], -place))
            scores[best] += reader.session * (scores[best] > middle)
    return scores


@st.composite
def conversations(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.integers(1, 20))
    sessions = np.cumsum(rng.random(size) < 0.2).tolist()
    notes = [
        note(
            place,
            str(rng.choice(["Ada", "Bo", "Cy"][: draw(st.integers(1, 3))])),
            " ".join(rng.choice(WORDS, rng.integers(0, 8))),
            session,
            int(rng.integers(1, 300)),
        )
        for place, session in enumerate(sessions)
    ]
    places = rng.permutation(size)[: rng.integers(1, size + 1)].tolist()
    pool = pool_of(notes, places, rng.normal(size=len(places)), rng.integers(0, 4, len(places)))
    return notes, pool, " ".join(rng.choice([*WORDS, "what"], rng.integers(0, 5)))


@pytest.mark.parametrize(
    "reader",
    [SpeakerContext(), SpeakerContext(2.0, 0.3, 5.0, 1.5), SpeakerContext(0, 2.0, 0, 0), SpeakerContext(retold=True)],
    ids=str,
)
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(conversations())
def test_the_order_is_that_of_a_naive_twin(reader, conversation):
    notes, pool, question = conversation
    scores = dict(zip(pool.ids, naive_order(reader, question, notes, pool), strict=True))
    got = [scores[id] for id in read(reader, question, notes, pool).ids]
    assert len(got) == len(pool)
    assert all(before >= after - 1e-9 for before, after in pairwise(got))


ASSISTANT = [
    note(0, "user", "user: I moved my boat to the lake."),
    note(1, "assistant", "assistant: Boats on a lake want a cover; Blue Harbour sells good ones."),
    note(2, "user", "user: My sister gave me hers."),
]


@pytest.mark.parametrize(
    ("question", "teller"),
    [
        ("Where did I move my boat?", "user"),
        ("When is the regatta?", "user"),
        ("Which shop was it that you recommended for the cover?", "assistant"),
        ("What did you say about covers?", "assistant"),
        ("Can you suggest a cover for my boat?", "user"),
    ],
)
def test_in_a_store_of_one_who_speaks_of_herself_the_question_says_who_tells(question, teller):
    found = tellers(question, talk_of(ASSISTANT))
    assert max(found, key=found.get) == teller
    assert sum(found.values()) == pytest.approx(1)


def test_a_named_speaker_tells_and_two_named_tell_evenly():
    talk = talk_of([note(0, "Ada Lee", "I sail."), note(1, "Bo", "I row."), note(2, "Cy", "I swim.")])
    assert tellers("Where does Ada sail?", talk) == {"Ada Lee": 1, "Bo": 0, "Cy": 0}
    assert tellers("Do Ada and Bo race?", talk) == {"Ada Lee": 0.5, "Bo": 0.5, "Cy": 0}


def test_evenness_tells_peers_from_a_user_and_an_assistant():
    assert talk_of(ASSISTANT).evenness == 0
    assert talk_of([note(0, "Ada", "I sail."), note(1, "Bo", "I row.")]).evenness == 1
    assert talk_of([note(0, "Ada", "I sail.")]).evenness == 0


def test_a_question_is_retold_as_those_whom_it_names_would_say_it():
    talk = talk_of([note(0, "Ada Lee", "I sail."), note(1, "Bo", "I row."), note(2, "Cy", "I swim.")])
    assert as_told("When did Ada sell Ada’s boat to Bo's aunt?", talk) == "When did I sell my boat to my aunt?"
    assert as_told("Where does Ada Lee sail?", talk) == "Where does I sail?"
    assert as_told("Did Adam see Bobby?", talk) == "Did Adam see Bobby?"
    assert as_told("Where do I sail?", talk) == "Where do I sail?"


def test_a_question_is_embedded_again_only_where_it_is_retold():
    notes, asked = [note(0, "Ada", "I sail."), note(1, "Bo", "I row.")], []
    pool = pool_of(notes, [0, 1], [0.1, 0.2], [1, 2])
    library = Library(notes, lambda texts: asked.extend(texts) or embed(texts))
    for reader, question in (
        (SpeakerContext(), "Where does Ada sail?"),
        (SpeakerContext(retold=True), "Where is the lake?"),
        (SpeakerContext(retold=True), "Where does Ada sail?"),
    ):
        reader.read(Query("q", question, embed([question])[0]), pool, UNLIMITED, QuestionAccess(library, UNLIMITED))
    assert asked == ["Where does I sail?"]


def test_the_best_of_a_session_passes_a_second_of_another_that_scores_less_than_its_lead():
    notes = [note(place, "Ada", "Nothing.", session) for place, session in enumerate([0, 0, 1, 2])]
    pool = pool_of(notes, [0, 1, 2, 3], [2.0, 1.9, 1.8, -5.0], [0] * 4)
    plain = {"context": 0, "brief": 0}
    assert read(SpeakerContext(**plain, session=0), "boat", notes, pool).ids == ("r0", "r1", "r2", "r3")
    # The worst one is the best of its session too, but below the pool's mean.
    assert read(SpeakerContext(**plain, session=9), "boat", notes, pool).ids == ("r0", "r2", "r1", "r3")


def test_a_short_answer_is_raised_by_the_question_before_it_and_a_long_turn_is_not():
    said = ["Where is your boat?", "At home.", "Nothing.", "Where?", "A long story."]
    notes = [
        note(i, "Ada", text, session=i // 3, tokens=t)
        for i, (text, t) in enumerate(zip(said, [9, 9, 9, 9, 4000], strict=True))
    ]
    pool = pool_of(notes, [0, 3, 4, 2, 1], [3, 3, 0, 0, 0], [0] * 5)
    assert read(SpeakerContext(brief=0, session=0), "boat", notes, pool).ids == ("r0", "r3", "r1", "r2", "r4")
    assert read(SpeakerContext(brief=0, context=0, session=0), "boat", notes, pool).ids == pool.ids


@pytest.mark.parametrize("name", ["context", "session"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
def test_a_weight_out_of_range_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        SpeakerContext(**{name: value})


def test_nothing_is_called_and_the_budget_holds():
    pool = pool_of(ASSISTANT, [2, 0], [0.1, 0.2], [1, 2])
    found = read(SpeakerContext(), "Where did I move?", ASSISTANT, pool, Budget(records=1))
    assert (found.ids, found.calls, found.stop_reason) == (("r0",), 0, "budget")
