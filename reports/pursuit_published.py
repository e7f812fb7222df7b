"""What did the MemPursuit paper print where a pursuit's analysis has a number of its own?"""

from collections.abc import Mapping, Sequence

SOURCE = "Feng & Fan, arXiv 2610.15642v1"
SETTING = "The paper reads a Mem0-v3 store of extracted memories, embedded by text-embedding-3-small, with P = 200."

# Section 4.3, figure 3: LoCoMo, 1,536 questions with gold. (budget, measure) to share.
OVERLAP_BENCHMARK, OVERLAP_NOTE = "locomo", f"{SOURCE}, 1,536 LoCoMo questions"
OVERLAP: Mapping[tuple[str, str], float] = {
    ("k10", "replaced"): 0.708,
    ("k10", "hybrid session recall"): 0.829,
    ("k10", "mem_pursuit session recall"): 0.903,
    ("k10", "hybrid complete sessions"): 0.771,
    ("k10", "mem_pursuit complete sessions"): 0.845,
    ("k20", "replaced"): 0.645,
    ("k20", "hybrid session recall"): 0.913,
    ("k20", "mem_pursuit session recall"): 0.948,
    ("k20", "hybrid complete sessions"): 0.862,
    ("k20", "mem_pursuit complete sessions"): 0.903,
}
ADAPTIVE_RECORDS = 15.65  # figure 4(b), LoCoMo
PREFERENCE_QUESTIONS, PREFERENCE_COMPARISONS = 136, 381  # figure 8, LongMemEval

DIFFERS: Mapping[str, Sequence[str]] = {
    "overlap": (
        "The measures are the paper's: share of hybrid's records replaced, mean share of the gold sessions found, and "
        "share of questions with all of them. A session is found by any record made from one of its turns.",
    ),
    "curve": (
        "The paper plots the judged accuracy of GPT-4o-mini's answers, where fewer distractors help as well; here the "
        "evidence itself is measured, and nothing is answered or judged. One path gives every prefix in both.",
        f"Published for the adaptive point: {ADAPTIVE_RECORDS} records on average at 85.1 % judged accuracy; the "
        "largest size that was allowed is not printed. A judged accuracy has no place beside a share of evidence.",
    ),
    "reconstruction": (
        "The paper prints no number for figure 7; it says that gold has the lower residual on many questions.",
        "Gold records are all that were made from an annotated turn, in the pool or not. How the paper found the gold "
        "memories of its store is not said.",
    ),
    "preference": (
        f"The paper uses LongMemEval: {PREFERENCE_QUESTIONS} questions, {PREFERENCE_COMPARISONS} comparisons, more "
        "questions above 0 than below; it prints no mean and no share.",
        "There a Qwen3.5-4B judge picks the memories of annotated sessions that hold an answer fact, and repeated "
        "facts are dropped by quoted words and similarity. Here annotated turns are the evidence: no judge is asked, "
        "and two gold turns that say the same are two facts.",
        "The comparator is chosen by its query cosine, so by cosine alone the difference is below 0 unless gold ranks "
        "first; what the held record adds to it is the last column.",
        "Its condition, gold in two or more sessions that are all in the pool, is the first group; its choice of "
        "question kinds is not applied.",
    ),
}
