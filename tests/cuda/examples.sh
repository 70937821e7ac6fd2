#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cuda/examples.sh - examples/cuda run on a driver without a GPU, and compile for one wherever
# nvcc is
# TAKES: 30
# shellcheck disable=SC1091
. "$ROOT/tests/cuda/lib.sh"
epochs=4
[ -z "$san" ] || epochs=1 # what it learns is known without sanitizers

# ---- for the host ----

build() { # NAME SCRIPT
	host_build "$1" "$ROOT/examples/cuda/train_loop.cu" "$2" "$twins"
}
gcc "${host_flags[@]}" "$ROOT/examples/cuda/h2d_stream.c" "${host_libs[@]}" -o h2d_stream
twins=$(host_twins)
build train_loop ''

"$BUILD/bin/shardpack" images "$ROOT/examples/photos/train" -o ds --resize 64 --crop 64 -q

./h2d_stream ds >out || die "h2d_stream: $(cat out)"
grep -qE '^108 records, [0-9]+ bytes, [0-9.]+ GB/s$' out && [ "$(wc -l <out)" = 1 ] || die "h2d_stream says: $(cat out)"
! ./h2d_stream nowhere 2>err || die "h2d_stream read nothing and is content"
grep -q '^h2d_stream: nowhere.*: No such file or directory$' err || die "h2d_stream says of nothing: $(cat err)"

# Prints "first last": the mean losses of the first and last epoch.
losses() { # PROGRAM EPOCHS
	"./$1" ds --epochs "$2" --seed 3 >"$1.out" || die "$1: $(cat "$1.out")"
	[ "$(grep -cE '^epoch +[0-9]+  loss [0-9.]+  accuracy [01]\.[0-9]{3}  GPU idle [0-9.]+ %$' "$1.out")" = \
		"$2" ] || die "$1 says: $(cat "$1.out")"
	awk 'NR == 1 { first = $4 } { last = $4 } END { print first, last }' "$1.out"
}
falls() { # FIRST LAST: by a tenth at least
	awk -v first="$1" -v last="$2" 'BEGIN { exit !(last < 0.9 * first) }'
}
read -r first last <<<"$(losses train_loop $epochs)"
learns() {
	falls "$first" "$last" || die "the loss does not fall: $(cat train_loop.out)"
	cp train_loop.out once
	losses train_loop 2 >/dev/null
	[ "$(sed -n '1s/GPU.*//p' once)" = "$(sed -n '1s/GPU.*//p' train_loop.out)" ] ||
		die "the same seed does not give the same first epoch: $(cat once train_loop.out)"

	# It would be seen if the network did not learn, or learnt from what is not its batch.
	build still 's/0\.03f \* \(1 - /0 * (1 - /'
	read -r a b <<<"$(losses still 2)"
	! falls "$a" "$b" || die "a network that stands still seems to learn: $(cat still.out)"
	build blank 's/if \(shard_transform_launch\(.*/if (0)/'
	read -r a b <<<"$(losses blank $epochs)"
	! falls "$a" "$b" || die "a network that sees nothing seems to learn: $(cat blank.out)"
	build others 's/int64_t best = 0, want = label\[i\]/int64_t best = 0, want = label[i] * 0 + i % classes/'
	read -r a b <<<"$(losses others $epochs)"
	! falls "$a" "$b" || die "labels that are none seem to be learnt: $(cat others.out)"
}
[ $epochs = 1 ] || learns

# ---- for GPUs ----

if [ -n "$nvcc" ]; then
	"$nvcc" -O3 -arch=sm_75 -Werror all-warnings -I"$ROOT/include" -c "$ROOT/examples/cuda/train_loop.cu" \
		-o train_loop.o
	"$nvcc" -O2 -Xcompiler -Wall,-Wextra,-Werror -I"$ROOT/include" -c "$ROOT/examples/cuda/h2d_stream.c" \
		-o h2d_stream.o
	with="and compiled by $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/nvcc \1/p')"
else
	with="nothing was compiled for a GPU: nvcc is not here, or a sanitizer is"
fi
echo "loss $first to $last in $epochs epochs on the host; $with"
