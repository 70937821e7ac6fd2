#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_same_names.sh - other sources with the names and sizes of those that a finished
# dataset was made of, and older than it, are not taken for them; copies of these are, whatever
# their times
# shellcheck disable=SC1091,SC2016
. "$ROOT/tests/cli/lib.sh"

# Two versions of everything, v2 with other bytes of the same sizes, and a copy of v1
"$PYTHON" - <<'EOF'
import gzip, io, numpy, os, struct, tarfile, zipfile
for version in 1, 2:
    def path(name):
        os.makedirs(os.path.dirname(f"v{version}/{name}"), exist_ok=True)
        return f"v{version}/{name}"
    ppm = [b"P6 8 8 255\n" + bytes([16 * i + version]) * 192 for i in range(12)]
    numpy.save(path("x.npy"), numpy.full((40, 4), version))
    numpy.savez(path("y.npz"), x=numpy.full((40, 4), version))
    numpy.full(40 * 16, version, "u1").tofile(path("r.bin"))
    (numpy.arange(40 * 17) % 5 + version).astype("u2").tofile(path("t.bin"))
    open(path("mnist/t10k-images-idx3-ubyte"), "wb").write(struct.pack(">4I", 2051, 40, 28, 28) + bytes(40 * 784))
    open(path("mnist/t10k-labels-idx1-ubyte"), "wb").write(struct.pack(">2I", 2049, 40) + bytes([version]) * 40)
    for i, data in enumerate(ppm):
        open(path(f"src/{i % 2}/{i:02}.ppm"), "wb").write(data)
    open(path("images.csv"), "w").writelines(["path,label\n"] + [f"src/{i % 2}/{i:02}.ppm,{i}\n" for i in range(12)])
    with tarfile.open(path("i.tar"), "w") as tar, zipfile.ZipFile(path("i.zip"), "w") as zip:
        for i, data in enumerate(ppm):
            info = tarfile.TarInfo(f"{i % 2}/{i:02}.ppm")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
            zip.writestr(zipfile.ZipInfo(info.name), data)
    tar = open(path("i.tar"), "rb").read()
    with open(path("j.tar.gz"), "wb") as f, gzip.GzipFile("", "wb", 0, f, 0) as g:
        g.write(tar)
EOF
cp -r v1 copy
find v1 -type f -exec touch -d 2001-02-03 {} +
sizes() { (cd "$1" && find . -type f -printf '%p %s\n' | sort); }
[ "$(sizes v1)" = "$(sizes v2)" ] || die "the versions have other sizes"
there="the same dataset is there already (same names, sizes, options and fingerprints); nothing to do"
cases=0

# told FILE COMMAND...: with @ for the folder of the sources
told() {
	local file=$1 first second third
	shift
	first=("${@//@/v1}") second=("${@//@/v2}") third=("${@//@/copy}")
	rm -rf ds whole parts
	run 0 "$PACK" "${first[@]}" -o ds -j1 -q
	# Other sources, all of them older.
	for option in "" --trust-names --dry-run; do
		run 5 "$PACK" "${second[@]}" -o ds $option
		grep -q "^shardpack: v2.*/$file: has other bytes than the file of which the dataset in ds was made; \
give another folder with -o, or pack all anew with --replace$" err || die "$*: $(cat err)"
	done
	run 5 "$PACK" plan "${second[@]}" -o ds
	grep -q "give another folder with -o, or remove ds and begin again with .shardpack plan.$" err ||
		die "$*: $(cat err)"
	# The same ones, all of them newer: in another place, and in their own.
	run 0 "$PACK" "${third[@]}" -o ds
	said "shardpack: ds: $there"
	run 0 "$PACK" "${first[@]}" -o ds --dry-run
	printed "output already there; nothing to do"
	# Whoever makes it makes the same bytes, dataset.sources included.
	run 0 "$PACK" "${third[@]}" -o whole -j3 -q
	same ds whole
	run 0 "$PACK" plan "${first[@]}" -o parts -q
	run 0 "$PACK" build parts --part 1/2 -q
	run 0 "$PACK" build parts --part 0/2 --trust-names -q --source "$(sed 's,/v1\b,/copy,' parts/.shardpack/source)"
	run 0 "$PACK" seal parts -q
	same ds parts
	# --replace takes what it is given.
	run 0 "$PACK" "${second[@]}" -o ds --replace -q
	run 5 "$PACK" "${first[@]}" -o ds
	run 0 "$PACK" "${second[@]}" -o ds -q
	# A dataset of before keeps none: then times tell, and the sentence says what they do not.
	rm whole/dataset.sources
	run 0 "$PACK" "${second[@]}" -o whole
	said "shardpack: whole: the same dataset is there already (same names, sizes and options; it has no \
dataset.sources, so others of these names and sizes are not noticed; no source is newer); nothing to do"
	[ ! -e whole/dataset.sources ] || die "made of nothing"
	cases=$((cases + 1))
}

