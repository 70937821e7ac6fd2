/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_row.c - a record of a raw group on its way to a row of a slot
 *
 * * If a record is a unit by itself, it is hashed while it is copied.
 */
#include "libshard/feed/feed.h"

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/checksum.h"
#include "libshard/format/format.h"
#include "libshard/io/file.h"
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
	const struct layout *layout = row->layout;
	const struct reader_group *g = &row->r->group[row->group];
	uint64_t unit = layout_unit_of(layout, row->group, row->inside), got;

	if (j->hash && g->unit_records == 1) {
		got = !row->dst || j->src == row->dst ? checksum64(j->src, (size_t)g->stride)
						      : copy_stream_hashed(row->dst, j->src, (size_t)g->stride);
		j->rc = reader_check_hash(row->r, row->group, unit, got, j->err);
		if (row->dst)
			return;
	} else if (j->hash) /* the unit has other records, so it lies on the map */
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

/* ---- neighbours ---- */

/* Units of one group, from `first` to before `end`. */
struct units_job {
	const struct slot_row *row;
	uint64_t first, end, checked;
};

/* What is damaged stays unchecked: whoever needs it says so.  This may run under the guard. */
static void check_units(void *context)
{
	struct units_job *j = context;
	struct shard_reader *r = j->row->r;
	struct reader_group *g = &r->group[j->row->group];
	_Atomic uint64_t *seen = atomic_load_explicit(&g->seen, memory_order_acquire);

	for (uint64_t u = j->first; u < j->end; u++) {
		uint64_t bit = UINT64_C(1) << (u & 63);

		if (!(atomic_load_explicit(&seen[u / 64], memory_order_relaxed) & bit) &&
		    !reader_check_unit(r, j->row->group, u, g->data + u * g->unit_records * g->stride, NULL))
			j->checked += reader_set_seen(g, &seen[u / 64], bit);
	}
}

/*
 * The order uses the records of a run soon.  To hash all its units in turn is faster than one
 * here and there, as the processor sees where it goes on.
 */
static void check_run(const struct slot_row *row, uint64_t *checked)
{
	const struct supply *s = row->supply;
	uint64_t base = s->ds->first_record[row->shard], run = steps_run_records(s->steps),
		 unit = row->r->group[row->group].unit_records;
	uint64_t first = 0, end = row->r->pages->record_count, begin = (base + row->inside) / run * run, faults;
	struct units_job j = {.row = row};

	if (!row->hot)
		fetch_neighbours(s->paths.fetch, row->r, row->group, row->inside, &first, &end);
	first = max_u64(first, begin > base ? begin - base : 0);
	end = min_u64(end, begin + run - base);
	j.first = ceil_div(first, unit);
	j.end = end == row->r->pages->record_count ? ceil_div(end, unit) : end / unit;
	faults = file_major_faults();
	reader_guarded_brief(row->r, check_units, &j, NULL); /* who needs a page that is gone says so */
	if (file_major_faults() != faults && first < end)    /* other units may have come from a device with these */
		reader_forget(row->r, row->group, first, end - first);
	*checked += j.checked;
}

int slot_row_land(const struct slot_row *row, const uint8_t *src, uint64_t *checked, struct shard_error *err)
{
	uint64_t unit = layout_unit_of(row->layout, row->group, row->inside);
	struct unit_check check = unit_check_begin(row->supply, row->r, row->group, unit, row->fresh);
	struct land_job j = {.row = row, .src = src, .err = err, .hash = check.hash};
	int rc = run_land(&j);

	unit_check_end(&check, !rc, checked);
	if (check.seen && check.hash && !rc && steps_run_records(row->supply->steps) &&
	    row->r->group[row->group].unit_records > 1)
		check_run(row, checked);
	return rc == SHARD_E_CORRUPT && row->flags ? supply_set_aside(row->supply, row->flags, err) : rc;
}
