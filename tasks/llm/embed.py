"""Texts to vectors, from an OpenAI-compatible endpoint."""

import json
import os
from collections.abc import Sequence

from storage.errors import InputError
from tasks.llm.model import KEY_VARIABLE
from tasks.outcomes import EndpointError

_RETRIES = 6


def embed(base_url: str, model: str, texts: Sequence[str]) -> list[list[float]]:
    """Vectors of `texts` from `base_url`/embeddings, in the order of `texts`.

    Passing faults (429, 5xx, timeouts, cut connections) are tried again with back-off. Raises `InputError` for
    a refused key or request, `EndpointError` where the endpoint keeps failing or replies with other than
    one vector a text.
    """
    import openai  # slow to import, and only needed where an endpoint is asked

    client = openai.OpenAI(
        base_url=base_url, api_key=os.environ.get(KEY_VARIABLE, "none"), max_retries=_RETRIES, timeout=60.0
    )
    try:
        reply = client.embeddings.create(model=model, input=list(texts), encoding_format="float")
    except openai.APIStatusError as error:
        if error.status_code in (400, 401, 402, 403, 404):
            raise InputError(
                f"endpoint {base_url}: model {model} was refused with status {error.status_code}; "
                f"check the model's name and the key in {KEY_VARIABLE}"
            ) from None
        raise EndpointError(f"endpoint {base_url}: status {error.status_code} after {_RETRIES} retries") from None
    except (openai.APIError, json.JSONDecodeError) as error:
        raise EndpointError(f"endpoint {base_url}: no usable reply ({type(error).__name__}); is it up?") from None
    vectors = {item.index: item.embedding for item in reply.data or []}
    if sorted(vectors) != list(range(len(texts))):
        raise EndpointError(f"endpoint {base_url}: {len(texts)} vectors expected, {len(vectors)} found")
    return [vectors[i] for i in range(len(texts))]
