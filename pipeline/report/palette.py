"""The colours of the report pages, one set per colour scheme. Status is never shown by colour alone."""

from collections.abc import Mapping

# On `page` and on `panel`, text has a contrast of at least 4.5:1 and marks at least 3:1 (WCAG 2.2, 1.4.3 and
# 1.4.11); a test computes them. Two sets, because greens and reds that pass on white fail on black.
LIGHT: Mapping[str, str] = {
    "page": "#ffffff",
    "panel": "#f5f6f8",
    "text": "#1b1f24",
    "muted": "#57606a",
    "line": "#858d96",
    "link": "#0550ae",
    "good": "#1a7f37",
    "bad": "#b3261e",
    "warn": "#8a5a00",
    "still": "#5a6472",
    "first": "#0a5fb4",
    "second": "#a04a00",
}
DARK: Mapping[str, str] = {
    "page": "#14171b",
    "panel": "#1d2127",
    "text": "#e8eaed",
    "muted": "#a9b1bb",
    "line": "#7b838d",
    "link": "#7ab7ff",
    "good": "#57c878",
    "bad": "#ff8a80",
    "warn": "#e5b454",
    "still": "#a3adb9",
    "first": "#6bb1ff",
    "second": "#f0a35e",
}