pixels=(--resize 8 --crop 8 --shard-records 5)
told x.npy array @/x.npy --shard-records 15
told y.npz array @/y.npz --shard-records 15
told r.bin raw @/r.bin --schema 'x:u8[16]' --shard-records 15
told t.bin tokens @/t.bin --seq-len 8 --dtype u16 --shard-records 15
told t10k-labels-idx1-ubyte mnist @/mnist --split test --shard-records 15
told 0/00.ppm images @/src "${pixels[@]}"
told src/0/00.ppm images @/images.csv "${pixels[@]}"
told i.tar images @/i.tar "${pixels[@]}"
told i.zip images @/i.zip "${pixels[@]}"
told j.tar.gz images @/j.tar.gz "${pixels[@]}"

# ---- where a fingerprint does not cover every byte, a newer file is another one ----

mkdir -p many/a
"$PYTHON" - <<'EOF'
import numpy
for i in range(1000):
    open(f"many/a/{i:04}.ppm", "wb").write(b"P6 4 4 255\n" + bytes([i % 256]) * 48)
numpy.save("large.npy", numpy.zeros((400, 65536), "u1"))
EOF
run 0 "$PACK" images many -o ds2 --resize 4 --shard-records 100 -q
[ "$(sed -n '/^inputs 256$/,/^files 0$/p' ds2/dataset.sources | grep -cx '[0-9a-f]\{32\}')" = 256 ] ||
	die "the sample: $(cat ds2/dataset.sources)"
touch many/a/0000.ppm # it is in the sample
run 0 "$PACK" images many -o ds2 --resize 4 --shard-records 100
said "shardpack: ds2: $there"
touch many/a/0001.ppm # it is not
run 5 "$PACK" images many -o ds2 --resize 4 --shard-records 100
grep -q "^shardpack: many/a/0001.ppm: is newer than the dataset in ds2: " err || die "$(cat err)"
run 0 "$PACK" images many -o ds2 --resize 4 --shard-records 100 --trust-names
said "shardpack: ds2: $there"
# Names on the way count for files that are not in the sample, and only for these.
run 0 "$PACK" images many -o ds2 --resize 4 --shard-records 100 --replace -q
run 0 "$PACK" images v1/src -o ds3 "${pixels[@]}" -q
: >probe
until [ "$(find probe -newer ds3/dataset.manifest)" ]; do touch probe; done # the clock of files may stand still
for folder in many/a v1/src/1; do mv $folder aside && mv aside $folder; done
run 5 "$PACK" images many -o ds2 --resize 4 --shard-records 100
grep -q "^shardpack: many/a/0000.ppm: is newer than the dataset in ds2: " err || die "$(cat err)"
run 0 "$PACK" images v1/src -o ds3 "${pixels[@]}" -q
rm -r ds3
run 0 "$PACK" array large.npy -o ds3 --shard-records 50 -q
printf x | dd of=large.npy bs=1 seek=$((200 * 65536 + 100)) conv=notrunc status=none # between two pages
run 5 "$PACK" array large.npy -o ds3 --shard-records 50
grep -q "large.npy: is newer than the dataset in ds3: " err || die "$(cat err)"

# ---- a run that was stopped behind the manifest ----

