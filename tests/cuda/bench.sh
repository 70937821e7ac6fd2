#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cuda/bench.sh - the benchmark that needs a GPU does what it says on a driver without one, and keeps its table
# shellcheck disable=SC1091
. "$ROOT/tests/cuda/lib.sh"

mkdir -p bench results
objects=("$BUILD"/bench/common/*.o)
# shellcheck disable=SC2046 # words
host_build bench/gpu "$ROOT/bench/gpu.cu" '' -DSHARD_RECORDS=72 "${objects[@]}" $(pkg-config --libs libxxhash)
echo "# Runs" >results/README.md

BUILD=$PWD RUNS=1 COMMIT=c0ffee1 "$ROOT/bench/gpu.sh" "$PWD/results" >out 2>err || die "gpu.sh: $(cat out err)"
file=$(cd results && echo ./*.json)
"$PYTHON" - "results/$file" "$ROOT/bench/TARGETS" <<'PY' || die "$(cat err)"
import json
import sys

machine, gpu, run, *rows = [json.loads(line) for line in open(sys.argv[1])]
assert set(machine) == {"machine"} and gpu["gpu"] == "host" and gpu["driver"] == "12.0", (machine, gpu)
assert run == {"commit": "c0ffee1", "command": "make bench-gpu RUNS=1"}, run
names = [row["bench"] for row in rows if "ours" in row]
stream = ["gpu/stream/150528" + threads for threads in ("", "/1", "/2", "/4", "/6")]
wanted = [name + part for name in stream for part in ("", "/cpu")] + ["gpu/idle/" + x for x in ("0.5", "1.25", "2", "4")]
assert names == wanted + ["gpu/beside-compute", "gpu/first-batch"], names
assert all(row["ours"] > 0 for row in rows if "ours" in row and "idle" not in row["bench"]), rows
targets = {line.split()[0] for line in open(sys.argv[2]) if line.startswith("gpu/")}
assert targets == {row["bench"] for row in rows if "at_least" in row or "at_most" in row}, targets
idle = {row["bench"]: row["ours"] for row in rows if "idle" in row["bench"]}
assert all(0 <= value <= 100 for value in idle.values()), idle
PY
[ "$(tail -n 1 results/README.md)" = "| \`${file#./}\` | host, driver for CUDA 12.0; $(sed -n '1s/.*"cpu": "\([^"]*\)".*/\1/p' "results/$file"), \
$(sed -n '1s/.*"kernel": "\([^"]*\)".*/\1/p' "results/$file") | \`c0ffee1\` | $(sed -n '1s/.*"date": "\([^"]*\)".*/\1/p' "results/$file") | \`make bench-gpu RUNS=1\` |" ] ||
	die "results/README.md says: $(cat results/README.md)"

# Nothing is kept of a run that fails, and a second one of a day has a name of its own.
printf '#!/bin/sh\necho "{\"machine\": {}}"; exit 3\n' >bench/gpu.bad
mv bench/gpu bench/gpu.good
cp bench/gpu.bad bench/gpu && chmod +x bench/gpu
! BUILD=$PWD "$ROOT/bench/gpu.sh" "$PWD/results" 2>/dev/null || die "a failed run is no failure"
[ "$(echo results/*.json)" = "results/${file#./}" ] || die "a failed run was kept: $(ls results)"
mv bench/gpu.good bench/gpu
BUILD=$PWD RUNS=1 BENCH=gpu/first-batch COMMIT=c0ffee1 "$ROOT/bench/gpu.sh" "$PWD/results" 2>err || die "$(cat err)"
[ "$(find results -name '*.json' | wc -l)" = 2 ] && [ "$(wc -l <results/README.md)" = 3 ] || die "the second run: $(ls results)"

if [ -n "$nvcc" ]; then
	"$nvcc" -std=c++17 -O3 -arch=sm_75 -Werror all-warnings -I"$ROOT/include" -I"$ROOT" -c "$ROOT/bench/gpu.cu" -o gpu.o
	with="and compiled by $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/nvcc \1/p')"
else
	with="nvcc is not here, so nothing was compiled for a GPU"
fi
echo "every row on the host; $with"
