"""Policies that compose evidence from a pool: pure computation on arrays."""

from readers.bfr import BfrAdaptive, BfrMv, BfrState, BfrText
from readers.com import ComFlat
from readers.coverage import FacilityLocation, LinBilmes
from readers.dpp import Dpp
from readers.ember import EmberFlat
from readers.fca_ms import FcaMs
from readers.fca_ms_lattice import FcaMsLattice
from readers.flat import AMemFlat, Mem0Flat
from readers.locality import Locality
from readers.mem_pursuit import MemPursuit
from readers.memcompile import MemcompileFlat
from readers.mmr import Mmr
from readers.ranking import Bm25, Dense, FullContext, Hybrid, Random
from readers.rsc import Rsc
from readers.speaker_context import SpeakerContext
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
    "fca_ms": FcaMs,
    "fca_ms_lattice": FcaMsLattice,
    "bfr_text": BfrText,
    "bfr_mv": BfrMv,
    "bfr_state": BfrState,
    "bfr_adaptive": BfrAdaptive,
    "mem0_flat": Mem0Flat,
    "a_mem_flat": AMemFlat,
    "com_flat": ComFlat,
    "memcompile_flat": MemcompileFlat,
    "ember_flat": EmberFlat,
    "locality": Locality,
    "speaker_context": SpeakerContext,
    "rsc": Rsc,
}
