# SPDX-License-Identifier: Apache-2.0
"""table.py FILE.json - the Markdown tables and the plot of what run.py measured

A figure is the median of all processes that count, with the least and the greatest.  A process does
not count if it began, or ran, at a load above LOAD for each CPU.  A row is not published if fewer
than PROCESSES count, if one failed, or if its speeds spread more than SPREAD-fold.  All processes
stay in the file.  The tables say themselves where libshard is not ahead.
"""

import html
import json
import statistics
import sys
import textwrap

FORMAT = 2
PROCESSES = 3
LOAD = 0.5
SPREAD = 2


def megabytes(value):
    return f"{value / 1e6:,.0f}"


def milliseconds(value):
    return f"{value * 1e3:,.1f}"


# key: (title, where it is in a process, form, whether more is better, by how much least and
# greatest may differ whatever their ratio, and why libshard may be behind there)
COLUMNS = {
    "delivered": ("images/s delivered", ("hot", "delivered", "per_s"), "{:,.0f}", True, 0,
     "both copy at the speed of memory"),
    "read": ("images/s, every byte read", ("hot", "read", "per_s"), "{:,.0f}", True, 0,
     "both copy at the speed of memory, and the consumer reads what was copied"),
    "cold": ("images/s cold", ("cold", "per_s"), "{:,.0f}", True, 0,
     "libshard reads each record where it lies, in an exactly shuffled order; "
     "reading files from end to end through a shuffle buffer helps the disk's readahead"),
    "cpu": ("CPU s/GB", ("hot", "delivered", "cpu_s_per_GB"), "{:.3f}", False, 0,
     "both copy once; the rest is the interpreter"),
    "pack": ("pack s", ("pack", "pack_s"), "{:.1f}", False, 1,
     "libshard hashes each record, reads every shard back and verifies it before there is a dataset; "
     "a plain copy of the pixels does none of this"),
    "bytes": ("size MB", ("pack", "bytes"), megabytes, False, 0,
     "records begin at multiples that disks and DMA want, and each has a hash; "
     "JPEGs are compressed, and decoded again in each epoch"),
    "open": ("open ms", ("hot", "open_s"), milliseconds, False, 0.01,
     "libshard reads and checks its manifest and the head of each shard; "
     "mapping a file, or leaving all to the first batch, is less work here"),
    "first": ("first batch s", ("hot", "first_s"), "{:.2f}", False, 0.05,
     "libshard's threads fill several slots at once and hash each record of the first epoch; "
     "one batch in the caller's thread is there earlier"),
    "memory": ("memory MB", ("hot", "peak_bytes"), megabytes, False, 0,
     "files that are mapped count here while they are in memory, and a whole epoch maps them all; "
     "the next column leaves them out"),
    "anonymous": ("without files MB", ("hot", "peak_anonymous_bytes"), megabytes, False, 0,
     "libshard's ring holds several batches, filled ahead; a loader without one, or without torch, holds less"),
    "resume": ("resume s", ("resume", "resume_s"), "{:.2f}", False, 0.05,
     "both begin with one batch; libshard fills its ring's other slots meanwhile, "
     "and hashes what this process reads for the first time"),
}  # fmt: skip
SPEEDS = ("delivered", "read", "cold", "cpu")
LIFE = ("pack", "bytes", "open", "first", "memory", "anonymous", "resume")


# ---- figures ----


def get(process, path):
    for key in path:
        process = process.get(key, {})
    return None if process == {} else process


def loads(process):
    """What others did, for each CPU: just before, and while it was timed."""
    paths = (("hot", "delivered", "others"), ("hot", "read", "others"), ("cold", "others"))
    return [x for x in (process.get("load"), *(get(process, path) for path in paths)) if x is not None]


def counted(row):
    return [p for p in row["processes"] if "error" not in p and max(loads(p)) <= LOAD]


def figures(row):
    """{key: (median, least, greatest)} of the processes that count."""
    found = {}
    for key, (_, path, _, _, _, _) in COLUMNS.items():
        values = [v for v in (get(p, path) for p in counted(row)) if v is not None]
        if values:
            found[key] = (statistics.median(values), min(values), max(values))
    return found


def spread(key, figure):
    return figure[2] > SPREAD * figure[1] and figure[2] - figure[1] > COLUMNS[key][4]