begun() { # begun: at ds, the manifest is there, dataset.sources is not, and .shardpack is
	rm -rf ds state
	run 0 "$PACK" plan array v1/x.npy -o ds --shard-records 15 -q
	run 0 "$PACK" build ds -q
	cp -rp ds/.shardpack state
	run 0 "$PACK" seal ds -q
	[ -e whole ] || cp -rp ds whole
	rm ds/dataset.sources
	cp -rp state ds/.shardpack
}
rm -rf whole
begun
run 5 "$PACK" array v2/x.npy -o ds --shard-records 15
run 5 "$PACK" array v2/x.npy -o ds --shard-records 15 --trust-names
cmp state/sources ds/.shardpack/sources
# ... with sources that say there are no files of their own
run 0 "$PACK" plan images v1/src -o few "${pixels[@]}" -q
run 0 "$PACK" build few -q
cp -rp few/.shardpack state2
run 0 "$PACK" seal few -q
rm few/dataset.sources
mv state2 few/.shardpack
{ printf 'shardpack-sources 2\n' && head -c 12 /dev/zero && printf '\014' && head -c 31 /dev/zero; } >head
mv head few/.shardpack/sources
run 1 "$PACK" images v1/src -o few "${pixels[@]}"
said "shardpack: few/.shardpack/sources: damaged, or of another plan"
for verb in "array v1/x.npy -o ds --shard-records 15" "seal ds"; do
	begun
	# shellcheck disable=SC2086 # words
	run 0 "$PACK" $verb
	same whole ds
done

# ---- a file that cannot be read when the plan is made has its fingerprint later ----

run 0 "$PACK" images v1/src -o plain "${pixels[@]}" -q
for command in build single; do
	rm -rf late
	chmod 0 v1/src/1/05.ppm
	run 0 powerless "$PACK" plan images v1/src -o late "${pixels[@]}" -q
	run 3 powerless "$PACK" build late
	chmod 644 v1/src/1/05.ppm
	if [ $command = build ]; then
		run 0 "$PACK" build late -q
		run 0 "$PACK" seal late -q
	else
		run 0 "$PACK" images v1/src -o late "${pixels[@]}" -q
	fi
	same plain late
done

# ---- one that is lost, damaged, or of another dataset ----

run 0 "$PACK" plan array v1/x.npy -o lost --shard-records 15 -q
run 0 "$PACK" build lost -q
rm lost/.shardpack/sources
run 0 "$PACK" seal lost
said "shardpack: warning: lost/.shardpack/sources: is missing, so the dataset keeps no fingerprints of its sources"
[ ! -e lost/dataset.sources ] || die "made of nothing"
cp plain/dataset.sources lost
run 1 "$PACK" array v1/x.npy -o lost --shard-records 15
said "shardpack: lost/dataset.sources: damaged, or of another dataset; if you remove it, only times tell whether the \
sources are the same"
for edit in 's/^files 1/files 2/' '$d' 's/^\([0-9a-f]\{32\}\)$/-\1/' 's/^dataset ./dataset 0/'; do
	cp -r whole hurt
	sed "$edit" whole/dataset.sources >hurt/dataset.sources
	if cmp -s whole/dataset.sources hurt/dataset.sources; then die "this edits nothing: $edit"; fi
	run 1 "$PACK" array v1/x.npy -o hurt --shard-records 15 --trust-names
	{ grep -v '^end' hurt/dataset.sources; } >text # with an end line that is right
	{ cat text && echo "end $(sha256sum <text | cut -d ' ' -f 1)"; } >hurt/dataset.sources
	[ "$edit" = '$d' ] || run 1 "$PACK" array v1/x.npy -o hurt --shard-records 15
	rm -r hurt
done
# One that an earlier dataset left does not hide those of a new one that was stopped at its end.
begun
cp plain/dataset.sources ds
run 0 "$PACK" array v1/x.npy -o ds --shard-records 15
cmp ds/dataset.sources whole/dataset.sources
# It is a part of the dataset for --replace.
run 0 "$PACK" array v2/x.npy -o whole --shard-records 15 --replace -q
contents whole | grep -q dataset.sources || die "$(contents whole)"

# Negative control: without fingerprints other sources pass for those of then.
break_pack origin_check.c 's/^\treturn !memcmp(then->print.*;$/\treturn true;/'
rm -rf ds && run 0 ./broken array v1/x.npy -o ds -q
run 0 ./broken array v2/x.npy -o ds
echo "$cases sources whose names and sizes another version has; stops, gaps, damage; the control takes them"
