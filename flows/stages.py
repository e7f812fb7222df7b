"""Which stages a run has, in order."""

from storage.errors import InputError

STAGES = ("ingest", "store", "index", "pool", "compose", "answer", "judge", "sufficiency", "report")


def chosen(only: str | None, until: str | None) -> tuple[str, ...]:
    """The stages that --only and --until name. Raises `InputError` for an unknown stage or for both at once."""
    if only and until:
        raise InputError("--only and --until: one of them expected, both found")
    for option, stage in (("--only", only), ("--until", until)):
        if stage and stage not in STAGES:
            raise InputError(f"{option}: one of {', '.join(STAGES)} expected, {stage!r} found")
    if only:
        return (only,)
    return STAGES[: STAGES.index(until) + 1] if until else STAGES
