"""Policies that compose evidence from a pool: pure computation on arrays."""

from readers.bfr import BfrAdaptive, BfrMv, BfrState, BfrText
from readers.bfr_model import BfrAdaptiveModel, BfrMvModel, BfrStateModel, BfrTextModel
from readers.com import ComFlat
from readers.coverage import FacilityLocation, LinBilmes
from readers.dpp import Dpp
from readers.ember import EmberFlat
from readers.fca_ms import FcaMs
from readers.fca_ms_lattice import FcaMsLattice
from readers.fca_ms_model import FcaMsLatticeModel, FcaMsModel
from readers.flat import AMemFlat, Mem0Flat
from readers.locality import Locality
from readers.mem_pursuit import MemPursuit
from readers.memcompile import MemcompileFlat
from readers.mera import MeraFlat
from readers.mmr import Mmr
from readers.mragent import MragentFlat, MragentScripted
from readers.rankgpt import RankGpt
from readers.ranking import Bm25, Dense, FullContext, Hybrid, Random
from readers.rerankers import CrossEncoder, LlmPointwise
from readers.rsc import Rsc
from readers.setr import Setr
from readers.speaker_context import SpeakerContext
from readers.types import Reader
from readers.xquad import Xquad
from readers.xquad_model import XquadModel

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
    "mragent_scripted": MragentScripted,
    "mragent_flat": MragentFlat,
    "mera_flat": MeraFlat,
    "setr": Setr,
    "rankgpt": RankGpt,
    "cross_encoder": CrossEncoder,
    "llm_pointwise": LlmPointwise,
    "fca_ms_model": FcaMsModel,
    "fca_ms_lattice_model": FcaMsLatticeModel,
    "bfr_text_model": BfrTextModel,
    "bfr_mv_model": BfrMvModel,
    "bfr_state_model": BfrStateModel,
    "bfr_adaptive_model": BfrAdaptiveModel,
    "xquad_model": XquadModel,
    "speaker_context": SpeakerContext,
    "rsc": Rsc,
}
