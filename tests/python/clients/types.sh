#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/types.sh - what type checkers think of the installed package, and of a
# program that uses it
. "${0%/*}/lib.sh"
MYPY_CACHE_DIR=$TMPDIR/cache
export MYPY_CACHE_DIR
printf '[mypy-jax.*,pandas.*,polars.*,pyarrow.*]\nignore_missing_imports = True\n' >mypy.ini
python -m mypy --strict -p libshard._core -m libshard._cluster -m libshard.ray -m libshard.dask -m libshard.submitit
# Names of NumPy's are looked up by another method, and before 3.12 a buffer has none.
printf '%s\n' 'libshard\._core\.Array\.__(getattr|buffer)__' >allowed
python -m mypy.stubtest --ignore-disjoint-bases --allowlist allowed libshard._core
cat >right.py <<-'END'
	import libshard._core

	ds = libshard.open("set")
	loader = libshard.Loader(ds, 8, shuffle="global")
	for batch in loader:
	    pointer: int = batch["image"].data_ptr
	    rows: libshard.Array = batch.index
	shape: tuple[int, ...] = ds.schema["image"].shape
	some: dict[str, libshard.Array] = ds[[1, 2]]
	rows_of: int = ds[17]["image"].shape[0] + ds.by_key("cat/17.jpg")["label"]
	crop = libshard.Transform(crop="random", size=8)
	tuned = libshard.Loader(ds, 8, tail="pad", path="map", transform=[crop, lambda batch: batch.to("cpu")])
	mixed = libshard.mix([ds, ds], stop="shortest")
	END
python -m mypy --strict right.py
sed 's/pointer: int/pointer: str/; s/shuffle="global"/shuffle="globl"/; s/some: dict\[str, libshard.Array\]/some: int/
	s/crop="random"/crop="randon"/; s/tail="pad"/tail="pat"/; s/path="map"/path="mapp"/; s/"shortest"/"short"/' right.py >wrong.py
said=$(python -m mypy --strict wrong.py || :)
[ "$(echo "$said" | grep -c 'error:')" = 7 ] || { echo "seven mistakes, and mypy says: $said" && exit 1; }

# Blocks of the documents, one behind the other, so that a name stands for several things, and
# functions in them have no hints.  Those that are not run, or need another package, are left out.
cat >blocks.py <<-'END'
	import re, sys
	for comment, block in re.findall("(<!-- [^\n]* -->\n)?```python\n(.*?)```", open(sys.argv[1]).read(), re.S):
	    if not comment.startswith(("<!-- not run", "<!-- needs jax")):
	        print(block)
	END
blocks() { # PAGE SED: what mypy says of its blocks, changed by sed
	python blocks.py "$ROOT/docs/$1.md" | sed "$2" >page.py
	python -m mypy --strict --allow-redefinition-new --local-partial-types --implicit-reexport \
		--allow-untyped-defs --allow-untyped-calls page.py
}
blocks PYTHON ''
blocks TRAINING '1s/^/import libshard; ds = libshard.open("ds"); /'
! blocks PYTHON 's/max_steps=100/max_step=100/' >said || { echo "mypy does not see an option that is misspelt" && exit 1; }
grep -q 'max_step' said
echo "the package, its stubs, seven mistakes of a user, and blocks of the documents"
