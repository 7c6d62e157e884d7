#!/usr/bin/env python3
"""Draws the pictures of README.md: the layout of a recording, from the numbers in the page of `perfconv info --html`.

    python3 docs/pictures/layout.py [FOLDER]

Writes layout-light.svg and layout-dark.svg into FOLDER, by default the folder of this script. Needs Python 3 and cargo,
which builds perfconv first. With PERFCONV=PROGRAM it runs that program and needs no cargo.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# A recording of a big-endian machine with four events.
RECORDING = "fixtures/6.1-s390x-file-multi.data"

# The colours of perfdata-report/src/show/page.html.
THEMES = {
    "light": {
        "paper": "#fcfcfa", "ink": "#1d2330", "soft": "#5c6475", "line": "#d9dce3", "card": "#ffffff",
        "parts": ["#2a78c2", "#d9822b", "#2e9e6b", "#b0529c", "#8a6d3b", "#c64141", "#5b6bc0", "#3a9aa8"],
    },
    "dark": {
        "paper": "#14171d", "ink": "#e6e8ee", "soft": "#9aa3b5", "line": "#2f3542", "card": "#1b1f27",
        "parts": ["#5aa9f0", "#f0a350", "#55c794", "#d684c4", "#c2a36b", "#ee7b7b", "#93a0ee", "#6cc8d6"],
    },
}
WIDTH, HEIGHT, MARGIN = 880, 440, 20
INNER = WIDTH - 2 * MARGIN
# Approximate number of columns of a chart.
COLUMNS = 70


def page():
    """The numbers in the page."""
    program = os.environ.get("PERFCONV")
    command = [program] if program else ["cargo", "run", "--quiet", "--"]
    command += ["info", "--html", "-", RECORDING]
    html = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode()
    data = html.split('<script type="application/json" id="data">', 1)[1].split("</script>", 1)[0]
    return json.loads(data)


def grouped(number):
    return f"{number:,}".replace(",", "\u202f")


def fixed(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Picture:
    def __init__(self, theme):
        self.theme = theme
        self.out = []
        self.rect(0, 0, WIDTH, HEIGHT, theme["paper"], radius=8)

    def rect(self, x, y, width, height, fill, radius=0):
        corner = f' rx="{radius}"' if radius else ""
        at = f'x="{fixed(x)}" y="{fixed(y)}" width="{fixed(width)}" height="{fixed(height)}"'
        self.out.append(f'<rect {at} fill="{fill}"{corner}/>')

    def text(self, x, y, text, colour="ink", size=13, weight=None, anchor=None):
        more = f' font-weight="{weight}"' if weight else ""
        more += f' text-anchor="{anchor}"' if anchor else ""
        place = f'x="{fixed(x)}" y="{fixed(y)}" font-size="{size}" fill="{self.theme[colour]}"'
        self.out.append(f"<text {place}{more}>{escape(text)}</text>")

    def colour(self, at):
        return self.theme["parts"][at % len(self.theme["parts"])]

    def strip(self, y, height, parts):
        """Parts `(size, colour)` side by side, to scale."""
        whole = sum(size for size, _ in parts)
        before = 0
        for size, colour in parts:
            self.rect(MARGIN + INNER * before / whole, y, INNER * size / whole, height, self.colour(colour))
            before += size

    def legend(self, y, items, columns):
        for at, (colour, text) in enumerate(items):
            x, line = MARGIN + INNER * (at % columns) / columns, y + 19 * (at // columns)
            self.rect(x, line - 10, 10, 10, self.colour(colour), radius=2)
            self.text(x + 16, line, text, "soft", 12)

    def stacked(self, y, height, rows):
        """Rows of bins as areas on top of each other."""
        bins = len(rows[0])
        step = -(-bins // COLUMNS)
        rows = [[sum(row[at : at + step]) for at in range(0, bins, step)] for row in rows]
        columns = len(rows[0])
        most = max(sum(row[at] for row in rows) for at in range(columns))
        self.rect(MARGIN, y, INNER, height, self.theme["card"])
        width = INNER / columns
        for column in range(columns):
            base = y + height
            for at, row in enumerate(rows):
                size = row[column] / most * (height - 4)
                base -= size
                if size:
                    self.rect(MARGIN + column * width, base, width - 1, size, self.colour(at))
        self.rect(MARGIN, y + height, INNER, 1, self.theme["line"])

    def svg(self, title):
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        head += ' role="img" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">'
        return "\n".join([head, f"<title>{escape(title)}</title>", *self.out, "</svg>", ""])


def draw(theme, data):
    info, charts = data["info"], data["charts"]
    features = {feature.get("name"): feature.get("value") for feature in info["features"]}
    rooms = charts["rooms"]
    # The records have the first colour, and the other parts the next ones, as in the page.
    look = [0 if room["records"] else at + 1 for at, room in enumerate(rooms)]
    rest = [at for at, room in enumerate(rooms) if not room["records"]]
    samples = sum(item["count"] for item in info["records"] if item["type"] == "SAMPLE")
    records = sum(item["count"] for item in info["records"])
    span = info["sample_time"]["last"] - info["sample_time"]["first"]

    picture = Picture(theme)
    picture.text(MARGIN, 34, Path(RECORDING).name, size=18, weight=600)
    facts = [
        info["container"], info["byte_order"], f"{charts['size'] / 1024:.1f} KiB", f"{grouped(records)} records",
        f"{grouped(samples)} samples", f"{span / 1e9:.3f} s", f"perf {features['VERSION']}", features["ARCH"],
    ]
    picture.text(MARGIN, 56, " · ".join(facts), "soft")

    picture.text(MARGIN, 86, "Layout, to scale", weight=600)
    picture.strip(94, 26, [(room["size"], look[at]) for at, room in enumerate(rooms)])
    picture.text(MARGIN, 138, f"Without the records: {grouped(sum(rooms[at]['size'] for at in rest))} bytes", "soft", 12)
    picture.strip(145, 26, [(rooms[at]["size"], look[at]) for at in rest])
    largest = sorted(range(len(rooms)), key=lambda at: (-rooms[at]["size"], at))[:8]
    # The feature table keeps its full name; a feature section is shortened to its name in capitals.
    short = lambda name: name.split()[-1] if name.split()[-1].isupper() else name
    label = lambda room: f"{short(room['name'])}: {grouped(room['size'])} bytes"
    picture.legend(191, [(look[at], label(rooms[at])) for at in sorted(largest)], 4)

    def chart(y, height, title, bins, start, end):
        rows = sorted(bins["rows"], key=lambda row: -sum(row["bins"]))
        if len(rows) > 8:
            others = [sum(column) for column in zip(*(row["bins"] for row in rows[7:]))]
            rows = rows[:7] + [{"name": "others", "bins": others}]
        picture.text(MARGIN, y, title, weight=600)
        picture.stacked(y + 8, height, [row["bins"] for row in rows])
        bottom = y + height + 23
        picture.text(MARGIN, bottom, start, "soft", 12)
        picture.text(WIDTH - MARGIN, bottom, end, "soft", 12, anchor="end")
        width = (INNER - 190) / len(rows)
        for at, row in enumerate(rows):
            x = MARGIN + 100 + at * width
            picture.rect(x, bottom - 10, 10, 10, picture.colour(at), radius=2)
            picture.text(x + 16, bottom, f"{row['name']}: {grouped(sum(row['bins']))}", "soft", 12)

    events = charts["events"]
    end = lambda bins: bins["start"] + bins["width"] * len(bins["rows"][0]["bins"])
    seconds = lambda time: f"{time / 1e9:.3f} s"
    chart(246, 150, "Samples by event, over time", events, seconds(events["start"]), seconds(end(events)))
    return picture.svg(f"The layout of {Path(RECORDING).name}, and its samples over time")


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    data = page()
    for name, theme in THEMES.items():
        (folder / f"layout-{name}.svg").write_text(draw(theme, data), encoding="utf-8")


if __name__ == "__main__":
    main()
