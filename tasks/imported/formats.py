"""What the search results of other memory systems say, as candidates in their order."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from storage.digests import digest, short

Item = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """One candidate as a system returned it. `scored` is the kind of `score`; a group is expanded together."""

    id: str
    text: str
    kind: str
    score: float | None = None
    scored: str = "none"
    speaker: str | None = None
    at: str | None = None
    vector: Sequence[float] | None = None
    turns: tuple[str, ...] = ()
    channels: tuple[str, ...] = ("semantic",)
    group: str | None = None
    more: Item = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """One system's search results: `read` gives the candidates, best first; `resident` (kind, text) always shown."""

    system: str
    shape: str
    read: Callable[[Any], list[Found]]
    resident: Callable[[Any], list[tuple[str, str]]] = lambda results: []


def light_mem(points: Sequence[Item]) -> list[Found]:
    """Cosine, higher is better; a vector where it was asked for."""
    return _each_once(
        Found(
            id=str(point["id"]),
            text=point["payload"]["memory"],
            kind="fact",
            score=point.get("score"),
            scored="cosine",
            speaker=point["payload"].get("speaker_name"),
            at=point["payload"].get("time_stamp"),
            vector=point.get("vector"),
            turns=_turns(point["payload"]),
        )
        for point in points
    )


def simple_mem(channels: Mapping[str, Sequence[Sequence[Item]]]) -> list[Found]:
    """No scores, since the system's call drops them: the rank is the order of the union, each entry once."""
    return _each_once(
        Found(
            id=entry["entry_id"],
            text=entry["lossless_restatement"],
            kind="fact",
            at=entry.get("timestamp"),
            vector=entry.get("vector"),
            turns=_turns(entry),
            channels=(channel,),
        )
        for channel, searches in channels.items()
        for entries in searches
        for entry in entries
    )


def a_mem(notes: Sequence[Item]) -> list[Found]:
    """Cosine, or Chroma's distance, of which lower is better; a linked note has neither and follows as it came."""
    return _each_once(
        Found(
            id=str(note["id"]),
            text=_noted(note),
            kind="note",
            score=note.get("distance", note.get("score")),
            scored="distance" if "distance" in note else "cosine" if "score" in note else "none",
            at=note.get("timestamp"),
            vector=note.get("embedding"),
            turns=_turns(note),
            channels=("linked",) if note.get("linked") else ("semantic",),
        )
        for note in notes
    )


def memory_bank(seeds: Sequence[Item]) -> list[Found]:
    """FAISS's L2, lower is better. A budget counts seeds; the chunks that a seed brings along stand in its text."""
    found = _each_once(
        Found(
            id=str(seed["index"]),
            text="\n".join([seed["chunk"], *seed.get("expansion", [])]),
            kind="chunk",
            score=seed["score"],
            scored="l2",
            at=seed.get("date"),
            vector=seed.get("embedding"),
            turns=_turns(seed),
            group=seed.get("date"),
        )
        for seed in seeds
    )
    return sorted(found, key=lambda seed: seed.score or 0.0)


def memory_os(results: Item) -> list[Found]:
    """Pages by dot product, then what is known of user and agent, which has no score of its own."""
    pages = [
        Found(
            id=page["page_id"],
            text=f"User: {page['user_input']}\nAgent: {page['agent_response']}",
            kind="page",
            score=page.get("score"),
            scored="dot" if page.get("score") is not None else "none",
            at=page.get("timestamp"),
            vector=page.get("page_embedding"),
            turns=_turns(page),
        )
        for page in results["retrieved_pages"]
    ]
    facts = [
        Found(
            id=f"{name}-{short(digest(fact['knowledge']))}",
            text=fact["knowledge"],
            kind="fact",
            at=fact.get("timestamp"),
            vector=fact.get("knowledge_embedding"),
            channels=(name,),
        )
        for name in ("user_knowledge", "assistant_knowledge")
        for fact in results.get(f"retrieved_{name}", ())
    ]
    return _each_once([*pages, *facts])


def memory_os_resident(results: Item) -> list[tuple[str, str]]:
    """The profile, then the short-term memory, oldest first."""
    profile = [("profile", results["user_profile"])] if results.get("user_profile") else []
    recent = results.get("short_term_memory", ())
    return profile + [("summary", f"User: {page['user_input']}\nAgent: {page['agent_response']}") for page in recent]


