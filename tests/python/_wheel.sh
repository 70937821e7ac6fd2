#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/python/_wheel.sh [ROOT] - build the wheel, install it where there is no compiler, and use all of it
# TIMEOUT: 3600
#
# ROOT, or else $BARE, is the folder of a system of its own, as `debootstrap --variant=minbase
# --include=python3-pip,python3-venv` makes one; the wheel is installed by its pip, as root.  Without
# it the wheel goes to a virtual environment, where PATH has nothing else.  With ARCH=aarch64 the
# kernel must know qemu as the way to run its programs (binfmt_misc), and the wheel must be there.
# BUILD is the build of this checkout, by this machine's compiler and libraries: datasets that it
# packs are compared with those of the wheel, record by record.  Where the compiler or a source cannot
# be fetched, it is skipped.
set -euo pipefail
here=$(realpath "$(dirname "$0")/../..")
build=$(realpath "${BUILD:-$here/build}")
root=${1:-${BARE-}} root=${root:+$(realpath "$root")}
work=$(mktemp -d "${root:-${TMPDIR:-/tmp}}${root:+/tmp}/wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$here"
# What was fetched and built before is used again, so a second run takes a minute.
under=${build#"$here"/} # as make spells it
by_pip() { make DEPS=skip BUILD="$under" "$under/venv/$1/packages" || { echo "pip got no $2" && exit 77; }; }
by_pip wheel "compiler for the wheel"
status=0
"$build/venv/wheel/bin/python" python/wheel/libraries.py sources "$build/wheel/sources" || status=$?
[ "$status" = 0 ] || exit "$status" # 77 if a source is missing; it was named
make DEPS=skip BUILD="$under" wheel-run
version=$("$build/bin/shardpack" --version | sed -n '1s/^shardpack //p')
wheel=$(realpath "$build/wheel/libshard-$version"-*_"${ARCH:-x86_64}".whl)
by_pip audit "programs that look at wheels"
(
	cd "$build/venv/audit/bin"
	./auditwheel show "$wheel" | grep -o "tag: \"manylinux_2_28_${ARCH:-x86_64}\""
	./abi3audit --strict "$wheel"
	./twine check --strict "$wheel"
	./check-wheel-contents "$wheel"
)
inside=${work#"$root"} # how the system calls the folder

die() {
	echo "wheel: $*" >&2
	exit 1
}
if [ -n "$root" ]; then
	on() { chroot "$root" env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/nowhere sh -ec "cd $inside; $1"; }
	python=python3
	places=("$root/usr" "$root/var/lib" "$root/etc")
else
	python3 -m venv "$work/venv"
	on() { (cd "$work" && env -i PATH="$work/venv/bin" HOME=/nowhere /bin/sh -ec "$1"); }
	python=python
	places=("$work/venv")
fi
for compiler in cc gcc clang; do
	! on "command -v $compiler" >/dev/null || die "there is a $compiler, so this would prove nothing"
done
list() { find "${places[@]}" ! -type d ! -name '*.pyc' ! -name __pycache__ ! -path '*/.cache/*' | sort; }

cp "$wheel" "$work"
# auditwheel looks at the extension only.
newest=$(cd "$work" && python3 -m zipfile -e "$wheel" whole &&
	readelf --version-info whole/*/scripts/* | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
[ "$(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.28 ] || die "the commands want $newest"
[ "$(readelf --file-header "$work"/whole/*/scripts/* | grep -c 'Type: *DYN')" = 2 ] ||
	die "the commands have the same addresses in each run"
for program in "$work"/whole/*/scripts/* "$work"/whole/libshard/_core*.so; do
	# grep reads all: if it ended at once, as with -q, readelf could fail.
	[ "$(readelf --dyn-syms --wide "$program" | grep -c 'UND memcpy@GLIBC')" != 0 ] ||
		die "${program##*/} copies with the memcpy of the compiler's runtime, which is slower than that of glibc"
done
! on "$python -c 'import libshard'" 2>/dev/null || die "libshard is there already; uninstall it first"
list >"$work/before"
words=$(on "$python -m pip install --help" | grep -o -- '--break-system-packages' | head -n 1 || true)
begin=$(date +%s%N)
on "$python -m pip install --quiet --no-index --root-user-action=ignore ${words} ./${wheel##*/}"
ms=$((($(date +%s%N) - begin) / 1000000))
on 'shardpack --version; shardcat --version' >"$work/versions"

# ---- papers: a licence and a version of all that is inside ----

cat >"$work/papers.py" <<'END'
import email, json, pathlib, sys

info, versions = next(pathlib.Path(sys.argv[1]).glob("*.dist-info")), pathlib.Path(sys.argv[2]).read_text()
sbom = json.loads((info / "sboms" / "libshard.cdx.json").read_text())
metadata = email.message_from_string((info / "METADATA").read_text())
named = {f"licenses/{name}" for name in metadata.get_all("License-File")}
there = {str(path.relative_to(info)) for path in (info / "licenses").rglob("*") if path.is_file()}
wrong = [f"License-File and the folder differ: {name}" for name in sorted(named ^ there)]
by_libarchive = {"xz": "liblzma/", "bzip2": "bz2lib/"}
for part in sbom["components"]:
    name, version = part["name"], part.get("version")
    if not any(path.startswith(f"licenses/{name}/") for path in there):
        wrong.append(f"no licence of {name}")
    if name in ("liburing", "zig", "glibc", "photographs"):
        continue  # no data is read by them
    if by_libarchive.get(name, f"{name} ") + version not in versions:
        wrong.append(f"--version does not say {name} {version}")
for licence in (said["expression"] for part in sbom["components"] for said in part["licenses"] if "expression" in said):
    for word in set(licence.split(" AND ")) - set(metadata["License-Expression"].split(" AND ")):
        if " WITH " not in word:  # it asks for nothing
            wrong.append(f"License-Expression lacks {word}")
if sbom["metadata"]["component"]["version"] != metadata["Version"] or f"shardpack {metadata['Version']}\n" not in versions:
    wrong.append(f"this is not version {metadata['Version']} everywhere")
sys.exit("\n".join(wrong) or 0)
END
python3 "$work/papers.py" "$work/whole" "$work/versions" || die "papers: see above"
# Old versions, another version of the wheel, and a licence that is missing must be found.
sed 's/\(zstd \)[0-9.]*/\10.1/; s/^shardpack /&9/' "$work/versions" >"$work/old"
grep -q 'zstd 0\.1' "$work/old" || die "--version says no version of zstd, so no mistake was planted there"
cp -r "$work/whole" "$work/less"
rm "$work"/less/*.dist-info/licenses/zlib/LICENSE
[ "$(python3 "$work/papers.py" "$work/less" "$work/old" 2>&1 | grep -c .)" = 4 ] ||
	die "of 4 mistakes planted, the check of papers sees: $(python3 "$work/papers.py" "$work/less" "$work/old" 2>&1)"

# ---- the same bytes as from this checkout's own build ----

cp -r "$here/examples/photos" "$work/photos"
# Other formats, of the same pictures.
if ! /usr/bin/python3 - "$work/photos/train" <<'END'; then echo "no Pillow here: only JPEGs are compared"; fi
import sys
from pathlib import Path
from PIL import Image

made = Path(sys.argv[1], "made")
photos = sorted(Path(sys.argv[1]).glob("*/*.jpg"))[:3]
made.mkdir()
for number, photo in enumerate(photos):
    picture = Image.open(photo).convert("RGB")
    for name, options in {
        "444.jpg": {"subsampling": 0}, "422.jpg": {"subsampling": 1}, "progressive.jpg": {"progressive": True},
        "plain.png": {}, "lossy.webp": {"quality": 70}, "lossless.webp": {"lossless": True}, "plain.gif": {},
        "lzw.tif": {"compression": "tiff_lzw"}, "jpeg.tif": {"compression": "jpeg"},
        "deflate.tif": {"compression": "tiff_adobe_deflate"},
    }.items():
        picture.save(made / f"{number}_{name}", **options)
    picture.convert("L").save(made / f"{number}_grey.jpg")
    picture.convert("P").save(made / f"{number}_palette.png")
    picture.convert("CMYK").save(made / f"{number}_cmyk.jpg")
END
# AVIFs of every kind.  Their colours are not the same with every libavif and libyuv.
PYTHONPATH=$here/tests/cli python3 - "$work/avif/all" <<'END'
import base64, pathlib, sys
from avif_files import FILES

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True)
for name, (digest, data) in FILES.items():
    if digest:
        (folder / f"{name}.avif").write_bytes(base64.b85decode(data))
END
tar -C "$work/photos/train" -cJf "$work/photos.tar.xz" gravel
tar -C "$work/photos/train" -cjf "$work/photos.tar.bz2" coffee
number=0
for options in 'photos/train' 'photos/train --compress lz4' 'photos/train --dtype f16 --crop 96 --resize 120' \
	'photos/train --layout chw --order source' 'photos.tar.xz photos.tar.bz2' 'avif --resize 32 --exif apply'; do
	number=$((number + 1))
	# shellcheck disable=SC2086 # words
	(cd "$work" && "$build/bin/shardpack" images -o "here$number" --quiet $options)
	on "shardpack images -o there$number --quiet $options"
	sizes() { (cd "$work/$1" && stat -c '%n %s' -- *.shard); }
	[ "$(sizes "here$number")" = "$(sizes "there$number")" ] || die "shards of other sizes with '$options'"
done
# A shard notes the versions of the decoders, which differ.  Its records, keys and labels may not.
cat >"$work/same.py" <<'END'
import sys
import libshard

def records(path):
    ds = libshard.open(path)
    return [(ds.key(i), {name: bytes(as_bytes(value)) for name, value in ds[i].items()}) for i in range(len(ds))]

def as_bytes(value):
    return value.tobytes() if hasattr(value, "tobytes") else repr(value).encode()

here, there = records(sys.argv[1]), records(sys.argv[2])
sys.exit(0 if here and here == there else "records differ")
END
for n in $(seq "$number"); do
	on "exec $python same.py here$n there$n" || die "other records than the build of this machine"
done
if on "exec $python same.py here1 there4" 2>/dev/null; then die "the comparison finds no difference"; fi
on 'shardcat verify --quiet there1; shardcat verify --quiet there2; shardcat prove-order --quiet there1 --batch 2'
# A flipped byte must be found, or verify proves nothing.
printf '\377' | dd of="$(find "$work/there3" -name '*.shard' | head -n 1)" bs=1 seek=5000 conv=notrunc status=none
if on 'shardcat verify --quiet there3' 2>/dev/null; then die "verify does not find a damaged byte"; fi
on "exec $python - there1" <<'END'
import sys, time
begin = time.perf_counter()
import libshard
took = time.perf_counter() - begin
ds = libshard.open(sys.argv[1])
seen = sum(len(batch["label"]) for batch in libshard.Loader(ds, batch_size=3, seed=1, tail="keep"))
assert seen == len(ds) > 0, (seen, len(ds))
print(f"loaded {seen} records; import took {took * 1000:.0f} ms")
END

# ---- the instructions of this CPU are used, which the wheel's compiler alone would not find ----

if [ "${ARCH:-x86_64}" = "$(uname -m)" ]; then
	cpus() { sed -n 's/.* CPUs  *[^;]*//p'; }
	cpu=$("$build/bin/shardcat" doctor 2>&1 | cpus) found=$(on 'shardcat doctor 2>&1' | cpus)
	[ "$found" = "$cpu" ] || die "the wheel finds that the CPU has '$found', and the build of this machine '$cpu'"
	if [ "$(uname -m)" = x86_64 ] && grep -qw sse4_2 /proc/cpuinfo; then
		on "exec $python -c 'import sys, libshard._core as c; sys.exit(not c.CRC32C_IS_FAST)'" ||
			die "CRC-32C goes by tables, though the CPU has SSE4.2"
	fi
fi

# ---- nothing stays ----

on "$python -m pip uninstall --quiet --yes --root-user-action=ignore ${words} libshard"
list >"$work/after"
diff "$work/before" "$work/after" || die "uninstalling leaves files behind"
cat "$work/versions"
echo "installed in $ms ms; $number datasets have the records of the build in ${build##*/}"
