#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_same_names.sh - other sources with the names and sizes of those that a finished
# dataset was made of, older or newer, are not taken for them; with --trust-names copies are
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
find v1 -type f -exec touch -d 2021-02-03 {} +
sizes() { (cd "$1" && find . -type f -printf '%p %s\n' | sort); }
[ "$(sizes v1)" = "$(sizes v2)" ] || die "the versions have other sizes"
there="the same dataset is there already (same names, sizes, times and options); nothing to do"
trusted="the same dataset is there already (same names, sizes and options; times were not compared); nothing to do"
cases=0

# told FILE COMMAND...: with @ for the folder of the sources
told() {
	local file=$1 first second third
	shift
	first=("${@//@/v1}") second=("${@//@/v2}") third=("${@//@/copy}")
	rm -rf ds whole parts
	run 0 "$PACK" "${first[@]}" -o ds -j1 -q
	# Other sources, newer or older, and copies.
	for when in 2020-01-01 2022-01-01; do
		find v2 -type f -exec touch -d $when {} +
		for option in "" --dry-run; do
			run 5 "$PACK" "${second[@]}" -o ds $option
			grep -q "^shardpack: v2.*/$file: changed since ds was made: written 2021-02-0.* then, ${when:0:4}-.* now; to \
pack it as it is, pack everything again with --replace; if only its time differs, as in a copy, add --trust-names$" err ||
				die "$*: $(cat err)"
		done
	done
	run 5 "$PACK" plan "${second[@]}" -o ds
	grep -q "to pack it as it is, remove ds and begin again with .shardpack plan.; if only" err || die "$*: $(cat err)"
	run 5 "$PACK" "${third[@]}" -o ds
	run 0 "$PACK" "${third[@]}" -o ds --trust-names
	said "shardpack: ds: $trusted"
	run 0 "$PACK" "${first[@]}" -o ds
	said "shardpack: ds: $there"
	run 0 "$PACK" "${first[@]}" -o ds --dry-run
	printed "output already there; nothing to do"
	# Whoever makes it makes the same bytes, and dataset.sources has the times of the plan.
	run 0 "$PACK" plan "${first[@]}" -o parts -q
	run 0 "$PACK" build parts --part 1/2 -q
	run 0 "$PACK" build parts --part 0/2 --trust-names -q --source "$(sed 's,/v1\b,/copy,' parts/.shardpack/source)"
	run 0 "$PACK" seal parts -q
	same ds parts
	run 0 "$PACK" "${third[@]}" -o whole -j3 -q
	rm parts/dataset.sources
	cp -r whole bare && rm bare/dataset.sources
	same bare parts
	# --replace takes what it is given.
	run 0 "$PACK" "${second[@]}" -o ds --replace -q
	run 5 "$PACK" "${first[@]}" -o ds
	run 0 "$PACK" "${second[@]}" -o ds -q
	# Without times nothing is known: they are lost, or an earlier version made the dataset.
	for release in "" "shardpack-kept 1"; do
		[ ! "$release" ] || echo "$release" >bare/dataset.sources
		run 5 "$PACK" "${third[@]}" -o bare
		said "shardpack: bare/dataset.sources: is missing, cut, or of another release, so nothing says whether the sources \
are still those that were packed; if they are, add --trust-names; if not, pack everything again with --replace"
		run 0 "$PACK" "${third[@]}" -o bare --trust-names
		said "shardpack: bare: $trusted"
	done
	rm -r bare
	cases=$((cases + 1))
}

pixels=(--resize 8 --crop 8 --shard-records 5)
told x.npy array @/x.npy --shard-records 15
told y.npz array @/y.npz --shard-records 15
told r.bin raw @/r.bin --schema 'x:u8[16]' --shard-records 15
told t.bin tokens @/t.bin --seq-len 8 --dtype u16 --shard-records 15
told t10k-images-idx3-ubyte mnist @/mnist --split test --shard-records 15
told 0/00.ppm images @/src "${pixels[@]}"
told src/0/00.ppm images @/images.csv "${pixels[@]}"
told i.tar images @/i.tar "${pixels[@]}"
told i.zip images @/i.zip "${pixels[@]}"
told j.tar.gz images @/j.tar.gz "${pixels[@]}"

# ---- files that trade their names, and links that lead elsewhere ----

