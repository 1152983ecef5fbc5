"""The colours of reports by their meaning, for light and dark themes.

Verdicts are blue and vermillion; kernels are grey, green, purple, amber and sky blue. They follow the palette
of M. Okabe and K. Ito, "Color Universal Design" (2008), which people with any kind of colour blindness can
distinguish. No information is shown by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping

_COLOURS = {
    "page": ("#f6f7f9", "#0f1216"),
    "panel": ("#ffffff", "#171b21"),
    "raised": ("#ffffff", "#222830"),
    "ink": ("#1b1f24", "#e6e9ed"),
    "muted": ("#59636e", "#a2acb8"),
    "line": ("#c9d0d8", "#3d4651"),
    "grid": ("#e9ecf0", "#272e37"),
    "link": ("#0b5cad", "#7cbcf5"),
    "focus": ("#0b5cad", "#7cbcf5"),
    "broken": ("#a8071a", "#ff8a94"),
    "better": ("#0b67b2", "#62b0ee"),
    "worse": ("#b24706", "#f28a4b"),
    "same": ("#5f6b77", "#a2acb8"),
    "mixed": ("#7a3e9d", "#cf9cf0"),
    "inconclusive": ("#8a6100", "#e0b84c"),
    "broken-soft": ("#fde3e6", "#4d1620"),
    "better-soft": ("#e3eff9", "#17324a"),
    "worse-soft": ("#fceadf", "#452614"),
    "same-soft": ("#eceff2", "#272e37"),
    "mixed-soft": ("#f3e8fa", "#38234a"),
    "inconclusive-soft": ("#faf0d7", "#3b3014"),
    "null": ("#d5dae0", "#39414b"),
    "base": ("#59636e", "#a2acb8"),
    "twin": ("#9aa4ae", "#6d7884"),
    "kernel0": ("#007a58", "#35c296"),
    "kernel1": ("#a8437f", "#e08fc2"),
    "kernel2": ("#b87400", "#e8ad3f"),
    "kernel3": ("#2789c4", "#79c3f2"),
    "kernel4": ("#6a51a3", "#b4a0ea"),
    "posted": ("#1b1f24", "#e6e9ed"),
    "flame-less": ("#74aedb", "#2b6699"),
    "flame-none": ("#ece8e1", "#4a4f56"),
    "flame-more": ("#e58f5f", "#a5501f"),
    "flame-ink": ("#1b1f24", "#f4f5f7"),
}
LIGHT: Mapping[str, str] = {name: light for name, (light, _) in _COLOURS.items()}
DARK: Mapping[str, str] = {name: dark for name, (_, dark) in _COLOURS.items()}


def stylesheet() -> str:
    """Return both themes as CSS custom properties; the default is the theme of the system."""
    light, dark = ("".join(f"--{name}:{value};" for name, value in theme.items()) for theme in (LIGHT, DARK))
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{color-scheme:dark;{dark}}}}}\n'
        f':root[data-theme="dark"]{{color-scheme:dark;{dark}}}\n'
        f"@media print{{:root:not(#always){{color-scheme:light;{light}}}}}\n"
    )
