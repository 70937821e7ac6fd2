#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/types.sh - what type checkers think of the installed package, and of a
# program that uses it
. "${0%/*}/lib.sh"
MYPY_CACHE_DIR=$TMPDIR/cache
export MYPY_CACHE_DIR
printf '[mypy-jax.*]\nignore_missing_imports = True\n' >mypy.ini
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
	END
python -m mypy --strict right.py
sed 's/pointer: int/pointer: str/; s/shuffle="global"/shuffle=3.5/; s/ds\[\[1, 2\]\]/ds[1]/' right.py >wrong.py
said=$(python -m mypy --strict wrong.py || :)
[ "$(echo "$said" | grep -c 'error:')" = 3 ] || { echo "three mistakes, and mypy says: $said" && exit 1; }
echo "the package, its stubs, and three mistakes of a user"