def reason(row):
    """(in a word, in a sentence) why the row is not published; None if it is."""
    if "error" in row:
        return "cannot be installed", row["error"]
    for p in row["processes"]:
        if "error" in p:
            return "failed", p["error"]
    busy = [max(loads(p)) for p in row["processes"] if max(loads(p)) > LOAD]
    if len(counted(row)) < PROCESSES:
        words = f"{len(counted(row))} processes count, {PROCESSES} must"
        if busy:
            words += f"; the load of others was {', '.join(f'{x:.2f}' for x in busy)} for each CPU in the rest"
            return "marked: load", f"{words}, and {LOAD} is the limit"
        return "marked: too few", words
    found = figures(row)
    for key in ("delivered", "read"):
        if spread(key, found[key]):
            least, greatest = (COLUMNS[key][2].format(x) for x in found[key][1:])
            return "marked: spread", f"{COLUMNS[key][0]}: {least} to {greatest}, more than {SPREAD}-fold"
    return None


# ---- tables ----


def full_name(row):
    return ", ".join(filter(None, (row["name"], row["way"])))


def linked(text, row):
    """A page of the web; our own is named, since these tables stand in several folders."""
    return f"[{text}]({row['docs']})" if "://" in row["docs"] else text


def form(key, value):
    how = COLUMNS[key][2]
    return how(value) if callable(how) else how.format(value)


def marks(row):
    """Of resuming: without a state; to other records than the ones that followed."""
    resumes = [(p["hot"], p["resume"]) for p in counted(row) if "resume" in p]
    return ("*" if any(not h["has_state"] for h, _ in resumes) else "") + (
        "+" if any(not r["same"] for _, r in resumes) else ""
    )


def cell(row, found, key):
    if key not in found:
        return ""
    if spread(key, found[key]):
        return "spread"
    text, least, greatest = (form(key, x) for x in found[key])
    return text + (f" ({least}..{greatest})" if least != greatest else "") + (marks(row) if key == "resume" else "")


def published(found):
    return [r for r in found["rows"] if not reason(r)]


def ordered(found):
    """libshard, then peers from the fastest on, their lines together, then rows without figures."""

    def speed(row):
        return 0 if reason(row) else figures(row)["delivered"][0]

    best = {}
    for row in found["rows"]:
        best[row["name"]] = max(best.get(row["name"], 0), speed(row))
    return sorted(
        found["rows"],
        key=lambda r: (r["peer"] != "libshard", -best[r["name"]], r["name"], r["line"] == "Common", -speed(r)),
    )


def table(found, keys, last=()):
    """One row a line; last has (title, what it says of a row)."""
    yield "| | " + " | ".join([COLUMNS[k][0] for k in keys] + [title for title, _ in last]) + " |"
    yield "|---|" + "---:|" * (len(keys) + len(last))
    for row in ordered(found):
        why, values = reason(row), figures(row)
        cells = [why[0]] + [""] * (len(keys) + len(last) - 1) if why else [
            *(cell(row, values, k) for k in keys),
            *(say(row) for _, say in last),
        ]  # fmt: skip
        yield f"| {linked(full_name(row), row)} | " + " | ".join(cells) + " |"


def speeds(found):
    yield from table(found, SPEEDS, [("workers", lambda r: str(r["workers"]))])


def lives(found):
    yield from table({**found, "rows": [r for r in published(found) if r["line"] != "Common"]}, LIFE)


def withheld(found):
    """Why a row is not published; which figures of other rows are not."""
    for row in ordered(found):
        if why := reason(row):
            yield f"- {full_name(row)}: {why[0]}. {why[1]}."
        else:
            for key, figure in figures(row).items():
                if spread(key, figure):
                    yield (
                        f"- {full_name(row)}: {COLUMNS[key][0]} is not published, as it spreads more than"
                        f" {SPREAD}-fold: {form(key, figure[1])} to {form(key, figure[2])}."
                    )


def not_ahead(found):
    """(title, names of lines at least as good, reason) of columns where libshard is not ahead."""
    rows = {full_name(r): (r, figures(r)) for r in published(found)}
    ours = next((f for r, f in rows.values() if r["peer"] == "libshard"), {})
    for key, (title, _, _, more, _, why) in COLUMNS.items():
        if key not in ours or spread(key, ours[key]):
            continue
        better = [
            (name, row, values)
            for name, (row, values) in rows.items()
            if row["peer"] != "libshard"
            and key in values
            and not spread(key, values[key])
            and (values[key][0] >= ours[key][0] if more else values[key][0] <= ours[key][0])
        ]
        if better:
            better.sort(key=lambda b: b[2][key][0], reverse=more)
            yield title, "; ".join(f"{name} {cell(row, values, key)}" for name, row, values in better), why


def head(found):
    m = found["machine"]
    return (
        f"{found['records']:,} images of 224 x 224 x 3 bytes, batch {found['batch']}. "
        f"{m['cpu']}, {m['cpus']} CPUs, {m['memory_bytes'] / 2**30:.0f} GiB, "
        f"Linux {m['kernel']}, Python {m['python']}; {found['when']}."
    )


