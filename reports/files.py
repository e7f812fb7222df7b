"""How does what a page shows become a file that is safe to open?"""

import re
from pathlib import Path

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from storage.tables import write_whole

TEMPLATES = Path(__file__).parent / "templates"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def templates() -> Environment:
    """The report templates: HTML is escaped, and a variable that is missing is an error."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def inline(svg: str) -> Markup:
    """An SVG for HTML, where namespaces are implied; Vega has escaped its texts."""
    return Markup(re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg))


def csv(frame: pl.DataFrame) -> str:
    """CSV whose text cells no spreadsheet takes for a formula."""
    text = pl.selectors.string()
    risky = text.str.head(1).is_in(FORMULA_STARTS)
    return frame.with_columns(pl.when(risky).then(pl.lit("'") + text).otherwise(text).name.keep()).write_csv()


def write(path: Path, text: str) -> Path:
    """Write a text file whole or not at all; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
    write_whole(path, re.sub("[\ud800-\udfff]", "\ufffd", text).encode("utf-8"))
    return path
