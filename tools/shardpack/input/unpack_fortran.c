/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_fortran.c - an array in Fortran's order to one in C's
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/input.h"

struct fortran {
	uint64_t offset, item_bytes, count, inner; /* inner: items of one record */
	uint64_t dim[UNPACK_DIMS_MAX];		   /* of a record */
	unsigned dim_count;
	uint8_t *column, *block;
	uint64_t block_records;
};

/* Item k of a record in C's order stands where in Fortran's? */
static uint64_t place_of(const struct fortran *f, uint64_t k)
{
	uint64_t place = 0, weight = f->inner;
	unsigned d = f->dim_count;

	while (d--) {
		weight /= f->dim[d];
		place += k % f->dim[d] * weight;
		k /= f->dim[d];
	}
	return place;
}

/* Records [first, first + n): each of their items lies beside the same one of the next record. */
static int transpose_block(struct unpack_work *w, const struct fortran *f, uint64_t first, uint64_t n)
{
	int code = EXIT_DONE;

	for (uint64_t k = 0; code == EXIT_DONE && k < f->inner; k++) {
		uint64_t at = f->offset + (place_of(f, k) * f->count + first) * f->item_bytes;

		code = unpack_read(w, f->column, (size_t)(n * f->item_bytes), at);
		for (uint64_t i = 0; i < n; i++)
			memcpy(f->block + (i * f->inner + k) * f->item_bytes, f->column + i * f->item_bytes,
			       f->item_bytes);
	}
	progress_add(&w->progress, n * f->inner * f->item_bytes, n * f->inner * f->item_bytes, 0);
	progress_tick(&w->progress);
	return code == EXIT_DONE ? unpack_write(w, f->block, (size_t)(n * f->inner * f->item_bytes)) : code;
}

int unpack_fortran(struct unpack_work *w, const uint64_t *arg, unsigned arg_count)
{
	struct fortran f = {.offset = arg[0], .item_bytes = arg[1], .count = arg[2], .inner = 1};
	uint64_t left;
	int code = EXIT_DONE;

	for (; f.dim_count + 3 < arg_count; f.dim_count++) {
		f.dim[f.dim_count] = arg[f.dim_count + 3];
		if (!f.dim[f.dim_count] || f.inner > w->in_bytes / f.dim[f.dim_count])
			return unpack_damaged(w, "the array is larger than the file");
		f.inner *= f.dim[f.dim_count];
	}
	left = f.offset <= w->in_bytes ? w->in_bytes - f.offset : 0;
	if (!f.count || !f.item_bytes || f.item_bytes > 16 || f.inner > left / f.item_bytes ||
	    f.count > left / (f.item_bytes * f.inner))
		return unpack_damaged(w, "the array is larger than the file");
	f.block_records = (16 * (uint64_t)UNPACK_PIECE_BYTES) / (f.inner * f.item_bytes);
	if (!f.block_records)
		f.block_records = 1;
	if (f.block_records > f.count)
		f.block_records = f.count;
	f.column = malloc((size_t)(f.block_records * f.item_bytes));
	f.block = malloc((size_t)(f.block_records * f.inner * f.item_bytes));
	if (!f.column || !f.block)
		code = fail(EXIT_IO, "%s: out of memory for %" PRIu64 " bytes of an array in Fortran order", w->name,
			    f.block_records * f.inner * f.item_bytes);
	for (uint64_t first = 0; code == EXIT_DONE && first < f.count; first += f.block_records)
		code = transpose_block(w, &f, first,
				       f.count - first < f.block_records ? f.count - first : f.block_records);
	free(f.column);
	free(f.block);
	return code;
}
