"""What a protocol will ask of models, in calls, tokens and money, given what a lake holds."""

from flows.gate import planned, refuse_closed
from flows.protocol import Protocol
from storage.lake import Lake
from tasks.forecast import Forecast, forecast
from tasks.ingest import ingest


def estimate(protocol: Protocol, lake: str) -> list[Forecast]:
    """One row a part that asks a model. Ingests the data and writes records if the lake lacks them; asks nothing.

    Counts open questions alone: raises `StillSealed` for the sealed split.
    """
    refuse_closed(protocol, None)
    data, root = protocol.data, str(Lake.open(lake).root)
    dataset = ingest(root, data.benchmark, data.path, data.sha256 or None)
    return forecast(planned(protocol, root, dataset, None))
