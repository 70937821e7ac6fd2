#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples/demo.sh [BUILD] - from photographs to a trained classifier
#
# `make demo` builds and then runs this.  Every command is printed as it is run, to be copied; what
# they make goes to BUILD/demo, which each run empties first.
set -eu

cd "$(dirname "$0")/.."
build=${1:-build}
demo=$build/demo
bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ] && [ "${TERM:-dumb}" != dumb ]; then
	bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi

say() {
	printf '\n%s\n' "$*"
}

run() { # one command, exactly as it can be typed
	printf '%s$ %s%s\n' "$bold" "$1" "$plain"
	eval "$1"
}

for program in bin/shardpack bin/shardcat examples/train_loop; do
	[ -x "$build/$program" ] || { echo "$build/$program is not built: run 'make demo'" >&2 && exit 1; }
done
rm -rf "$demo"
mkdir -p "$demo"
began=$(date +%s)

say "144 photographs of 9 things, as JPEG files in a folder per class.  Decode and resize them once, for good:"
run "$build/bin/shardpack images examples/photos/train -o $demo/train --resize 256 --crop 224"

say "The validation set gets the class numbers of the training set:"
run "$build/bin/shardpack images examples/photos/val -o $demo/val --resize 256 --crop 224 --classes $demo/train"

say "What is in it now?"
run "$build/bin/shardcat info $demo/train"

say "Is every byte of both as it was written?"
run "$build/bin/shardcat verify $demo/train --sha256"
run "$build/bin/shardcat verify $demo/val --sha256"

say "A record is found by arithmetic, so any of them is as near as the first:"
run "$build/bin/shardcat get $demo/train 17"
run "$build/bin/shardcat get $demo/train 17 --field image --png --out $demo/17.png"

say "Two shuffled epochs.  Each has an order of its own, which a seed repeats on any machine, for any number of ranks:"
run "$build/bin/shardcat order $demo/train --seed 1 --epoch 0 | head -n 12 | paste -s -d ' ' -"
run "$build/bin/shardcat order $demo/train --seed 1 --epoch 1 | head -n 12 | paste -s -d ' ' -"
run "$build/bin/shardcat order $demo/train --seed 1 --epoch 1 | sort -u | wc -l"

say "Train on batches from the loader.  The program is examples/train_loop.c, plain C to copy from:"
run "$build/examples/train_loop $demo/train $demo/val"

control="With the labels of the training set mixed up there is nothing to learn, and accuracy falls to chance"
say "Is that real?  $control:"
run "$build/examples/train_loop $demo/train $demo/val --permute-labels --epochs 5"

say "And a look at the data:"
run "$build/bin/shardcat show $demo/train --out $demo/sheet.png"

say "Done in $(($(date +%s) - began)) s.  Look at $demo/sheet.png; then pack a folder of your own:"
echo "  $build/bin/shardpack images FOLDER -o DATASET --resize 256 --crop 224"
