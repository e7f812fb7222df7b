"""Policies that compose evidence from a pool: pure computation on arrays."""

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
