"""Downloads are checked, and a broken one is gone on with."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from storage.errors import InputError
from tasks import fetch as module
from tasks.fetch import HOMES, fetch

CONTENT = bytes(range(256)) * 4096


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    home = HOMES["locomo"]
    known = replace(home.files[0], sha256=hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setitem(module.HOMES, "locomo", replace(home, files=(known,)))


def _serve(server: HTTPServer, *, ranges: bool) -> list[str | None]:
    asked: list[str | None] = []

    def reply(request: Request) -> Response:
        asked.append(request.headers.get("Range"))
        start = int((asked[-1] or "bytes=0-").removeprefix("bytes=").removesuffix("-")) if ranges else 0
        return Response(CONTENT[start:], status=206 if ranges and asked[-1] else 200)

    server.expect_request("/file").respond_with_handler(reply)
    return asked


def test_a_file_is_downloaded_and_left_alone_the_next_time(home: None, httpserver: HTTPServer, tmp_path: Path) -> None:
    asked = _serve(httpserver, ranges=True)
    path = fetch("locomo", tmp_path / "new", httpserver.url_for("/file"), None)
    assert path.read_bytes() == CONTENT
    fetch("locomo", tmp_path / "new", httpserver.url_for("/file"), None)
    assert asked == [None]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_is_gone_on_with(home: None, httpserver: HTTPServer, tmp_path: Path, ranges: bool) -> None:
    asked = _serve(httpserver, ranges=ranges)
    (tmp_path / ".locomo10.json.part").write_bytes(CONTENT[:1000])
    path = fetch("locomo", tmp_path, httpserver.url_for("/file"), None)
    assert path.read_bytes() == CONTENT
    assert asked == ["bytes=1000-"]
    assert [item.name for item in tmp_path.iterdir()] == ["locomo10.json"]


def test_a_file_of_another_digest_is_refused_and_not_kept(httpserver: HTTPServer, tmp_path: Path) -> None:
    _serve(httpserver, ranges=True)
    with pytest.raises(InputError, match="nothing was kept"):
        fetch("locomo", tmp_path, httpserver.url_for("/file"), None)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_said(httpserver: HTTPServer, tmp_path: Path) -> None:
    httpserver.expect_request("/gone").respond_with_data("", status=404)
    with pytest.raises(InputError, match="status 404"):
        fetch("locomo", tmp_path, httpserver.url_for("/gone"), None)
    with pytest.raises(InputError, match="not reached in 5 tries"):
        fetch("locomo", tmp_path, "http://127.0.0.1:9/file", None)
    with pytest.raises(InputError, match=r"one of locomo, .* expected, 'locom' found"):
        fetch("locom", tmp_path, None, None)


def test_a_folder_of_files_is_fetched_whole_without_the_files_it_may_lack(
    httpserver: HTTPServer, tmp_path: Path
) -> None:
    for number in range(1, 21):
        httpserver.expect_request(f"/100K/{number}/chat.json").respond_with_data("[]")
        httpserver.expect_request(f"/100K/{number}/chat_trunecated.json").respond_with_data(status=404)
        probes = f"/100K/{number}/probing_questions/probing_questions.json"
        httpserver.expect_request(probes).respond_with_data("{}")
    path = fetch("beam_100k", tmp_path, httpserver.url_for("/"), None)
    assert path == tmp_path / "100K"
    assert len(list(path.rglob("*.json"))) == 40


def test_a_file_without_a_published_digest_must_still_be_whole(httpserver: HTTPServer, tmp_path: Path) -> None:
    httpserver.expect_request("/100K/1/chat_trunecated.json").respond_with_data("[{")
    with pytest.raises(InputError, match="complete JSON expected"):
        fetch("beam_100k", tmp_path, httpserver.url_for("/"), None)
