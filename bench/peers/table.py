# SPDX-License-Identifier: Apache-2.0
"""table.py FILE.json - the Markdown table and the plot of what run.py measured

The table says itself where libshard is not ahead.
"""

import html
import json
import sys
import textwrap


def megabytes(value):
    return f"{value / 1e6:,.0f}"


# title, key, form, whether more is better, and why libshard may be behind there
COLUMNS = [
    ("pack s", "pack_s", "{:.1f}", False,
     "libshard hashes each record, reads every shard back and verifies it before there is a dataset; "
     "a plain copy of the pixels does none of this"),
    ("size MB", "bytes", megabytes, False,
     "records begin at multiples that disks and DMA want, and each has a hash; "
     "JPEGs are compressed, and decoded again in each epoch"),
    ("open ms", "open_s", lambda v: f"{v * 1e3:,.1f}", False,
     "libshard reads and checks its manifest and the head of each shard; "
     "mapping a file, or leaving all to the first batch, is less work here"),
    ("first batch s", "first_s", "{:.2f}", False,
     "libshard's threads fill several slots at once and hash each record of the first epoch; "
     "one batch in the caller's thread is there earlier"),
    ("images/s hot", "hot_per_s", "{:,.0f}", True, "both copy at the speed of memory"),
    ("images/s cold", "cold_per_s", "{:,.0f}", True,
     "libshard reads each record where it lies, in an exactly shuffled order; "
     "reading files from end to end through a shuffle buffer helps the disk's readahead"),
    ("CPU s/GB", "cpu_s_per_GB", "{:.2f}", False, "both copy once; the rest is the interpreter"),
    ("memory MB", "peak_bytes", megabytes, False,
     "files that are mapped count here while they are in memory, and a whole epoch maps them all; "
     "the next column leaves them out"),
    ("without files MB", "peak_anonymous_bytes", megabytes, False,
     "libshard's ring holds several batches, filled ahead; a loader without one, or without torch, holds less"),
    ("resume s", "resume_s", "{:.2f}", False,
     "both begin with one batch; libshard fills its ring's other slots meanwhile, "
     "and hashes what this process reads for the first time"),
]  # fmt: skip


def cell(row, key, form):
    if key not in row:
        return ""
    text = form(row[key]) if callable(form) else form.format(row[key])
    return text + ("*" if key == "resume_s" and not row.get("has_state") else "")


def line(row):
    if "hot_per_s" not in row:
        return f"| {row['name']} | does not run" + " |" * (len(COLUMNS) + 2)
    return f"| {row['name']} | " + " | ".join(cell(row, key, form) for _, key, form, _, _ in COLUMNS) + f" | {row['workers']} | {row['checksums'][0][-8:]} |"


def not_ahead(found):
    """(title, names of those at least as good, reason) of columns where libshard is not ahead."""
    ours = next((r for r in found["rows"] if r["peer"] == "libshard" and "hot_per_s" in r), None)
    for title, key, form, more, reason in COLUMNS if ours else ():
        better = [
            r
            for r in found["rows"]
            if r is not ours and key in r and (r[key] >= ours[key] if more else r[key] <= ours[key])
        ]
        if better:
            better.sort(key=lambda r: r[key], reverse=more)
            yield title, ", ".join(f"{r['name']} ({cell(r, key, form)})" for r in better), reason


def ordered(found):
    """libshard, then the fastest first, then what does not run."""
    return sorted(found["rows"], key=lambda r: (r["peer"] != "libshard", -r.get("hot_per_s", 0)))


def head(found):
    m = found["machine"]
    return (
        f"{found['records']:,} images of 224 x 224 x 3 bytes, batch {found['batch']}. "
        f"{m['cpu']}, {m['cpus']} CPUs, {m['memory_bytes'] / 2**30:.0f} GiB, "
        f"Linux {m['kernel']}, Python {m['python']}; {found['when']}."
    )


def table(found):
    yield "| | " + " | ".join(c[0] for c in COLUMNS) + " | workers | pixels |"
    yield "|---|" + "---:|" * (len(COLUMNS) + 2)
    for row in ordered(found):
        yield line(row)


