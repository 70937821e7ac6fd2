#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cuda/bench.sh - the benchmark that needs a GPU does what it says on a driver without one,
# and keeps its table
# TAKES: 45
# shellcheck disable=SC1091,SC2016,SC2154
. "$ROOT/tests/cuda/lib.sh"

mkdir -p bench results
objects=("$BUILD"/bench/common/*.o)
# The ring has room for three epochs of so few records, and may be ahead by them: POOL_AHEAD.
# shellcheck disable=SC2046 # words
host_build bench/gpu "$(echo "$ROOT"/bench/gpu*.cu)" '' -DSHARD_RECORDS=72 -DTRANSFORM_LAUNCHES=2 \
	-DMULTIPLY_ROUNDS=1000 -DMULTIPLY_LAUNCHES=50 -DFULL_THREADS=1 -DROUND_BYTES='(64ull<<20)' -DPOOL_LANES=2 -DPOOL_WINDOW_RUNS=2 -DPOOL_RUN_RECORDS=8 \
	-DPOOL_AHEAD=4 -DSMALL_SHARD_BYTES='(1ull<<20)' -DSMALL_BATCH_BYTES='(1ull<<20)' -DSMALL_WINDOW_RUNS=2 \
	"$(host_twins)" "${objects[@]}" $(pkg-config --libs libxxhash)
echo "# Runs" >results/README.md

# The row beside PyTorch: a Python that has none; later one that has, without a GPU; and one that
# says how an epoch went.
printf '#!/bin/sh\nexit 1\n' >python-bare
printf '#!/bin/sh\n[ "$1" = -c ] || { echo "finds no GPU"; exit 77; }\n' >python-blind
printf '#!/bin/sh\n[ "$1" = -c ] || { [ "$1 $2 $3" = "bench/gpu_torch.py 256 150528" ] && [ $# = 27 ] && echo "1.25 3"; }\n' >python-torch
chmod +x python-*
BUILD=$PWD PYTHON=$PWD/python-bare RUNS=1 COMMIT=c0ffee1 "$ROOT/bench/gpu.sh" "$PWD/results" >out 2>err ||
	die "gpu.sh: $(cat out err)"
file=$(cd results && echo ./*.json)
[[ $file = ./20??-??-??-gpu-host-9-a.json ]] || die "the file of Host 9/A is called $file"
"$PYTHON" - "results/$file" "$ROOT/bench/TARGETS" <<'PY' || die "$(cat err)"
import json
import re
import sys

machine, gpu, run, *rows = [json.loads(line) for line in open(sys.argv[1])]
assert set(machine) == {"machine"} and gpu["gpu"] == "Host 9/A" and gpu["driver"] == "12.0", (machine, gpu)
assert run == {"commit": "c0ffee1", "command": "make bench-gpu RUNS=1"}, run
names = [row["bench"] for row in rows if "ours" in row]
stream = ["gpu/stream/150528" + threads for threads in ("", "/1", "/2", "/4", "/6", "/8", "/12")]
wanted = ["gpu/copy-engine/" + x for x in ("65536", "150528", "1048576", "16777216", "38535168")]
wanted += [f"gpu/streams/{size}/{n}{part}" for size in (65536, 150528) for n in (1, 2, 4, 8) for part in ("", "/cpu")]
wanted += [name + part for name in stream for part in ("", "/cpu")]
wanted.insert(wanted.index("gpu/stream/150528/cpu") + 1, "gpu/stream/150528/waits")
wanted += ["gpu/idle/" + x for x in ("0.5", "1.25", "2", "4", "2/full")]
wanted += ["gpu/beside-compute", "gpu/beside-compute/stream", "gpu/first-batch"]
wanted += ["gpu/transform/" + x for x in ("f16", "f32", "f16/resized")]
wanted += ["gpu/stream/" + x for x in ("4096", "4096/cpu", "4096/waits", "64", "64/cpu", "64/waits")]
wanted += ["gpu/pool/" + x for x in ("held", "held/cpu", "held/link")]
wanted += ["gpu/pool/" + x for x in ("cache", "cache/cpu", "cache/waits", "direct", "direct/cpu")]
targets = {line.split()[0] for line in open(sys.argv[2]) if line.startswith("gpu/")}
assert names == wanted, names
for row in rows:
    if "ours" in row and not re.search("idle|link|waits", row["bench"]):
        assert row["ours"] > 0, rows
no_torch = "not here: no Python with PyTorch; PYTHON=/path/to/python names one"
assert {"bench": "gpu/torch/150528", "skipped": no_torch} in rows, rows
assert [row["ours"] for row in rows if row["bench"] == "gpu/pool/held/link"] == [0], rows
assert targets == {row["bench"] for row in rows if "at_least" in row or "at_most" in row}, targets
idle = {row["bench"]: row["ours"] for row in rows if "idle" in row["bench"]}
assert all(0 <= value <= 100 for value in idle.values()), idle
PY
[ "$(tail -n 1 results/README.md)" = \
	"| \`${file#./}\` | Host 9/A, driver for CUDA 12.0; $(sed -n '1s/.*"cpu": "\([^"]*\)".*/\1/p' "results/$file"), \
$(sed -n '1s/.*"kernel": "\([^"]*\)".*/\1/p' "results/$file") | \`c0ffee1\` | $(sed -n '1s/.*"date": "\([^"]*\)".*/\1/p' "results/$file") | \`make bench-gpu RUNS=1\` |" ] ||
	die "results/README.md says: $(cat results/README.md)"

grep -q 'transforms go round 101 MB of images; the cache of the GPU has 1 MB' err || die "$(cat err)"

# What was measured is kept of a run that fails, and of one that is stopped.
mv bench/gpu bench/gpu.good
fake() { # LINE...: a program that prints the head of a run, a row, and goes on with these
	printf '%s\n' '#!/bin/sh' "sed -n '1,2p;4p' '$PWD/results/${file#./}'" "$@" >bench/gpu
	chmod +x bench/gpu
}
run() { BUILD=$PWD COMMIT=c0ffee1 exec "$ROOT/bench/gpu.sh" "$PWD/kept"; }
row=$(sed -n 4p "results/$file")
kept() { # WHY STATUS RC
	[ "$3" = "$2" ] || die "$1: exit status $3"
	[ "$(find kept -type f | wc -l)" = 2 ] || die "$1: $(ls kept)"
	sed -n 3p kept/*.json | grep -q "\"incomplete\": \"$1\"}\$" || die "$1: $(cat kept/*.json)"
	[ "$(sed 1,3d kept/*.json)" = "$row" ] || die "$1: $(cat kept/*.json)"
	grep -q "| \`make bench-gpu\`, incomplete: $1 |\$" kept/README.md || die "$1: $(cat kept/README.md)"
	rm -r kept
}
rc=0 && mkdir kept
fake 'printf "{\"bench\": \"half a"' 'exit 3'
(run) 2>/dev/null || rc=$?
kept "exit status 3" 3 $rc
mkfifo reached
rc=0 && mkdir kept
fake "echo >'$PWD/reached'" 'exec tail -f /dev/null'
run 2>err &
read -r _ <reached
kill $!
wait $! || rc=$?
kept stopped 143 $rc
rc=0 && mkdir kept
printf '#!/bin/sh\necho "{\\"machine\\": {}}"; exit 3\n' >bench/gpu
(run) 2>/dev/null || rc=$?
[ $rc = 3 ] && [ -z "$(ls kept)" ] || die "a run without a row: exit status $rc, $(ls kept)"
mv bench/gpu.good bench/gpu
BUILD=$PWD PYTHON=$PWD/python-torch RUNS=1 BENCH=gpu/torch COMMIT=c0ffee1 "$ROOT/bench/gpu.sh" "$PWD/results" 2>err ||
	die "$(cat err)"
[ "$(find results -name '*.json' | wc -l)" = 2 ] && [ "$(wc -l <results/README.md)" = 3 ] ||
	die "the second run: $(ls results)"
grep -q '"candidate": "PyTorch, DataLoader(pin_memory=True)", "bound": 1.25, ' results/*-2.json &&
	grep -q 'PyTorch with 3 workers' err ||
	die "beside PyTorch: $(cat err results/*-2.json)"
(cd "$ROOT" && PYTHON=$TMPDIR/python-blind "$TMPDIR/bench/gpu" --dir "$TMPDIR" --runs 1 --only gpu/torch/150528) >out \
	2>err || die "$(cat err)"
grep -q '^{"bench": "gpu/torch/150528", "skipped": "not here: finds no GPU"}$' out || die "without a GPU: $(cat out)"

# On a machine that is lent, a part that fails and one that hangs cost only themselves.  A skip is
# not a failure.  The folders are named from where the user is.
all=$TMPDIR/results/$file
mkdir -p b/lent/bench b/lent/python/bin short
: >b/lent/python/bin/shardpack
printf '%s\n' '#!/bin/sh' 'shift 2' "exec $(command -v timeout) --kill-after=1 2 \"\$@\"" >short/timeout
printf '%s\n' '#!/bin/sh' 'case $1 in *pool*) echo "no such memory"; exit 77 ;; esac' >b/lent/t_real
cat >b/lent/bench/gpu <<SH
#!/bin/sh
sed -n 1,2p '$all'
[ ! -e "\$2/small-64" ] || { echo "finds what another process left" >&2; exit 8; }
mkdir -p "\$2/photos" "\$2/small-64"
case \$4 in
gpu/pool) printf '{"bench": "gpu/pool/held", "ou' && echo "a driver's error" >&2 && exit 3 ;;
gpu/idle) exec tail -f /dev/null ;;
esac
grep -F "{\"bench\": \"\$4" '$all' || exit 7
SH
cat >python-lent <<'SH'
#!/bin/sh
[ "$1" = -c ] && exit
[ -d "$PYTHONPATH" ] || exit 9
case "$*" in */gpu_.py) echo "finds no GPU"; exit 77 ;; *"--model resnet50"*) exit 5 ;; *resnet18*) echo '{"bench": "train"}' ;; esac
SH
chmod +x short/timeout b/lent/t_real b/lent/bench/gpu python-lent
rc=0
PATH=$TMPDIR/short:$PATH PYTHON=$TMPDIR/python-lent COMMIT=c0ffee1 "$ROOT/bench/gpu_all.sh" measure b lent-results 2>err ||
	rc=$?
