"""The colours of reports by their meaning, for light and dark themes.

Verdicts are blue and vermillion; kernels are grey, green, purple, amber and sky blue. They follow the palette
of M. Okabe and K. Ito, "Color Universal Design" (2008), which people with any kind of colour blindness can
distinguish. No information is shown by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "page": "#f6f7f9",
    "panel": "#ffffff",
    "raised": "#ffffff",
    "ink": "#1b1f24",
    "muted": "#59636e",
    "line": "#c9d0d8",
    "grid": "#e9ecf0",
    "link": "#0b5cad",
    "focus": "#0b5cad",
    "broken": "#a8071a",
    "better": "#0b67b2",
    "worse": "#b24706",
    "same": "#5f6b77",
    "mixed": "#7a3e9d",
    "inconclusive": "#8a6100",
    "broken-soft": "#fde3e6",
    "better-soft": "#e3eff9",
    "worse-soft": "#fceadf",
    "same-soft": "#eceff2",
    "mixed-soft": "#f3e8fa",
    "inconclusive-soft": "#faf0d7",
    "null": "#d5dae0",
    "base": "#59636e",
    "twin": "#9aa4ae",
    "kernel0": "#007a58",
    "kernel1": "#a8437f",
    "kernel2": "#b87400",
    "kernel3": "#2789c4",
    "kernel4": "#6a51a3",
    "posted": "#1b1f24",
    "flame-less": "#74aedb",
    "flame-none": "#ece8e1",
    "flame-more": "#e58f5f",
    "flame-ink": "#1b1f24",
}

DARK: Mapping[str, str] = {
    "page": "#0f1216",
    "panel": "#171b21",
    "raised": "#222830",
    "ink": "#e6e9ed",
    "muted": "#a2acb8",
    "line": "#3d4651",
    "grid": "#272e37",
    "link": "#7cbcf5",
    "focus": "#7cbcf5",
    "broken": "#ff8a94",
    "better": "#62b0ee",
    "worse": "#f28a4b",
    "same": "#a2acb8",
    "mixed": "#cf9cf0",
    "inconclusive": "#e0b84c",
    "broken-soft": "#4d1620",
    "better-soft": "#17324a",
    "worse-soft": "#452614",
    "same-soft": "#272e37",
    "mixed-soft": "#38234a",
    "inconclusive-soft": "#3b3014",
    "null": "#39414b",
    "base": "#a2acb8",
    "twin": "#6d7884",
    "kernel0": "#35c296",
    "kernel1": "#e08fc2",
    "kernel2": "#e8ad3f",
    "kernel3": "#79c3f2",
    "kernel4": "#b4a0ea",
    "posted": "#e6e9ed",
    "flame-less": "#2b6699",
    "flame-none": "#4a4f56",
    "flame-more": "#a5501f",
    "flame-ink": "#f4f5f7",
}


def stylesheet() -> str:
    """Return both themes as CSS custom properties; the default is the theme of the system."""
    light, dark = ("".join(f"--{name}:{value};" for name, value in theme.items()) for theme in (LIGHT, DARK))
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{color-scheme:dark;{dark}}}}}\n'
        f':root[data-theme="dark"]{{color-scheme:dark;{dark}}}\n'
        f"@media print{{:root:not(#always){{color-scheme:light;{light}}}}}\n"
    )
