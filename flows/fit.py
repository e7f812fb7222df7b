"""Which weights does a reader learn from a whole benchmark, to read another one with?"""

from prefect import flow

from flows.evidence import index_stage, pool_stage, store_stage
from flows.ingest import ingest_stage
from flows.protocol import Protocol
from flows.shards import Log
from readers import READERS
from tasks import specs
from tasks.arms import learner
from tasks.fit import fit_whole_task


@flow(name="fit", flow_run_name="fit: {protocol.name} ({protocol.data.split})", persist_result=False)
def fit(protocol: Protocol, lake: str, reader: str) -> str:
    """The reader's printed form with weights of three digits, fitted on all conversations over the first store.

    Records, index and pools are made where the lake lacks them. Raises `InputError` for a reader that does not learn
    or whose weights are given, and where no pool holds gold.
    """
    made, log = learner(reader), Log()
    plan, _ = ingest_stage(protocol, lake, log)
    for stage in (store_stage, index_stage, pool_stage):
        stage(plan, log)
    weights = fit_whole_task.submit(plan, plan.stores[0], made).result()
    return specs.printed(READERS, made.fitted([float(f"{weight:.3g}") for weight in weights]))
