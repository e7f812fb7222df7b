"""The flat store: every turn is one record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from storage.records import Record, Turn


@dataclass(frozen=True)
class Turns:
    """One record a turn: `Speaker: text [caption]` and the session's date where asked for.

    `captions`: append the caption of a shared image. `dates`: put the session's date before the text, so that
    the index sees it (the answerer is shown dates in any case).
    """

    name: ClassVar[str] = "turns"
    title: ClassVar[str] = "every turn is one record"

    captions: bool = True
    dates: bool = False

    @property
    def dated(self) -> bool:
        """Whether the session's date is part of the text."""
        return self.dates

    def write(self, turns: Sequence[Turn]) -> list[Record]:
        """Records of one session in the turns' order."""
        return [
            Record(
                id=turn.id,
                conversation_id=turn.conversation_id,
                session_id=turn.session_id,
                position=turn.position,
                speaker=turn.speaker,
                said_at=turn.said_at,
                text=self._text(turn),
                source_turn_ids=(turn.id,),
            )
            for turn in turns
        ]

    def _text(self, turn: Turn) -> str:
        text = f"{turn.speaker}: {turn.text}"
        if self.captions and turn.caption:
            text += f" [{turn.caption}]"
        if self.dates and turn.said_at:
            text = f"{turn.said_at.day} {turn.said_at:%B %Y} | {text}"
        return text
