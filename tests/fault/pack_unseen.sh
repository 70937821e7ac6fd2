#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/pack_unseen.sh - what cannot be looked at in a source ends the command with its name;
# it is never a class, an image or an archive less
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

SMALL=(--resize 16 --crop 16)
stops=0

# stops LINE COMMAND...: exit 3, this line among those on stderr, nothing made
stops() {
	local line=$1
	shift
	run 3 "$@" -o made/ds
	said "shardpack: $line"
	[ ! -e made/ds ] || die "made for nothing: $*"
	stops=$((stops + 1))
}
# blind PATH COMMAND...: the same if that path gives EIO; without the fault the command is good
blind() {
	local path=$1 named=$2
	shift 2
	run 0 "$PACK" "$@" -o made/good -q
	rm -r made/good
	SHIM_PATH=$path stops "$named: Input/output error" with_shim blind "$PACK" "$@"
}

mkdir made
make_images src 12 3
mv src/class_02 src/more
mkdir -p src/class_00/deep src/.closed/class_01 && mv src/class_01/* src/.closed/class_01 && rmdir src/class_01
mv src/.closed closed && ln -s ../closed/class_01 src/class_01
ln -s ../../../closed/class_01 src/class_00/deep/er

# ---- a folder that may not be entered, behind a link ----

for how in "" "--label-regex ^([^/]*)/" "--classes names"; do
	printf 'class_00\nclass_01\nmore\n' >names
	# shellcheck disable=SC2206
	command=(powerless "$PACK" images src "${SMALL[@]}" $how)
	run 0 "${command[@]}" -o made/good -q
	[ "$(grep -c '^class ' made/good/dataset.manifest)" = 3 ] || die "the source is not what this test needs"
	rm -r made/good
	chmod 000 closed
	stops "src/class_01: Permission denied" "${command[@]}"
	chmod 755 closed
done

# ---- EIO, and links that lead nowhere ----

blind class_01 src/class_01 images src "${SMALL[@]}"
blind more src/more images src "${SMALL[@]}"
blind deep src/class_00/deep images src "${SMALL[@]}"
blind class_00/deep/er src/class_00/deep/er images src "${SMALL[@]}" --label-regex '^([^/]*)/'
blind deep/er src/class_00/deep/er images src/class_00 src/more "${SMALL[@]}" --label-regex '([0-9])'
blind more 'src/*/: cannot search for this pattern' images 'src/*/' "${SMALL[@]}" --label-regex '([0-9])'
nowhere="No such file or directory (a link to a file that does not exist?)"
# names NAME COMMAND...: exit 1, it is named as bad input, nothing made
names() {
	local name=$1
	shift
	run 1 "$@" -o made/ds
	said "shardpack: warning: $name"
	[ ! -e made/ds ] || die "made for nothing: $*"
	stops=$((stops + 1))
}
for link in gone class_00/gone class_00/gone.jpg class_00/deep/gone; do
	ln -s nowhere src/$link
	case $link in
	gone) stops "src/$link: $nowhere" "$PACK" images src "${SMALL[@]}" --on-error skip ;; # it may be a class
	*) names "src/$link: a link to a file that does not exist" "$PACK" images src "${SMALL[@]}" ;;
	esac
	names "src/$link: a link to a file that does not exist" "$PACK" images src "${SMALL[@]}" \
		--label-regex '^([^/]*)/'
	rm src/$link
done

# A folder of archives only, or of archives and classes?  Then the archives are ignored.
mkdir -p both && tar -C src -chf both/x.tar class_00 more && cp -r src/more both/class
blind class both/class images both "${SMALL[@]}"
# A pattern with a name that is an error is not one file less.
mkdir -p parts/1 parts/2 && cp both/x.tar parts/1/a.tar && cp both/x.tar parts/2/b.tar
blind parts/2/b.tar parts/2/b.tar images 'parts/?/[ab].tar' "${SMALL[@]}"
cp both/x.tar parts/2/a.tar
SHIM_PATH=parts/2/a.tar stops "parts/?/a.tar: cannot search for this pattern: Input/output error" \
	with_shim blind "$PACK" images 'parts/?/a.tar' "${SMALL[@]}"

# ---- masks that may be missing, and CIFAR ----

mkdir -p masked/images/a masked/masks/a && cp src/class_00/*.* masked/images/a
mask=(images masked/images --root masked "${SMALL[@]}" --field 'mask:kind=bytes,max=9,from=masks/{}.png,optional')
first=$(basename "$(find masked/images/a -type f | sort | head -n 1)")
last=$(basename "$(find masked/images/a -type f | sort | tail -n 1)")
echo x >"masked/masks/a/${last%.*}.png" # one must be there
blind "masks/a/${first%.*}.png" "masked/masks/a/${first%.*}.png" "${mask[@]}"
ln -s nowhere "masked/masks/a/${first%.*}.png"
names "masked/images/a/$first: field mask, masks/a/${first%.*}.png: a link to a file that does not exist" \
	"$PACK" "${mask[@]}"
mv masked/masks/a masked/masks/b && ln -s ../not-mounted masked/masks/a # the folder itself
names "masked/images/a/$first: field mask, masks/a/${first%.*}.png: a link to a file that does not exist: masks/a" \
	"$PACK" "${mask[@]}"

mkdir cifar && head -c $((3074 * 3)) /dev/zero >cifar/train.bin
for i in 1 2 3 4 5; do head -c $((3073 * 2)) /dev/zero >cifar/data_batch_$i.bin; done
blind data_batch_1.bin cifar/data_batch_1.bin cifar cifar
seq 10 >cifar/batches.meta.txt
blind batches.meta.txt cifar/batches.meta.txt cifar cifar
rm cifar/batches.meta.txt && ln -s nowhere cifar/batches.meta.txt
stops "cifar/batches.meta.txt: $nowhere" "$PACK" cifar cifar
rm cifar/batches.meta.txt

# ---- a listing that breaks off ----

what=""
if (need_strace) >why; then
	listed=0
	for how in "" "--label-regex ^([^/]*)/"; do
		# shellcheck disable=SC2206
		command=("$PACK" images src "${SMALL[@]}" -j1 $how)
		run 0 "${command[@]}" -o reference -q
		for n in $(seq 1 12); do
			rm -rf made/ds
			code=0
			ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" \
				strace -f --seccomp-bpf -qq -o log -e trace=getdents64 \
				-e "inject=getdents64:error=EIO:when=$n" \
				"${command[@]}" -o made/ds >stdout 2>err </dev/null || code=$?
			[ "$code" = 3 ] && listed=$((listed + 1)) && continue
			[ "$code" = 0 ] || die "listing $n: exit code $code: $(cat err)"
			same reference made/ds
		done
		rm -rf reference made/ds
	done
	[ $listed -ge 8 ] || die "only $listed listings failed"
	what="$listed listings that break off"
else
	what="listings not broken off: $(tail -n 1 why)"
fi

# Negative control: a shardpack that takes what it cannot look at for a file is noticed.
break_pack source_root.c \
	's/^\tif (errno != ENOENT)$/\tif (errno == EIO \&\& (st->st_mode = S_IFREG))\n\t\treturn !(*there = true);\n&/'
SHIM_PATH=class_01 run 0 with_shim blind ./broken images src "${SMALL[@]}" -o made/control
[ "$(grep -c '^class ' made/control/dataset.manifest)" = 2 ] || die "the control loses no class"
echo "$stops commands stopped, each with the name; $what; the control loses a class"
