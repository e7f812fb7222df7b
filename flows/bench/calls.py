"""How close do calls to a model come to the ideal, and what does asking cost this machine?"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from tasks.llm import Message, Model, Request, ask

REPLY_S = 0.2
CONCURRENCY = 32
CALLS = 1600

_SERVER = """
import asyncio, json, re, sys
BODY = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,
    "finish_reason": "stop", "message": {"role": "assistant", "content": "A short answer."}}],
    "usage": {"prompt_tokens": 900, "completion_tokens": 5, "total_tokens": 905}}).encode()
REPLY = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(BODY) + BODY
async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            await reader.readexactly(int(re.search(rb"content-length: (\\d+)", head.lower())[1]))
            await asyncio.sleep(float(sys.argv[1]))
            writer.write(REPLY)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def calls(data: str | None, lake: str | None = None) -> dict[str, Any]:
    """Ask a server in another process that replies after 200 ms, 32 calls at a time, through a new ledger on disk.

    Returns name → value. Beside it the same calls by the openai package's own client, without ledger, limits
    or retries. Processor time is this process's alone. Where others keep the processors busy, calls wait for one: that
    wait is no part of what asking costs, but of the share that was reached. `data` and `lake` are not used.
    """
    ideal = CONCURRENCY / REPLY_S
    with _server() as url, TemporaryDirectory() as folder:
        model = Model("bench", "m", url, temperature=0.0, max_tokens=64, concurrency=CONCURRENCY)
        ask(folder, _requests(model, "warm", 2 * CONCURRENCY))
        queued = _queued()
        wall, processor = _timed(lambda: ask(folder, _requests(model, "timed", CALLS)))
        queued = None if queued is None else (_queued() or 0.0) - queued
        again, _ = _timed(lambda: ask(folder, _requests(model, "timed", CALLS)))
        bare_wall, bare_processor = _bare(url, [request.body for request in _requests(model, "bare", CALLS)])
    return {
        "calls": CALLS,
        "calls at a time": CONCURRENCY,
        "seconds a reply": REPLY_S,
        "ideal, calls/s": ideal,
        "reached, calls/s": round(CALLS / wall, 1),
        "share of the ideal": round(CALLS / wall / ideal, 3),
        "processor time a call, ms": round(processor / CALLS * 1e3, 2),
        "wait for a processor a call, ms": None if queued is None else round(queued / CALLS * 1e3, 2),
        "the bare client's share of the ideal": round(CALLS / bare_wall / ideal, 3),
        "the bare client's processor time a call, ms": round(bare_processor / CALLS * 1e3, 2),
        "from the ledger, ms a reply": round(again / CALLS * 1e3, 3),
    }


def _requests(model: Model, name: str, count: int) -> list[Request]:
    evidence = "[8 May 2023] Ada: I adopted a parrot, and he is called Kiwi.\n" * 40
    return [Request(model, (Message("user", f"{evidence}{name} {number}?"),), "bench") for number in range(count)]


def _timed(work: Any) -> tuple[float, float]:
    """Seconds of wall and of processor time."""
    wall, processor = perf_counter(), process_time()
    work()
    return perf_counter() - wall, process_time() - processor


def _queued() -> float | None:
    """Seconds that this process's threads were ready and had no processor; None where the system does not say."""
    files = list(Path("/proc/self/task").glob("*/schedstat"))
    return sum(int(file.read_text(encoding="ascii").split()[1]) for file in files) / 1e9 if files else None


def _bare(url: str, bodies: list[dict[str, Any]]) -> tuple[float, float]:
    """Wall and processor seconds of the default client of the openai package, as its manual uses it."""
    import asyncio

    import openai

    async def run() -> tuple[float, float]:
        client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        left = iter(bodies)

        async def worker() -> None:
            for body in left:
                await client.chat.completions.create(**body)

        wall, processor = perf_counter(), process_time()
        await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))
        return perf_counter() - wall, process_time() - processor

    return asyncio.run(run())


@contextmanager
def _server() -> Iterator[str]:
    """The base URL of the server, in a process of its own."""
    command = [sys.executable, "-c", _SERVER, json.dumps(REPLY_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip() if server.stdout else ''}/v1"
        finally:
            server.kill()