def wrapped(text):
    """Prose of a document, whose lines have 100 columns."""
    return textwrap.wrap(
        text,
        100,
        subsequent_indent="  " if text.startswith(("- ", "  ")) else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def tried(row):
    rates = ", ".join(
        f"{w}: {t['per_s']:,.0f}" if "error" not in t else f"{w}: {t['error']}" for w, t in row.get("trial", {}).items()
    )
    return f" Images/s of the trial, by workers: {rates}." if rates else ""


def markdown(found):
    yield "<!-- SPDX-License-Identifier: Apache-2.0 -->"
    yield from wrapped(head(found))
    yield ""
    yield from wrapped(
        f"A figure is the median of {PROCESSES} processes or more, with the least and the greatest. Before anything is"
        " timed, each process hashes every byte of an epoch and compares it with the data."
    )
    yield ""
    yield from speeds(found)
    yield ""
    yield from lives(found)
    yield ""
    yield from wrapped(
        "`*` marks loaders without a state to resume from: they begin again and drop what was seen. `+` marks those"
        " that went on with other records than those which had followed. Memory is the share of all pages that the"
        " processes hold, files that they map included."
    )
    yield ""
    for title, lines in (
        ("Not published:", withheld(found)),
        ("Where libshard is not ahead:", (f"- {t}: {names}. Reason: {why}." for t, names, why in not_ahead(found))),
    ):
        lines = list(lines)
        if lines:
            yield title
            yield ""
            for text in lines:
                yield from wrapped(text)
            yield ""
    yield "Settings and versions:"
    yield ""
    for row in ordered(found):
        versions = ", ".join(f"{k} {v}" for k, v in sorted(row["versions"].items()))
        yield from wrapped(
            f"- {full_name(row)}: {row['settings']} ({linked('documentation', row)}). {versions or 'Not installed'};"
            f" {len(row['processes'])} processes on {row['when']}.{tried(row)}"
        )


PANELS = [
    ("images/s delivered", "delivered"),
    ("images/s, every byte read", "read"),
    ("images/s, files not in memory", "cold"),
    ("CPU seconds per GB", "cpu"),
]
LEFT, WIDTH, GAP, STEP, TOP = 330, 180, 70, 22, 62


def svg(found):
    """A panel for each of four columns, a bar for each row with a line from least to greatest;
    libshard's are dark."""
    rows = [(r, figures(r)) for r in ordered(found) if not reason(r)]
    wide, high = LEFT + len(PANELS) * (WIDTH + GAP), TOP + STEP * len(rows) + 12
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="12">'
    yield f'<rect width="{wide}" height="{high}" fill="#ffffff"/>'
    yield f'<text x="8" y="18" font-size="13" fill="#222222">{html.escape(head(found))}</text>'
    for i, (row, _) in enumerate(rows):
        weight = ' font-weight="bold"' if row["peer"] == "libshard" else ""
        yield (
            f'<text x="{LEFT - 8}" y="{TOP + STEP * i + 13}" text-anchor="end" fill="#222222"{weight}>'
            f"{html.escape(full_name(row))}</text>"
        )
    for k, (title, key) in enumerate(PANELS):
        x, most = LEFT + k * (WIDTH + GAP), max((f[key][2] for _, f in rows if key in f), default=1)
        yield f'<text x="{x}" y="{TOP - 10}" fill="#222222">{title}</text>'
        for i, (row, values) in enumerate(rows):
            if key in values and not spread(key, values[key]):
                y = TOP + STEP * i
                bar, least, greatest = (max(1, v / most * WIDTH) for v in values[key])
                colour = "#1f4e79" if row["peer"] == "libshard" else "#9dc3e6"
                yield f'<rect x="{x}" y="{y}" width="{bar:.1f}" height="17" fill="{colour}"/>'
                yield f'<path d="M{x + least:.1f} {y + 8.5}H{x + greatest:.1f}" stroke="#c55a11" stroke-width="2"/>'
                yield (
                    f'<text x="{x + greatest + 4:.1f}" y="{y + 13}" font-size="10" fill="#222222">'
                    f"{form(key, values[key][0])}</text>"
                )
    yield "</svg>"


def write(found, results):
    with open(f"{results}.md", "w") as f:
        f.write("\n".join(markdown(found)) + "\n")
    with open(f"{results}.svg", "w") as f:
        f.write("\n".join(svg(found)) + "\n")


def main():
    with open(sys.argv[1]) as f:
        found = json.load(f)
    if found.get("format") != FORMAT:
        sys.exit(f"{sys.argv[1]}: its format is {found.get('format', 1)}, this program reads {FORMAT}; its tables stay")
    write(found, sys.argv[1].removesuffix(".json"))


if __name__ == "__main__":
    main()
