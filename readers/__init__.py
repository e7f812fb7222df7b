"""Policies that compose evidence from a pool: pure computation on arrays."""

from difflib import get_close_matches

from readers.coverage import FacilityLocation, LinBilmes
from readers.dpp import Dpp
from readers.mem_pursuit import MemPursuit
from readers.mmr import Mmr
from readers.ranking import Bm25, Dense, FullContext, Hybrid, Random
from readers.types import Reader
from readers.xquad import Xquad

READERS: dict[str, type[Reader]] = {
    "dense": Dense,
    "bm25": Bm25,
    "hybrid": Hybrid,
    "random": Random,
    "full_context": FullContext,
    "mmr": Mmr,
    "dpp": Dpp,
    "facility_location": FacilityLocation,
    "lin_bilmes": LinBilmes,
    "xquad": Xquad,
    "mem_pursuit": MemPursuit,
}


class UnknownReader(LookupError):
    """No reader has this `name`; `known` are the names there are, `closest` the likeliest meant, or None."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = tuple(READERS)
        self.closest = next(iter(get_close_matches(name, self.known, n=1)), None)
        hint = f" Did you mean {self.closest}?" if self.closest else ""
        super().__init__(f"Unknown reader {name!r}.{hint} Known readers: {', '.join(self.known)}.")


def reader_class(name: str) -> type[Reader]:
    """The reader registered as `name`. Raises `UnknownReader`."""
    try:
        return READERS[name]
    except KeyError:
        raise UnknownReader(name) from None