def mem_os(speakers: Mapping[str, Item]) -> list[Found]:
    """The lists of both speakers' mirrored stores merged by relativity; what is in both stands once, in both channels.

    `speakers`: channel → reply of `/product/search`. Higher relativity is better.
    """
    found = _each_once(
        Found(
            id=memory["id"],
            text=memory["memory"],
            kind="fact",
            score=memory["metadata"].get("relativity"),
            scored="hybrid" if memory["metadata"].get("relativity") is not None else "none",
            at=memory["metadata"].get("created_at"),
            vector=memory["metadata"].get("embedding"),
            turns=tuple(source["message_id"] for source in memory["metadata"].get("sources") or () if _named(source)),
            channels=(channel,),
        )
        for channel, reply in speakers.items()
        for cube in reply["text_mem"]
        for memory in cube["memories"]
    )
    return sorted(found, key=lambda item: (item.score is None, -(item.score or 0.0)))


def mem_os_resident(speakers: Mapping[str, Item]) -> list[tuple[str, str]]:
    """Preferences: they are shown whatever is selected."""
    cubes = [cube for reply in speakers.values() for cube in reply.get("pref_mem", ())]
    said = [memory["memory"] for cube in cubes for memory in cube["memories"]]
    return [("profile", text) for text in dict.fromkeys(said)]


FORMATS: dict[str, Format] = {
    "lightmem": Format("LightMem", "[{id, score, payload: {memory, time_stamp, speaker_name}, vector}]", light_mem),
    "simplemem": Format(
        "SimpleMem",
        "{semantic|keyword|structured: [[{entry_id, lossless_restatement, timestamp, vector}]]}",
        simple_mem,
    ),
    "a_mem": Format(
        "A-Mem", "[{id, content, context, keywords, tags, timestamp, score|distance, embedding, linked}]", a_mem
    ),
    "memorybank": Format("MemoryBank", "[{index, chunk, date, score, embedding, expansion: [text]}]", memory_bank),
    "memoryos": Format(
        "MemoryOS",
        "{retrieved_pages: [{page_id, user_input, agent_response, timestamp, score, page_embedding}], "
        "retrieved_user_knowledge, retrieved_assistant_knowledge: [{knowledge, timestamp}], user_profile, "
        "short_term_memory: [{user_input, agent_response}]}",
        memory_os,
        memory_os_resident,
    ),
    "memos": Format(
        "MemOS",
        "{speaker_a|speaker_b: {text_mem: [{memories: [{id, memory, metadata: {relativity, embedding, sources, "
        "created_at}}]}], pref_mem}}",
        mem_os,
        mem_os_resident,
    ),
}
"""Name → the system and the shape of what its search returned for one question."""


def _each_once(found: Iterable[Found]) -> list[Found]:
    """Each id at its first place, with the channels of all its places and the best of its scores."""
    kept: dict[str, Found] = {}
    for item in found:
        if item.id not in kept:
            kept[item.id] = item
            continue
        held = kept[item.id]
        best = held if _better(held, item) else item
        channels = tuple(dict.fromkeys([*held.channels, *item.channels]))
        kept[item.id] = replace(held, channels=channels, score=best.score, scored=best.scored)
    return list(kept.values())


def _better(held: Found, item: Found) -> bool:
    if item.score is None or held.score is None:
        return item.score is None
    return held.score <= item.score if held.scored in ("l2", "distance") else held.score >= item.score


def _noted(note: Item) -> str:
    """A note as A-Mem shows it to its answerer: the content, then what was derived from it."""
    derived = [
        f"{name}: {', '.join(value) if isinstance(value, list) else value}"
        for name in ("context", "keywords", "tags")
        if (value := note.get(name))
    ]
    return f"{note['content']} ({'; '.join(derived)})" if derived else str(note["content"])


def _turns(item: Item) -> tuple[str, ...]:
    """Turns that an item was made from, where whoever wrote the dump added them; else unknown."""
    return tuple(item.get("source_turn_ids") or ())


def _named(source: Any) -> bool:
    return isinstance(source, Mapping) and bool(source.get("message_id"))