renamed=0
other() { # other COMMAND...: the sources of ds are others now
	run 5 "$PACK" "$@" -o ds
	grep -q ": changed since ds was made: written 20" err || die "$*: $(cat err)"
	rm -rf ds
	renamed=$((renamed + 1))
}
for folder in swap next; do
	for i in 0/a 0/b 0/c 1/a 1/b 1/c; do
		mkdir -p $folder/${i%/*}
		{ printf 'P6 16 16 255\n' && head -c 768 /dev/urandom; } >$folder/$i.ppm
		touch -d "2021-01-01 00:00:0${#folder}.0${renamed}" $folder/$i.ppm
		renamed=$((renamed + 1))
	done
done
renamed=0
rm -rf ds
run 0 "$PACK" images swap -o ds "${pixels[@]}" -q
mv swap/0 swap/x && mv swap/1 swap/0 && mv swap/x swap/1 # classes
other images swap "${pixels[@]}"
run 0 "$PACK" images swap -o ds "${pixels[@]}" -q
mv swap old && mv next swap # the source itself
other images swap "${pixels[@]}"
ln -s swap now
run 0 "$PACK" images now -o ds "${pixels[@]}" -q
ln -sfn old now
other images now "${pixels[@]}"
mkdir -p links elsewhere && ln -s ../v1/t.bin links/a.bin && ln -s ../links links/below && cp -p v2/t.bin elsewhere/a.bin
run 0 "$PACK" tokens links/below/a.bin -o ds --seq-len 8 --dtype u16 -q
ln -sfn ../elsewhere links/below
other tokens links/below/a.bin --seq-len 8 --dtype u16
run 0 "$PACK" tokens links/a.bin -o ds --seq-len 8 --dtype u16 -q
ln -sfn ../v2/t.bin links/a.bin
other tokens links/a.bin --seq-len 8 --dtype u16
# What changes no time of a source changes nothing.
run 0 "$PACK" images swap -o ds "${pixels[@]}" -q
touch swap/README swap/0/README && rm swap/README
mv swap/0 aside && mv aside swap/0
chmod o-r swap/0/a.ppm
ln swap/0/a.ppm another.name
run 0 "$PACK" images swap -o ds "${pixels[@]}"
said "shardpack: ds: $there"

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
cmp state/sources ds/.shardpack/sources
# ... with times that say there are no files of their own
run 0 "$PACK" plan images v1/src -o few "${pixels[@]}" -q
run 0 "$PACK" build few -q
cp -rp few/.shardpack state2
run 0 "$PACK" seal few -q
rm few/dataset.sources
mv state2 few/.shardpack
{ head -c 56 few/.shardpack/sources && head -c 8 /dev/zero; } >head
mv head few/.shardpack/sources
run 1 "$PACK" images v1/src -o few "${pixels[@]}"
said "shardpack: few/.shardpack/sources: damaged, or of another plan; if the sources are those that were packed, add --trust-names"
for verb in "array v1/x.npy -o ds --shard-records 15" "seal ds"; do
	begun
	# shellcheck disable=SC2086 # words
	run 0 "$PACK" $verb
	same whole ds
	begun
	mv ds/.shardpack/sources ds/dataset.sources # the next step
	# shellcheck disable=SC2086
	run 0 "$PACK" $verb
	same whole ds
done

# ---- times that are lost, damaged, or of another dataset ----

run 0 "$PACK" images v1/src -o plain "${pixels[@]}" -q
run 0 "$PACK" plan array v1/x.npy -o lost --shard-records 15 -q
run 0 "$PACK" build lost -q
rm lost/.shardpack/sources
run 0 "$PACK" seal lost
said "shardpack: warning: lost/.shardpack/sources: is missing, so the dataset does not know when its sources were written"
[ ! -e lost/dataset.sources ] || die "made of nothing"
cp plain/dataset.sources lost
run 1 "$PACK" array v1/x.npy -o lost --shard-records 15
said "shardpack: lost/dataset.sources: damaged, or of another plan; if the sources are those that were packed, add --trust-names"
cp -r whole hurt
head -c -1 whole/dataset.sources >hurt/dataset.sources
run 1 "$PACK" array v1/x.npy -o hurt --shard-records 15
said "shardpack: hurt/dataset.sources: damaged, or of another plan; if the sources are those that were packed, add --trust-names"
# One that an earlier dataset left does not hide that of a new one that was stopped at its end.
begun
cp plain/dataset.sources ds
run 0 "$PACK" array v1/x.npy -o ds --shard-records 15
same whole ds
# It is a part of the dataset for --replace.
run 0 "$PACK" array v2/x.npy -o whole --shard-records 15 --replace -q
contents whole | grep -q dataset.sources || die "$(contents whole)"

# Negative control: without times other sources pass for those of then.
break_pack source_times.c 's/^\t\tif (then->file_ns\[i\] != now->file_ns\[i\])$/\t\tif (false)/'
rm -rf ds && run 0 ./broken array v1/x.npy -o ds -q
run 0 ./broken array v2/x.npy -o ds
echo "$cases sources whose names and sizes another version has, $renamed under other names; stops, gaps, damage;" \
	"the control takes them"
