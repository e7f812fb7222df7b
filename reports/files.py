"""How does what a page shows become a file that is safe to open?"""

import re
from pathlib import Path

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from storage.places import write_whole

TEMPLATES = Path(__file__).parent / "templates"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def templates() -> Environment:
    """The report templates: HTML is escaped, `md` escapes for Markdown, and a variable that is missing is an error."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters["md"] = markdown
    return found


def markdown(text: str) -> Markup:
    """User text that can neither break out of a Markdown line or table cell nor open an HTML element."""
    inert = re.sub(r"([\\`*\[\]|])", r"\\\1", " ".join(str(text).split()))
    return Markup(inert.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def inline(svg: str) -> Markup:
    """An SVG for HTML, where namespaces are implied; Vega has escaped its texts."""
    return Markup(re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg))


def alone(svg: str) -> str:
    """An SVG as a picture of its own, on white: what takes its colour from a page is black there."""
    return svg.replace(">", '><rect width="100%" height="100%" fill="white"/>', 1)


def csv(frame: pl.DataFrame) -> str:
    """CSV whose text cells no spreadsheet takes for a formula."""
    text = pl.selectors.string()
    risky = text.str.head(1).is_in(FORMULA_STARTS)
    return frame.with_columns(pl.when(risky).then(pl.lit("'") + text).otherwise(text).name.keep()).write_csv()


def write(path: Path, text: str) -> Path:
    """Write a text file whole or not at all; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
    write_whole(path, re.sub("[\ud800-\udfff]", "\ufffd", text).encode("utf-8"))
    return path
