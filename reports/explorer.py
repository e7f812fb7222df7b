"""How can any question of a run be looked up without a server?"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from reports.files import TEMPLATES, templates, write
from reports.question_details import question_details, scripts_of
from reports.question_list import question_list, store_names
from reports.results import Results
from storage.places import remove

PAGE = "questions.html"
FOLDER = "questions-"
DIGITS = 16
PARTS = ("explorer.js", "question.js", "timeline.js")
UNSAFE = re.compile("[<>&\u2028\u2029]")


@dataclass(frozen=True)
class Explorer:
    """A page's text, and those of the scripts in the `folder` beside it that hold the details of its questions."""

    page: str
    folder: str
    scripts: Sequence[str]


def explorer(results: Results) -> Explorer:
    """The page, which knows what its filters need, and its scripts.

    Details are scripts since a page opened from a file may load nothing else. Such a script calls `details` with its
    number and JSON, and does nothing besides. The folder is named by what the scripts hold and the page names the
    folder, so no page ever shows what belongs to another.
    """
    shared = scripts_of(results.questions)
    told = question_details(results, shared, store_names(results))
    scripts = [f"details({number},{embedded(own)});\n" for number, own in enumerate(told)]
    digest = hashlib.sha256()
    for text in scripts:
        digest.update(text.encode())
    folder = FOLDER + digest.hexdigest()[:DIGITS]
    return Explorer(_page(results, {**question_list(results, shared), "folder": folder}), folder, scripts)


def write_explorer(made: Explorer, folder: Path) -> dict[str, Path]:
    """Write the page after all that it names, each file whole or not at all, then remove the scripts of earlier pages.

    Returns `questions`, the page, and `details`, the folder of its scripts, where there are any.
    """
    for number, text in enumerate(made.scripts):
        write(folder / made.folder / f"{number:03d}.js", text)
    written = {"questions": write(folder / PAGE, made.page)}
    for old in folder.glob(FOLDER + "[0-9a-f]" * DIGITS):
        if old.name != made.folder:
            remove(old)
    return {**written, "details": folder / made.folder} if made.scripts else written


def embedded(data: Any) -> str:
    """JSON that may stand inside a script: no character in it can end the element or a line."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", re.sub("[\ud800-\udfff]", "\ufffd", text))


def _page(results: Results, data: Mapping[str, Any]) -> str:
    parts = "\n".join((TEMPLATES / part).read_text(encoding="utf-8") for part in PARTS)
    script = f'"use strict";\n(() => {{\n{parts}\n}})();'
    return (
        templates()
        .get_template("questions.html.j2")
        .render(
            title=results.title,
            script=Markup(script),
            script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            data=Markup(embedded(data)),
        )
    )
