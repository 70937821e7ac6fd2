/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_row.c - see slot_row.h
 *
 * If a record is a unit by itself, it is hashed while it is copied.
 */
#include "libshard/feed/slot_row.h"

#include "libshard/base/error.h"
#include "libshard/codec/checksum.h"
#include "libshard/codec/copy.h"
#include "libshard/feed/unit_check.h"
#include "shard_pack.h"

struct land_job {
	const struct slot_row *row;
	const uint8_t *src; /* on the map, in a buffer, or at its place already */
	bool hash;
	int rc;
	struct shard_error *err;
};

/* This may run under the guard, so it neither locks nor allocates. */
static void land(void *context)
{
	struct land_job *j = context;
	const struct slot_row *row = j->row;
	const struct layout *layout = row->supply->layout;
	const struct reader_group *g = &row->r->group[row->group];
	uint64_t unit = layout_unit_of(layout, row->group, row->inside), got;

	if (j->hash && g->unit_records == 1 && row->dst) {
		got = j->src == row->dst ? checksum64(j->src, (size_t)g->stride)
					 : copy_stream_hashed(row->dst, j->src, (size_t)g->stride);
		j->rc = reader_check_hash(row->r, row->group, unit, got, j->err);
		return;
	}
	if (j->hash) /* the unit has other records, so it lies on the map */
		j->rc = reader_check_unit(row->r, row->group, unit, g->data + unit * g->unit_records * g->stride,
					  j->err);
	if (j->rc || j->src == row->dst)
		return;
	if (row->dst)
		copy_stream(row->dst, j->src, (size_t)g->stride);
	else
		layout_spread(layout, row->group, j->src, row->row, row->slot);
}

/* The guard is needed even if the record lies elsewhere, because its hash lies on the map. */
static int run_land(struct land_job *j)
{
	const struct shard_reader *r = j->row->r;
	int rc = SHARD_OK;

	j->rc = SHARD_OK;
	if (r->guard)
		rc = reader_guarded_brief(r, land, j, j->err);
	else
		land(j);
	if (!rc && j->rc) {
		error_prefix(j->err, r->path);
		rc = j->rc;
	}
	return rc;
}

int slot_row_land(const struct slot_row *row, const uint8_t *src, uint64_t *checked, struct shard_error *err)
{
	uint64_t unit = layout_unit_of(row->supply->layout, row->group, row->inside);
	struct unit_check check = unit_check_begin(row->supply, row->r, row->group, unit, row->fresh);
	struct land_job j = {.row = row, .src = src, .err = err, .hash = check.hash};
	int rc = run_land(&j);

	unit_check_end(&check, !rc, checked);
	return rc == SHARD_E_CORRUPT && row->flags ? supply_set_aside(row->supply, row->flags, err) : rc;
}