def wrapped(text):
    """Prose of a document, whose lines have 100 columns."""
    return textwrap.wrap(
        text,
        100,
        subsequent_indent="  " if text.startswith(("- ", "  ")) else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def markdown(found):
    yield "<!-- SPDX-License-Identifier: Apache-2.0 -->"
    yield from wrapped(head(found))
    yield ""
    yield from table(found)
    yield ""
    yield from wrapped(
        "`*` marks loaders without a state to resume from: they begin again and drop what was seen. "
        "Memory is the share of all pages that the processes hold, files that they map included."
    )
    yield ""
    behind = list(not_ahead(found))
    if behind:
        yield "Where libshard is not ahead:"
        yield ""
        for title, names, reason in behind:
            yield from wrapped(f"- {title}: {names}. Reason: {reason}.")
        yield ""
    yield "Settings and versions:"
    yield ""
    for row in ordered(found):
        versions = ", ".join(f"{k} {v}" for k, v in sorted(row.get("versions", {}).items()))
        slow = "One hot epoch only, as it is slow. " if len(row.get("epochs", [])) == 2 else ""
        rates = ", ".join(
            f"{w}: {t['hot_per_s']:,.0f}" if "error" not in t else f"{w}: {t['error']}"
            for w, t in row.get("tried", {}).items()
        )
        yield from wrapped(
            f"- {row['name']}: {row['settings']} ([documentation]({row['docs']})). {slow}{versions}."
            + (f" Images/s by workers: {rates}." if rates else "")
        )
        if "error" in row:
            yield f"  Error: {row['error']}"


PANELS = [
    ("images/s, files in memory", "hot_per_s", "{:,.0f}", 1),
    ("images/s, files not in memory", "cold_per_s", "{:,.0f}", 1),
    ("CPU seconds per GB", "cpu_s_per_GB", "{:.2f}", 1),
    ("memory without files, MB", "peak_anonymous_bytes", "{:,.0f}", 1e6),
]
LEFT, WIDTH, GAP, STEP, TOP = 275, 180, 70, 22, 62


def svg(found):
    """A panel for each of four columns, a bar for each row; libshard's are dark."""
    rows = [r for r in ordered(found) if "hot_per_s" in r]
    wide, high = LEFT + len(PANELS) * (WIDTH + GAP), TOP + STEP * len(rows) + 12
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="12">'
    yield f'<rect width="{wide}" height="{high}" fill="#ffffff"/>'
    yield f'<text x="8" y="18" font-size="13" fill="#222222">{html.escape(head(found))}</text>'
    for i, row in enumerate(rows):
        weight = ' font-weight="bold"' if row["peer"] == "libshard" else ""
        yield (
            f'<text x="{LEFT - 8}" y="{TOP + STEP * i + 13}" text-anchor="end" fill="#222222"{weight}>'
            f'{html.escape(row["name"])}</text>'
        )
    for k, (title, key, form, unit) in enumerate(PANELS):
        x, most = LEFT + k * (WIDTH + GAP), max(r.get(key, 0) for r in rows) or 1
        yield f'<text x="{x}" y="{TOP - 10}" fill="#222222">{title}</text>'
        for i, row in enumerate(rows):
            if key in row:
                y, bar = TOP + STEP * i, max(1, row[key] / most * WIDTH)
                colour = "#1f4e79" if row["peer"] == "libshard" else "#9dc3e6"
                yield f'<rect x="{x}" y="{y}" width="{bar:.1f}" height="17" fill="{colour}"/>'
                yield (
                    f'<text x="{x + bar + 4:.1f}" y="{y + 13}" font-size="10" fill="#222222">'
                    f"{form.format(row[key] / unit)}</text>"
                )
    yield "</svg>"


def write(found, results):
    with open(f"{results}.md", "w") as f:
        f.write("\n".join(markdown(found)) + "\n")
    if any("hot_per_s" in r for r in found["rows"]):
        with open(f"{results}.svg", "w") as f:
            f.write("\n".join(svg(found)) + "\n")


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        write(json.load(f), sys.argv[1].removesuffix(".json"))