[ $rc = 3 ] || die "measure: exit status $rc; $(cat err)"
parts=$(sed 's/  */ /g; s/ [0-9]* s / /' lent-results/parts.txt)
[ "$(grep -c '^t_real/' <<<"$parts")" = "$(grep -c '^TEST(' "$ROOT/tests/cuda/t_real.c")" ] || die "parts: $parts"
[ "$(grep -v ' passed$' <<<"$parts")" = "t_real/runs_come_to_a_pool_out_of_the_page_cache skipped: no such memory
gpu/pool FAILED: exit status 3; a driver's error
gpu/idle FAILED: no end within 60 s
package skipped: finds no GPU" ] || die "parts: $parts"
[ "$(tail -n "$(wc -l <lent-results/parts.txt)" err)" = "$(cat lent-results/parts.txt)" ] || die "no summary: $(cat err)"
grep -q "a driver's error" lent-results/gpu-pool.log || die "logs: $(ls lent-results)"
"$PYTHON" - "$all" "$TMPDIR"/lent-results/*.json "$ROOT/bench" <<'PY' || die "rows: $(cat lent-results/*.json)"
import json
import sys

sys.path.insert(0, sys.argv[3])
import publish

every, run = publish.Run(sys.argv[1]), publish.Run(sys.argv[2])
lost = [name for name in every.rows if name not in run.rows]
assert run.gpu == every.gpu and run.machine == every.machine and list(run.machine), run.gpu
assert run.told["incomplete"] == "failed: gpu/pool, gpu/idle", run.told
assert len(run.rows) + len(lost) == len(every.rows), run.rows
assert lost and all(name.startswith(("gpu/pool/", "gpu/idle/")) for name in lost), lost
assert sum("machine" in json.loads(line) for line in open(sys.argv[2])) == 1
PY
rc=0
PYTHON=$TMPDIR/python-lent "$ROOT/bench/gpu_all.sh" train b lent-results 2>err || rc=$?
[ $rc = 5 ] && [ "$(sed 's/  */ /g; s/ [0-9]* s / /' lent-results/parts.txt)" = "train/resnet50 FAILED: exit status 5
train/resnet18 passed
train/all-sides passed" ] && [ "$(cat lent-results/train.json)" = '{"bench": "train"}' ] ||
	die "train: exit status $rc; $(cat lent-results/parts.txt err)"

# A driver that refuses the page cache: the row is of the slower way, and says so.
cat >refuse.c <<'C'
#include "tests/cuda/fake.h"
__attribute__((constructor)) static void refuse(void)
{
	fake_find()->fail("cuMemHostRegister", 2, 801); /* the first one is that of the copy engine's memory */
}
C
gcc -shared -fPIC "${host_flags[@]}" refuse.c -o refuse.so -ldl
(cd "$ROOT" && LD_PRELOAD=$TMPDIR/refuse.so ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" \
	"$TMPDIR/bench/gpu" --dir "$TMPDIR" --runs 1 --only gpu/beside-compute) >out 2>err || die "$(cat err)"
grep -q '"gpu/beside-compute", "ours"' out && grep -q 'some of it by a slower way: .*CUDA_ERROR_NOT_SUPPORTED' err || die "refused: $(cat out err)"

if [ -n "$nvcc" ]; then
	"$nvcc" -std=c++17 -O3 -arch=sm_75 -Werror all-warnings -I"$ROOT/include" -I"$ROOT" -c "$ROOT"/bench/gpu*.cu
	with="and compiled by $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/nvcc \1/p')"
else
	with="nothing was compiled for a GPU: nvcc is not here, or a sanitizer is"
fi
echo "every row on the host; $with"
