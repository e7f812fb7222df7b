"""Texts to vectors, from an OpenAI-compatible endpoint."""

from collections.abc import Sequence

from tasks.llm.endpoint import closed
from tasks.llm.keys import key
from tasks.llm.model import Model
from tasks.llm.patience import PATIENCE, GaveUp, Policy, patiently
from tasks.outcomes import EndpointError


def embed(base_url: str, model: str, texts: Sequence[str], *, policy: Policy = PATIENCE) -> list[list[float]]:
    """Vectors of `texts` from `base_url`/embeddings, in the order of `texts`.

    Passing faults (429, 5xx, timeouts, cut connections, malformed bodies) are tried again with back-off. Raises
    `InputError` for a refused key or request, `EndpointError` where the endpoint keeps failing or replies with
    other than one vector a text.
    """
    import openai  # slow to import, and only needed where an endpoint is asked

    named = Model(name=model, model=model, base_url=base_url)
    secret = key(named)
    with openai.OpenAI(base_url=base_url, api_key=secret, max_retries=0, timeout=60.0) as client:
        try:
            reply = patiently(
                lambda: client.embeddings.create(model=model, input=list(texts), encoding_format="float"),
                secret,
                policy,
            )
        except GaveUp as gone:
            raise closed(base_url, named, gone.fault) from None
    vectors = {item.index: item.embedding for item in reply.data or []}
    if sorted(vectors) != list(range(len(texts))):
        raise EndpointError(f"endpoint {base_url}: {len(texts)} vectors expected, {len(vectors)} found")
    return [vectors[i] for i in range(len(texts))]
