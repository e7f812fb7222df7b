"""An OpenAI-compatible endpoint on this machine that fails in whatever way a test asks for.

Real HTTP/1.1 over a real socket, one event loop in a thread. `POST /chat/completions`, `POST /embeddings`,
`GET /models`, `/files` and `/batches`; every request is kept in `seen`.
"""

import asyncio
import json
import re
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """One way to fail. `status` other than 200 is an error body; `raw` a body that is no JSON of ours.

    `cut`: the connection closes in the middle of the body. `hang`: the head comes, the body never does. `drips`: it
    comes blank by blank and never ends.
    `choice`: changes to the choice of a chat completion. `order`: embeddings come in this order.
    """

    status: int = 200
    code: str = ""
    message: str = "a fault"
    headers: dict[str, str] = field(default_factory=dict)
    latency_s: float = 0.0
    raw: str | None = None
    cut: bool = False
    hang: bool = False
    drips: bool = False
    choice: Body = field(default_factory=dict)
    backwards: bool = False


def error(status: int, code: str = "", *, retry_after: str | None = None, message: str = "a fault") -> Fault:
    """An error status, with Retry-After where given."""
    return Fault(status, code, message, {} if retry_after is None else {"Retry-After": retry_after})


def said(content: Any, finish: str = "stop", **message: Any) -> Fault:
    """A completion with this content and finish reason."""
    return Fault(choice={"finish_reason": finish, "message": {"role": "assistant", "content": content, **message}})


CUT = Fault(cut=True)
HANG = Fault(hang=True)
NEVER_ENDS = Fault(drips=True)
MALFORMED = Fault(raw='{"choices": [{"index": 0, "mess')
NO_CHOICES = Fault(raw='{"object": "chat.completion", "choices": []}')
REFUSAL = said(None, refusal="I cannot help with that.")
TRUNCATED = said("The answer is", "length")
TRUNCATED_NULL = said(None, "length")
NULL = said(None)
EMPTY = said("")
FILTERED = said(None, "content_filter")
WRONG_ORDER = Fault(backwards=True)


@dataclass
class Seen:
    """One request as it arrived. `at`: monotonic seconds."""

    path: str
    headers: dict[str, str]
    body: Any
    at: float


def echo(body: Body) -> str:
    """The last message's text, so that a reply tells what was asked."""
    return f"echo: {body['messages'][-1]['content']}"


