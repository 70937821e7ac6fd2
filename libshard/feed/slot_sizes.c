/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_sizes.c - how large the images of a slot are, if they differ in size
 *
 * * Hashes cannot find such damage: whoever wrote the sizes has hashed them.
 */
#include "libshard/feed/feed.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"

/* The values of one field of images in a slot. */
struct sizes {
	const struct shard_field *image;
	const uint8_t *size, *length;
	uint64_t size_stride, length_stride;
};

static struct sizes find(const struct layout *l, const struct whole_field *w, const uint8_t *memory)
{
	struct sizes s = {.image = &l->schema->field[w->image]};

	s.size = memory + layout_rows(l, w->size, &s.size_stride);
	s.length = memory + layout_rows(l, w->length, &s.length_stride);
	return s;
}

/* The size is wrong.  Say of which record. */
static int complain(const struct supply *supply, const struct sizes *of, uint64_t record, uint32_t row,
		    struct shard_error *err)
{
	uint64_t shard = dataset_shard_of(supply->ds, record);
	const uint8_t *length = of->length + row * of->length_stride;
	struct shard_reader *r;
	int rc;

	record -= supply->ds->first_record[shard];
	rc = record_check_size(of->image, of->size + row * of->size_stride, length, record, err);
	if (!rc)
		rc = error_set(err, SHARD_E_CORRUPT,
			       "I57: record %" PRIu64 ": field '%.47s' has %u pixels; its shape allows %u", record,
			       of->image->name, load32(length), of->image->shape[0]);
	error_prefix(err, dataset_use_shard(supply->ds, shard, &r, NULL) ? supply->ds->dir : r->path);
	return rc;
}

static int take(struct supply *supply, struct slot *s, uint32_t k, uint32_t row, const struct sizes *of,
		struct shard_error *err)
{
	const uint8_t *size = of->size + row * of->size_stride;
	struct shard_size got = {load32(size), load32(size + 4)};
	uint32_t pixels = load32(of->length + row * of->length_stride);

	if (!pixels || (uint64_t)got.height * got.width != pixels || pixels > of->image->shape[0])
		return complain(supply, of, s->record[row], row, err);
	slot_sizes(s, k)[row] = got;
	return SHARD_OK;
}

int slot_sizes_take(struct supply *supply, struct slot *s, uint32_t first, uint32_t end, bool strict,
		    struct shard_error *err)
{
	const struct layout *l = supply->layout;
	struct shard_error problem;

	for (uint32_t k = 0; k < l->whole_count; k++) {
		struct sizes of = find(l, &l->whole[k], s->memory);

		for (uint32_t row = first; row < end; row++) {
			if (s->row_flags[row] & ROW_DAMAGED || !take(supply, s, k, row, &of, strict ? err : &problem))
				continue;
			if (strict)
				return SHARD_E_CORRUPT;
			supply_set_aside(supply, &s->row_flags[row], &problem);
		}
	}
	return SHARD_OK;
}
