# SPDX-License-Identifier: Apache-2.0
"""table.py FILE.json - the Markdown table and the plot of a run of run.py; refuses one whose rows read other pixels"""

import json
import sys

COLUMNS = [
    ("pack s", "pack_s", "{:.1f}"), ("size MB", "bytes", lambda v: f"{v / 1e6:,.0f}"), ("open ms", "open_s", lambda v: f"{v * 1e3:,.1f}"),
    ("first batch s", "first_s", "{:.2f}"), ("images/s hot", "hot_per_s", "{:,.0f}"), ("images/s cold", "cold_per_s", "{:,.0f}"),
    ("CPU s/GB", "cpu_s_per_GB", "{:.2f}"), ("memory MB", "peak_bytes", lambda v: f"{v / 1e6:,.0f}"),
    ("without files MB", "peak_anonymous_bytes", lambda v: f"{v / 1e6:,.0f}"), ("resume s", "resume_s", "{:.2f}"), ("workers", "workers", "{}"),
]  # fmt: skip


def cell(row, key, form):
    if key not in row:
        return ""
    text = form(row[key]) if callable(form) else form.format(row[key])
    return text + ("*" if key == "resume_s" and not row.get("has_state") else "")


def line(row):
    if "error" in row and "hot_per_s" not in row:
        return f"| {row['name']} | does not run: {row['error'].replace('|', '/')} |" + " |" * (len(COLUMNS))
    return f"| {row['name']} | " + " | ".join(cell(row, key, form) for _, key, form in COLUMNS) + f" | {checksum(row)} |"


def checksum(row):
    found = set(row.get("checksums", []))
    return found.pop()[-8:] if len(found) == 1 else "differs" if found else ""


def check(found):
    """Every epoch of every row must have read the same pixels."""
    seen = {c for row in found["rows"] for c in [*row.get("checksums", []), *([row["checksum"]] if "checksum" in row else [])]}
    if len(seen) > 1:
        names = [row["name"] for row in found["rows"] if checksum(row) != checksum(found["rows"][0])]
        sys.exit(f"rows read other pixels: {', '.join(names)}")


def markdown(found):
    m = found["machine"]
    yield f"{found['records']:,} images of 224 x 224 x 3 bytes, batch {found['batch']}. {m['cpu']}, {m['cpus']} CPUs, {m['memory_bytes'] / 2**30:.0f} GiB, Linux {m['kernel']}, Python {m['python']}; {found['when']}."
    yield ""
    yield "| | " + " | ".join(name for name, _, _ in COLUMNS) + " | pixels |"
    yield "|---|" + "---:|" * (len(COLUMNS) + 1)
    for row in found["rows"]:
        yield line(row)
    yield ""
    yield "`*`: no state to resume from; it begins again and drops what was seen. Memory is the share of all pages that the processes hold, files that they map included."
    yield ""
    for row in found["rows"]:
        versions = ", ".join(f"{k} {v}" for k, v in sorted(row.get("versions", {}).items()))
        yield f"- {row['name']}: {row['settings']} ([documentation]({row['docs']})). {versions}"
        if "error" in row:
            yield f"  Error: {row['error']}"


def svg(found):
    rows = [r for r in found["rows"] if "hot_per_s" in r]
    top, width, left, step = max(r["hot_per_s"] for r in rows), 520, 240, 34
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 100}" height="{step * len(rows) + 40}" font-family="sans-serif" font-size="12">'
    yield f'<text x="{left}" y="16">images/s: hot (dark), cold (light)</text>'
    for i, r in enumerate(rows):
        y = 26 + step * i
        yield f'<text x="{left - 8}" y="{y + 17}" text-anchor="end">{r["name"]}</text>'
        for k, (key, colour) in enumerate((("hot_per_s", "#1f4e79"), ("cold_per_s", "#9dc3e6"))):
            if key in r:
                bar = max(1, r[key] / top * width)
                yield f'<rect x="{left}" y="{y + 13 * k}" width="{bar:.1f}" height="12" fill="{colour}"/>'
                yield f'<text x="{left + bar + 4:.1f}" y="{y + 13 * k + 10}" font-size="10">{r[key]:,.0f}</text>'
    yield "</svg>"


def write(found, results):
    with open(f"{results}.md", "w") as f:
        f.write("\n".join(markdown(found)) + "\n")
    if any("hot_per_s" in r for r in found["rows"]):
        with open(f"{results}.svg", "w") as f:
            f.write("\n".join(svg(found)) + "\n")


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        data = json.load(f)
    check(data)
    write(data, sys.argv[1].removesuffix(".json"))