class FaultServer:
    """`with FaultServer() as server:` serves at `server.url`.

    `reply`: body → text of a good reply. `faults`: taken one a request, None for a good reply. `rule`: body →
    the fault of every request like it, or None; asked where `faults` is empty. `key`: the only accepted key.
    `polls`: how often a batch is looked at before it is done.
    """

    def __init__(
        self, reply: Callable[[Body], str] = echo, *, latency_s: float = 0.0, key: str | None = None, polls: int = 1
    ) -> None:
        self.reply, self.latency_s, self.key, self.polls = reply, latency_s, key, polls
        self.faults: deque[Fault | None] = deque()
        self.rule: Callable[[Body], Fault | None] = lambda body: None
        self.seen: list[Seen] = []
        self.flying = self.most_flying = 0
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Body] = {}
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> "FaultServer":
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def asked(self, path: str = "/chat/completions") -> list[Seen]:
        """The requests to one path, in the order they came."""
        return [seen for seen in self.seen if seen.path == path]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                data = await reader.readexactly(int(headers.get("content-length", 0)))
                self.flying += 1
                self.most_flying = max(self.most_flying, self.flying)
                try:
                    if not await self._answer(method, path.removeprefix("/v1"), headers, data, writer):
                        break
                finally:
                    self.flying -= 1
        writer.close()

    async def _answer(
        self, method: str, path: str, headers: dict[str, str], data: bytes, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection goes on."""
        is_json = headers.get("content-type", "").startswith("application/json")
        body = json.loads(data) if is_json and data else data
        self.seen.append(Seen(path, headers, body, monotonic()))
        asks = method == "POST" and path in ("/chat/completions", "/embeddings")
        fault = (self.faults.popleft() if self.faults else self.rule(body)) if asks else None
        fault = fault or Fault()
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            fault = error(401, "invalid_api_key", message=f"bad key {headers.get('authorization')}")
        if asks:
            await asyncio.sleep(self.latency_s + fault.latency_s)
        status, text = fault.status, _failed(fault)
        if fault.status == 200:
            status, text = self._good(method, path, body, fault)
        return await _send(writer, status, fault, text)

    def _good(self, method: str, path: str, body: Any, fault: Fault) -> tuple[int, str]:
        if fault.raw is not None:
            return 200, fault.raw
        if path == "/chat/completions":
            return 200, json.dumps(self.completion(body, fault))
        if path == "/embeddings":
            return 200, json.dumps(_embedded(body, fault))
        if path == "/models":
            return 200, json.dumps({"object": "list", "data": [{"id": "small", "object": "model"}]})
        return self._batched(method, path, body)

    def completion(self, body: Body, fault: Fault) -> Body:
        """A chat completion; usage counts words."""
        content = None if fault.choice else self.reply(body)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        if body.get("top_logprobs"):
            alternatives = [{"token": "Yes", "logprob": -0.25}, {"token": "No", "logprob": -1.5}]
            choice["logprobs"] = {"content": [{"token": "Yes", "logprob": -0.25, "top_logprobs": alternatives}]}
        used = sum(len(str(message["content"]).split()) for message in body["messages"])
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [choice | fault.choice],
            "usage": {"prompt_tokens": used, "completion_tokens": 2, "total_tokens": used + 2},
        }

    def _batched(self, method: str, path: str, body: Any) -> tuple[int, str]:
        if (method, path) == ("POST", "/files"):
            name = f"file-{len(self.files)}"
            self.files[name] = _uploaded(body)
            return 200, json.dumps(_file(name, self.files[name]))
        if match := re.fullmatch(r"/files/([\w-]+)/content", path):
            return 200, self.files[match[1]].decode()
        if (method, path) == ("POST", "/batches"):
            name = f"batch-{len(self.batches)}"
            self.batches[name] = _batch(name, body) | {"polls": 0}
            return 200, json.dumps(self.batches[name])
        if method == "GET" and path.split("?")[0] == "/batches":
            return 200, json.dumps({"object": "list", "data": list(self.batches.values()), "has_more": False})
        if match := re.fullmatch(r"/batches/([\w-]+)", path):
            return 200, json.dumps(self._looked_at(self.batches[match[1]]))
        return 404, json.dumps({"error": {"message": f"no {path}"}})

    def _looked_at(self, batch: Body) -> Body:
        """A batch one poll later: its good replies in one file, the failed in another, `hang` in neither."""
        batch["polls"] += 1
        if batch["polls"] == self.polls:
            lines: dict[str, list[Body]] = {"output": [], "error": []}
            for line in map(json.loads, self.files[batch["input_file_id"]].decode().splitlines()):
                fault = self.rule(line["body"]) or Fault()
                good = fault.status == 200
                body = self.completion(line["body"], fault) if good else json.loads(_failed(fault))
                told = {"custom_id": line["custom_id"], "response": {"status_code": fault.status, "body": body}}
                if not fault.hang:
                    lines["output" if good else "error"].insert(0, told)
            for kind, held in lines.items():
                if held:
                    name = f"file-{len(self.files)}"
                    self.files[name] = "\n".join(json.dumps(one, ensure_ascii=False) for one in held).encode()
                    batch[f"{kind}_file_id"] = name
            batch["status"] = "completed"
        return batch


def _failed(fault: Fault) -> str:
    return json.dumps({"error": {"message": fault.message, "type": "error", "code": fault.code or None}})


def _embedded(body: Body, fault: Fault) -> Body:
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    data = [{"object": "embedding", "index": i, "embedding": [len(t), 3.0]} for i, t in enumerate(texts)]
    used = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "data": data[::-1] if fault.backwards else data, "model": body["model"], "usage": used}


def _file(name: str, data: bytes) -> Body:
    said = {"object": "file", "created_at": 1, "filename": "requests.jsonl", "purpose": "batch", "status": "processed"}
    return {"id": name, "bytes": len(data), **said}


def _batch(name: str, body: Body) -> Body:
    return {"id": name, "object": "batch", "created_at": 1, "status": "in_progress", **body}


def _uploaded(data: bytes) -> bytes:
    """The file in a multipart body."""
    boundary = data.split(b"\r\n", 1)[0]
    for part in data.split(boundary):
        head, _, rest = part.partition(b"\r\n\r\n")
        if b"filename=" in head:
            return rest.removesuffix(b"\r\n")
    raise ValueError("no file in the upload")


async def _send(writer: asyncio.StreamWriter, status: int, fault: Fault, text: str) -> bool:
    data = text.encode()
    extra = "".join(f"{name}: {value}\r\n" for name, value in fault.headers.items())
    size = 1 << 30 if fault.drips else len(data)
    head = f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n{extra}\r\n"
    begun = b"" if fault.hang or fault.drips else data[: len(data) // 2] if fault.cut else data
    writer.write(head.encode() + begun)
    await writer.drain()
    while fault.drips:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)
    if fault.hang:
        await asyncio.sleep(3600)
    return not fault.cut
