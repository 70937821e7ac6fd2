/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed.c - rows of compressed groups: chunks decoded, and records taken out of them
 */
#include "libshard/base/bytes.h"
#include "libshard/load/block.h"

uint64_t rows_chunk_bytes(const struct shard_loader *l)
{
	uint64_t bytes = 0;

	for (uint32_t g = 0; g < l->ds->m.schema.group_count; g++) {
		const struct shard_group *group = &l->ds->m.schema.group[g];

		if (group->codec != SHARD_RAW && group->stride * group->unit_records > bytes)
			bytes = group->stride * group->unit_records;
	}
	return bytes;
}

/* How many rows from i on are neighbours in one shard. */
static uint32_t neighbours(const struct block *b, uint32_t i)
{
	uint32_t n = 1;

	while (i + n < b->count && b->at[i + n].r == b->at[i].r && b->at[i + n].inside == b->at[i].inside + n)
		n++;
	return n;
}

/* Rows i to i + n - 1, neighbours.  Whole chunks of a large group are decoded where they belong; others once, beside. */
static int unpack(struct block *b, uint32_t group, uint32_t i, uint32_t n)
{
	const struct shard_group *g = &b->l->ds->m.schema.group[group];
	uint64_t inside = b->at[i].inside, last = inside + n - 1, unit = g->unit_records, row = b->first + i;
	struct shard_reader *r = b->at[i].r;
	uint64_t chunks = last / unit - inside / unit + 1;
	int rc = SHARD_OK;

	if (group_is_large(g)) {
		rc = reader_read_chunks(r, group, inside, n, b->m->chunk, b->s->memory + b->l->layout.group_at[group] + row * g->stride,
					b->err);
	} else {
		for (; !rc && inside <= last; inside += unit - inside % unit) {
			uint64_t first = inside / unit * unit, count = min_u64(unit, r->pages->record_count - first);

			rc = reader_read_chunks(r, group, first, count, NULL, b->m->chunk, b->err); /* whole: needs no room beside */
			for (uint64_t k = inside; !rc && k <= last && k < first + count; k++)
				block_spread(&b->l->layout, group, b->m->chunk + (k - first) * g->stride, row++, b->s->memory);
		}
	}
	if (!rc && r->check != SHARD_CHECK_NEVER) /* compressed bytes are hashed whenever they are decoded */
		b->counts->checked_units += chunks;
	return rc;
}

int block_fill_packed(struct block *b, uint32_t group)
{
	int rc = SHARD_OK;

	for (uint32_t i = 0, n; !rc && i < b->count; i += n) {
		n = neighbours(b, i);
		rc = unpack(b, group, i, n);
		if (rc == SHARD_E_CORRUPT && !b->strict && n > 1) /* one chunk of several: whose rows? */
			rc = unpack(b, group, i, n = 1);
		if (rc == SHARD_E_CORRUPT && !b->strict)
			rc = block_set_aside(b->l, &b->s->row_flags[b->first + i], b->err);
	}
	return rc;
}
