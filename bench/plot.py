#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw the loader's rows of a results file: ours and the bound, as bars in GB/s.

    plot.py RESULTS.json OUT.png

RESULTS.json is what `make bench` printed.  A bar is the median of the processes that were not
disturbed.  Rows that were skipped or are not there are left out; their absence is not marked.
Needs Pillow, and looks best with the DejaVu fonts.
"""
import json
import os
import re
import statistics
import sys

from PIL import Image, ImageDraw, ImageFont

WIDTH, LEFT, RIGHT, BAR, GAP = 960, 250, 150, 13, 12
INK, DIM, LINE = (32, 36, 41), (105, 112, 120), (222, 225, 229)
OURS, BOUND = (31, 111, 178), (190, 197, 205)

# Title, rows, what the bound is.
PARTS = [
    ("In the page cache", r"loader/hot/(\d+)/(\d+)$", "best bare copy loop, same records, same order"),
    ("In the page cache, LZ4", r"loader/lz4/(\d+)/(\d+)$", "bare loop that decodes each chunk once"),
    ("First epoch and later ones", r"loader/(first|later)/(\d+)$", "the same without checking hashes"),
    ("Not in memory", r"loader/cold/(\d+)(/checked|/1)?$", "best bare O_DIRECT loop, unchecked"),
]


def font(size, bold=False):
    try:
        return ImageFont.truetype("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default()


def size_name(text):
    count = int(text)
    if count >= 1 << 20:
        return f"{count >> 20} MiB"
    return f"{count >> 10} KiB" if count >= 1024 and count % 1024 == 0 else f"{count:,} B"


def row_name(found):
    first, second = found.groups()
    if first in ("first", "later"):
        return f"{size_name(second)}, " + ("first epoch, hashed" if first == "first" else "later epochs")
    if "/cold/" in found.string:
        how = {"/checked": ", hashed", "/1": ", 1 thread"}
        return size_name(first) + how.get(second, "")
    return f"{size_name(first)}, {second} thread" + ("s" if second != "1" else "")


def read(path):
    """The machine, and the parts that have rows: [(title, bound, [(name, ours, bound)])]."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.strip()]
    machine = next((line["machine"] for line in lines if "machine" in line), {})
    rows = {}
    for line in lines:
        if "ours" in line and "bound" in line and line.get("unit") == "GB/s" and "marked" not in line:
            rows.setdefault(line["bench"], []).append(line)
    parts = []
    for title, pattern, bound in PARTS:
        found = [(re.match(pattern, name), row) for name, row in rows.items()]
        bars = [(row_name(match), *(statistics.median(line[side] for line in row) for side in ("ours", "bound")))
                for match, row in found if match]
        if bars:
            parts.append((title, bound, bars))
    return machine, parts


def machine_text(path, machine):
    date = machine.get("date")
    if not date:
        found = re.search(r"\d{4}-\d\d-\d\d", os.path.basename(path))
        date = found.group() if found else "date unknown"
    words = [machine.get("cpu", "unknown CPU"), f"{machine.get('cores', '?')} cores",
             f"{machine.get('cache_mib', '?')} MiB cache", machine.get("kernel", "unknown system"), date]
    return ", ".join(words)


def tick_step(most):
    return next(step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if most / step <= 10)


def draw_axis(draw, top, bottom, scale, most):
    step = tick_step(most)
    for i in range(int(most / step) + 1):
        x = LEFT + i * step * scale
        draw.line((x, top, x, bottom), fill=LINE)
        draw.text((x, bottom + 4), f"{i * step:g}", font=font(12), fill=DIM, anchor="ma")
    draw.text((WIDTH - RIGHT + 10, bottom + 4), "GB/s", font=font(12), fill=DIM)


def draw_row(draw, y, scale, name, ours, bound):
    draw.text((LEFT - 12, y + BAR), name, font=font(14), fill=INK, anchor="rm")
    draw.rectangle((LEFT, y, LEFT + max(1, ours * scale), y + BAR - 1), fill=OURS)
    draw.rectangle((LEFT, y + BAR, LEFT + max(1, bound * scale), y + 2 * BAR - 1), fill=BOUND)
    end = LEFT + max(ours, bound) * scale + 8
    draw.text(
        (end, y + BAR), f"{ours:#.3g} of {bound:#.3g}: {100 * ours / bound:.0f} %", font=font(13), fill=INK, anchor="lm"
    )


def plot(path, machine, parts):
    most = max(max(ours, bound) for _, _, bars in parts for _, ours, bound in bars)
    scale = (WIDTH - LEFT - RIGHT) / most
    height = 118 + sum(40 + len(bars) * (2 * BAR + GAP) for _, _, bars in parts)
    image = Image.new("RGB", (WIDTH, height), "white")
    draw = ImageDraw.Draw(image)
    draw.text((24, 18), "libshard's loader and the fastest plain loops", font=font(18, True), fill=INK)
    draw.text((24, 46), machine_text(path, machine) + "; medians, both sides in turn", font=font(12), fill=DIM)
    draw_axis(draw, 76, height - 34, scale, most)
    y = 84
    for title, bound, bars in parts:
        draw.text((24, y), title, font=font(14, True), fill=INK)
        x = LEFT
        for colour, word in ((OURS, "loader"), (BOUND, bound)):
            draw.rectangle((x, y + 3, x + 10, y + 13), fill=colour)
            draw.text((x + 16, y + 9), word, font=font(12), fill=DIM, anchor="lm")
            x += 30 + int(draw.textlength(word, font=font(12)))
        y += 28
        for bar in bars:
            draw_row(draw, y, scale, *bar)
            y += 2 * BAR + GAP
        y += 12
    return image.quantize(32)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    machine, parts = read(sys.argv[1])
    if not parts:
        sys.exit(f"{sys.argv[1]}: has no row of the loader with a bound in GB/s")
    plot(sys.argv[1], machine, parts).save(sys.argv[2], optimize=True)


if __name__ == "__main__":
    main()
