"""Which letters pictures made here can show.

Not here: installing fonts. The SVG files name several families and leave the choice to whoever shows them.
"""

from __future__ import annotations

from functools import cache

import vl_convert

FAMILIES = "DejaVu Sans, Noto Sans CJK SC, PingFang SC, Microsoft YaHei, WenQuanYi Micro Hei, sans-serif"


@cache
def can_show_chinese() -> bool:
    """Whether a font here has Chinese characters: two of them come out as different pictures.

    Without a font both come out as nothing, or as the same empty box.
    """
    return _picture("政") != _picture("务")


def _picture(text: str) -> bytes:
    return vl_convert.svg_to_png(
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">'
        f'<text x="4" y="32" font-size="28" font-family="{FAMILIES}">{text}</text></svg>'
    )
