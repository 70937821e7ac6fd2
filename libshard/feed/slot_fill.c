/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_fill.c - the rows of a step: their records are brought from the dataset to a slot
 *
 * A block of rows at a time: locate their records, fetch what is needed soon, then copy group by
 * group.  When all rows are there, sizes of images are checked.
 */
#include "libshard/feed/feed.h"

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"

/* ---- one record of a raw group on its way to its row ---- */

/*
 * If a record is a unit by itself, it is hashed while it is copied.
 */

struct land_job {
	const struct slot_row *row;
	const uint8_t *src; /* on the map, in a buffer, or at its place already */
	bool hash;
	int rc;
	struct shard_error *err;
};

/* Copy a record to a block.  Stores past the cache pay for long ones only. */
static inline void copy_record(uint8_t *dst, const uint8_t *src, uint64_t stride)
{
	if (stride >= LAYOUT_LARGE)
		copy_stream(dst, src, (size_t)stride);
	else
		memcpy(dst, src, (size_t)stride);
}

/* This may run under the guard, so it neither locks nor allocates. */
static void land(void *context)
{
	struct land_job *j = context;
	const struct slot_row *row = j->row;
	const struct layout *layout = row->layout;
	const struct reader_group *g = &row->r->group[row->group];
	uint64_t unit = layout_unit_of(layout, row->group, row->in_shard), got;

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
		copy_record(row->dst, j->src, g->stride);
	else
		layout_spread(layout, row->group, j->src, row->row, row->slot);
}

/* ---- neighbours ---- */

/* Units of one group, from `first` to before `end`. */
struct units_job {
	const struct slot_row *row;
	uint64_t first, end, checked;
};

/* A damaged unit stays unchecked: the row that needs it reports it.  This may run under the guard. */
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
	const struct row_source *s = row->source;
	uint64_t base = s->ds->first_record[row->shard], run = steps_run_records(s->steps),
		 unit = row->r->group[row->group].unit_records;
	uint64_t first = 0, end = row->r->pages->record_count, begin = (base + row->in_shard) / run * run, faults;
	struct units_job j = {.row = row};

	if (!row->hot)
		fetch_neighbours(s->paths.fetch, row->r, row->group, row->in_shard, &first, &end);
	first = max_u64(first, begin > base ? begin - base : 0);
	end = min_u64(end, begin + run - base);
	j.first = ceil_div(first, unit);
	j.end = end == row->r->pages->record_count ? ceil_div(end, unit) : end / unit;
	faults = file_major_faults();
	reader_guarded_brief(row->r, check_units, &j, NULL); /* a row that needs a page that is gone reports it */
	if (file_major_faults() != faults && first < end)    /* other units may have come from a device with these */
		reader_forget(row->r, row->group, first, end - first);
	*checked += j.checked;
}

int slot_row_land(const struct slot_row *row, const uint8_t *src, uint64_t *checked, struct shard_error *err)
{
	uint64_t unit = layout_unit_of(row->layout, row->group, row->in_shard);
	struct unit_check check = unit_check_begin(row->source, row->r, row->group, unit, row->fresh);
	struct land_job j = {.row = row, .src = src, .err = err, .hash = check.hash};
	int rc = SHARD_OK;

	/* The guard is needed even if the record lies elsewhere, because its hash lies on the map. */
	if (row->r->guard)
		rc = reader_guarded_brief(row->r, land, &j, err);
	else
		land(&j);
	if (!rc && j.rc) {
		error_prefix(err, row->r->path);
		rc = j.rc;
	}
	unit_check_end(&check, !rc, checked);
	if (check.seen && check.hash && !rc && steps_run_records(row->source->steps) &&
	    row->r->group[row->group].unit_records > 1)
		check_run(row, checked);
	if (rc == SHARD_E_CORRUPT) /* it may have been sound before */
		reader_forget(row->r, row->group, row->in_shard, 1);
	if (rc != SHARD_E_CORRUPT || !row->flags)
		return rc;
	row_set_aside(row->source, row->flags, err);
	return SHARD_OK;
}

#define TOGETHER    16u /* large rows that are prefetched at once: one wait for all their pages */
#define PAGE_BYTES  4096u
#define SHORT_BYTES 256u /* of a record; rows of shorter ones are prefetched a block at a time */
#define LOOK_BLOCKS 64u	 /* of records below LAYOUT_LARGE; asking for page faults takes as long as some rows of them */

/* ---- where records are ---- */

static uint64_t shard_of(const struct row_source *s, uint64_t idx)
{
	const uint64_t *first = s->ds->first_record;
	uint64_t guess = idx / s->guess_records;

	if (guess < s->ds->m.shard_count && first[guess] <= idx && idx < first[guess + 1])
		return guess;
	return dataset_shard_of(s->ds, idx);
}

/*
 * Prepare a shard for its first record, ever or in this epoch: open it, check the tables that units
 * are checked with, and choose its path.
 */
static int prepare_shard(struct block *b, struct located *at)
{
	struct shard_dataset *ds = b->source->ds;
	int rc = dataset_use_shard(ds, at->shard, &at->r, b->err);

	for (uint32_t k = 0; !rc && k < b->layout->group_count; k++) {
		uint32_t g = b->layout->group[k];

		if (at->r->check != SHARD_CHECK_NEVER)
			rc = reader_check_tables(at->r, g, b->err);
		if (!rc && reader_remembers(at->r) && !reader_seen(at->r, g))
			rc = error_set(b->err, SHARD_E_MEMORY, "no memory to remember which units were checked");
	}
	if (!rc) {
		atomic_fetch_or_explicit(&at->r->ready, b->layout->groups, memory_order_release);
		at->path = paths_decide(&b->source->paths, at->shard, at->r, b->slot->place.epoch);
	}
	/* Paths may have been doubted.  With old times, each further row would decide again. */
	b->times = paths_times(&b->source->paths, b->slot->place.epoch);
	return rc;
}

/*
 * Of a record that is located, also the ones behind it that are its neighbours in the shard: those of
 * windows, and of orders without a shuffle.  Returns how many.
 */
static uint32_t locate_neighbours(struct block *b, uint32_t i)
{
	const uint64_t *record = b->slot->record + b->first + i;
	struct located at = b->at[i];
	uint64_t left = b->source->ds->first_record[at.shard + 1] - record[0] - 1;
	uint32_t most = (uint32_t)min_u64(left, b->count - i - 1), n = 0;

	while (n < most && record[n + 1] == record[n] + 1) {
		at.in_shard++;
		b->at[i + ++n] = at;
	}
	if (!n) { /* each record of a shuffle */
		b->behind[i] = 0;
		return 0;
	}
	for (uint32_t k = 0; k <= n; k++)
		b->behind[i + k] = (uint8_t)(n - k);
	return n;
}

/* A block has one layout: if parts have several, it ends before a row of another one. */
static int locate(struct block *b)
{
	const uint64_t *record = b->slot->record + b->first;
	struct row_source *s = b->source;
	uint32_t need;
	int rc = SHARD_OK;

	if (s->layouts.part)
		b->layout = layouts_of(&s->layouts, shard_of(s, record[0]));
	need = b->layout->groups;
	for (uint32_t i = 0; !rc && i < b->count; i++) {
		struct located *at = &b->at[i];

		at->shard = shard_of(s, record[i]);
		if (s->layouts.part && layouts_of(&s->layouts, at->shard) != b->layout) {
			b->count = i;
			break;
		}
		at->in_shard = record[i] - s->ds->first_record[at->shard];
		at->r = readers_peek(&s->ds->readers, at->shard); /* NULL: closed, as there were too many */
		if (!at->r || (atomic_load_explicit(&at->r->ready, memory_order_acquire) & need) != need ||
		    !paths_find(&s->paths, &b->times, at->shard, &at->path))
			rc = prepare_shard(b, at);
		b->scratch->has_cold |= at->path.kind == PATH_MAP && !at->path.hot;
		if (!rc)
			i += locate_neighbours(b, i);
		b->hot_rows += at->path.hot * (uint32_t)(&b->at[i] - at + 1);
	}
	return rc;
}

/* ---- rows of a raw group ---- */

/*
 * Returns the path of one group.  Other paths than the map are for large records of one unit each.
 */
static enum path_kind kind_of(const struct block *b, uint32_t group, const struct located *at)
{
	if (at->path.kind == PATH_MAP)
		return PATH_MAP;
	return layout_is_large(&b->layout->schema->group[group]) && at->r->group[group].unit_records == 1
		       ? at->path.kind
		       : PATH_MAP;
}

static struct slot_row row_of(const struct block *b, uint32_t group, uint32_t i)
{
	const struct located *at = &b->at[i];
	const struct shard_group *g = &b->layout->schema->group[group];
	struct slot_row row = {.source = b->source,
			       .layout = b->layout,
			       .r = at->r,
			       .shard = at->shard,
			       .in_shard = at->in_shard,
			       .hot = at->path.hot,
			       .fresh = b->slot->doubted,
			       .row = b->first + i,
			       .group = group,
			       .slot = b->slot->memory,
			       .flags = b->strict ? NULL : &b->slot->row_flags[b->first + i]};

	if (layout_is_block(b->layout, group))
		row.dst = row.slot + b->layout->group_at[group] + row.row * g->stride;
	return row;
}

/* Returns where the record of a row is mapped. */
static const uint8_t *mapped_at(const struct block *b, uint32_t group, uint32_t i)
{
	const struct reader_group *g = &b->at[i].r->group[group];

	return g->data + b->at[i].in_shard * g->stride;
}

/*
 * Need the record of a row not be hashed, as its unit was found sound before, or as nobody asks?
 * Each instruction counts here.
 */
__attribute__((always_inline)) static inline bool is_known_sound(const struct block *b, uint32_t group, uint32_t i)
{
	const struct located *at = &b->at[i];
	_Atomic uint64_t *seen;
	uint64_t unit;

	if (at->r->check == SHARD_CHECK_ALWAYS || b->slot->doubted)
		return false;
	if (at->r->check == SHARD_CHECK_NEVER)
		return true;
	/* Two loads, because gcc would turn seen[i] into a plain one. */
	seen = atomic_load_explicit(&at->r->group[group].seen, memory_order_acquire);
	unit = layout_unit_of(b->layout, group, at->in_shard);
	return atomic_load_explicit(&seen[unit / 64], memory_order_acquire) >> (unit & 63) & 1;
}

/*
 * A shortcut for records that are mapped and whose unit was checked before: each instruction counts
 * there.  It does what slot_row_land() does.  Returns false if it does not apply.  This may run under
 * the guard, so it neither locks nor allocates.
 */
__attribute__((always_inline)) static inline bool fill_seen(const struct block *b, uint32_t group, uint32_t i)
{
	const struct located *at = &b->at[i];
	const struct reader_group *g = &at->r->group[group];
	const uint8_t *src = g->data + at->in_shard * g->stride;
	uint8_t *slot = b->slot->memory;

	if (b->resident && b->resident[b->first + i].at)
		return true;
	if (kind_of(b, group, at) != PATH_MAP || !is_known_sound(b, group, i))
		return false;
	if (layout_is_block(b->layout, group))
		copy_record(slot + b->layout->group_at[group] + (b->first + i) * g->stride, src, g->stride);
	else
		layout_spread(b->layout, group, src, b->first + i, slot);
	return true;
}

/*
 * Prefetch the first bytes of the next rows.  Each record lies on another page, which the processor
 * has to look up.  It looks up the pages at the same time if they are needed together.  It goes on to
 * neighbours by itself, but not to their next page.
 */
__attribute__((always_inline)) static inline void fetch_some(const struct block *b, uint32_t group, uint32_t first,
							     uint32_t count)
{
	uint32_t end = first + count < b->count ? first + count : b->count;

	for (uint32_t i = first, rows; i < end; i += rows) {
		const struct reader_group *g = &b->at[i].r->group[group];
		const uint8_t *src = g->data + b->at[i].in_shard * g->stride, *page;

		rows = b->behind[i] + 1u < end - i ? b->behind[i] + 1u : end - i;
		if (kind_of(b, group, &b->at[i]) != PATH_MAP)
			continue;
		block_fetch_ahead(src, g->stride);
		page = src + (PAGE_BYTES - ((uintptr_t)src & (PAGE_BYTES - 1)));
		for (; g->stride <= SHORT_BYTES && page < src + rows * g->stride; page += PAGE_BYTES)
			block_fetch_ahead(page, (uint64_t)(src + rows * g->stride - page));
	}
}

/*
 * The same for the rows from `i` on whose records are neighbours, all at once: those of windows, and of
 * orders without a shuffle.  Returns how many have been filled; 0: it does not apply.
 */
static uint32_t fill_seen_run(const struct block *b, uint32_t group, uint32_t i)
{
	const struct located *at = &b->at[i];
	const struct reader_group *g = &at->r->group[group];
	const struct spread_field *f = &b->layout->field[group][0];
	bool is_block = layout_is_block(b->layout, group);
	bool is_dense = is_block || (b->layout->field_count[group] == 1 && !f->narrow && f->bytes == g->stride);
	const uint8_t *src = g->data + at->in_shard * g->stride;
	uint32_t count = b->behind[i] + 1u, sound = 0;
	uint8_t *slot = b->slot->memory;

	if (b->resident || kind_of(b, group, at) != PATH_MAP)
		return 0;
	while (sound < count && is_known_sound(b, group, i + sound)) /* unit by unit */
		sound += (uint32_t)(g->unit_records - at[sound].in_shard % g->unit_records);
	count = sound < count ? sound : count;
	if (is_dense)
		copy_record(slot + (is_block ? b->layout->group_at[group] : f->at) + (b->first + i) * g->stride, src,
			    count * g->stride);
	for (uint32_t k = 0; !is_dense && k < count; k++)
		layout_spread(b->layout, group, src + k * g->stride, b->first + i + k, slot);
	return count;
}

/* Rows of a block that are filled under one guard: a guard costs more than a short row. */
struct seen_rows {
	const struct block *b;
	uint32_t group;
	uint32_t next;		       /* the first row that is not filled */
	const struct shard_reader *of; /* whose map could not be read */
};

static void fill_seen_rows(void *context)
{
	struct seen_rows *rows = context;
	const struct block *b = rows->b;
	bool is_short = b->layout->schema->group[rows->group].stride <= SHORT_BYTES;
	uint32_t i = rows->next;

	for (uint32_t count; i < b->count; i += count) {
		if (!is_short && i % TOGETHER == 0)
			fetch_some(b, rows->group, i + TOGETHER, TOGETHER);
		count = b->behind[i] ? fill_seen_run(b, rows->group, i) : 0;
		if (!count) {
			if (!fill_seen(b, rows->group, i))
				break;
			count = 1;
		}
	}
	rows->next = i;
}

/* Runs in the handler of SIGBUS. */
static bool is_of_rows(void *context, uintptr_t at)
{
	struct seen_rows *rows = context;

	for (uint32_t i = 0; i < rows->b->count; i++) {
		const struct shard_reader *r = rows->b->at[i].r;

		if (at >= (uintptr_t)r->map && at < (uintptr_t)r->map + r->file_bytes) {
			rows->of = r;
			return true;
		}
	}
	return false;
}

/* Begin to fetch what rows of maps that are not hot need.  Returns which rows wait for it. */
static uint64_t fetch_rows(struct block *b, uint32_t group)
{
	uint8_t mark = fetch_mark(b->slot->place.epoch);
	uint64_t rows = 0;

	for (uint32_t i = 0; i < b->count; i++)
		if (b->at[i].path.hot)
			i += b->behind[i];
		else if (kind_of(b, group, &b->at[i]) == PATH_MAP &&
			 !fetch_is_there(b->source->paths.fetch, b->at[i].shard, b->at[i].r, group, b->at[i].in_shard,
					 mark) &&
			 paths_fetch(&b->source->paths, b->at[i].shard, b->at[i].r, group, b->at[i].in_shard,
				     b->slot->place.epoch))
			rows |= UINT64_C(1) << i;
	return rows;
}

/* ---- units that are left to somebody else to check ---- */

/* From this row on, how many records of one unit lie row by row?  *unit: how many that unit has. */
static uint32_t unit_rows(const struct row_source *source, uint32_t group, const struct slot *s, uint32_t i,
			  uint32_t *unit)
{
	const uint64_t *first = source->ds->first_record, *record = s->record + i;
	uint64_t shard = shard_of(source, record[0]), left;
	uint32_t rows = 1;

	*unit = layouts_of(&source->layouts, shard)->schema->group[group].unit_records;
	left = min_u64(*unit - (record[0] - first[shard]) % *unit, first[shard + 1] - record[0]);
	left = min_u64(left, s->rows - i);
	while (rows < left && record[rows] == record[0] + rows)
		rows++;
	return rows;
}

void slot_find_units(struct row_source *source, struct slot *s)
{
	const struct residents *from = atomic_load_explicit(&source->residents, memory_order_acquire);
	uint32_t unit, rows;

	s->unchecked_groups = from ? from->check_groups & s->resident_groups : 0;
	for (uint32_t groups = s->unchecked_groups; groups; groups &= groups - 1) {
		uint32_t group = (uint32_t)__builtin_ctz(groups);
		struct resident *r = slot_residents(s, group);

		for (uint32_t i = 0; i < s->rows; i += rows) {
			rows = unit_rows(source, group, s, i, &unit);
			/* The last unit of a shard may have fewer records.  It is left to the CPU. */
			for (uint32_t k = 0; k < rows; k++)
				r[i + k].unit = rows < unit ? 0 : k ? UNIT_GOES_ON : unit;
		}
	}
}

struct leaf_job {
	const struct shard_reader *r;
	uint64_t unit, hash;
	uint32_t group;
};

static void read_leaf(void *context)
{
	struct leaf_job *j = context;

	j->hash = reader_leaf(j->r, j->group, j->unit);
}

/* A unit begins with the record of this row, and others of its records may be left unchecked. */
static int find_leaf(struct block *b, uint32_t group, uint32_t i, struct resident *r)
{
	struct leaf_job leaf = {
		.r = b->at[i].r, .unit = layout_unit_of(b->layout, group, b->at[i].in_shard), .group = group};
	int rc = reader_guarded_brief(b->at[i].r, read_leaf, &leaf, b->err);

	r->want = leaf.hash;
	return rc;
}

/*
 * A row's record is kept.  If a check is due, its unit is hashed where it is mapped, unless the owner
 * does that.  *left: how many rows are yet to be filled.
 */
static int take_resident(struct block *b, uint32_t group, uint32_t i, struct resident *r, uint32_t *left)
{
	struct slot_row row;
	int rc;

	r->unchecked = b->slot->unchecked_groups >> group & 1 && r->unit;
	if (r->unchecked || is_known_sound(b, group, i)) {
		--*left;
		return SHARD_OK;
	}
	row = row_of(b, group, i);
	/* As if it were at its place already.  Nothing is written there. */
	row.dst = (uint8_t *)(uintptr_t)mapped_at(b, group, i);
	rc = slot_row_land(&row, row.dst, &b->counts->checked_units, b->err);
	if (!rc && !(row.flags && *row.flags & ROW_DAMAGED)) {
		--*left;
		return SHARD_OK;
	}
	atomic_fetch_sub(r->users, 1); /* fill_raw() finds the damage again, or the row is repaired */
	r->at = NULL;
	return rc;
}

/* May the record of a row be taken where it is kept? */
static bool may_stay(const struct block *b, uint32_t group, uint32_t i)
{
	return b->at[i].path.hot && kind_of(b, group, &b->at[i]) == PATH_MAP;
}

/* How many rows from this one on have records that are neighbours in their shard? */
static uint32_t neighbours_from(const struct block *b, uint32_t group, uint32_t first)
{
	const struct located *at = &b->at[first];
	uint32_t count = 1;

	while (first + count < b->count && at[count].r == at->r && at[count].shard == at->shard &&
	       at[count].in_shard == at->in_shard + count && may_stay(b, group, first + count))
		count++;
	return count;
}

/* Take the records of rows that are kept in memory.  They are not copied. */
static int take_residents(struct block *b, uint32_t group, uint32_t *left)
{
	const struct residents *from = atomic_load_explicit(&b->source->residents, memory_order_acquire);
	struct resident *resident = from && from->groups >> group & 1 ? slot_residents(b->slot, group) : NULL;
	uint64_t stride = b->layout->schema->group[group].stride;
	uint32_t effort = 1; /* so that the first batches come soon, whose other records are copied */
	uint32_t count;
	int rc = SHARD_OK;

	b->resident = resident;
	*left = b->count;
	for (uint32_t i = 0; !rc && resident && i < b->count; i += count) {
		const struct located *at = &b->at[i];
		atomic_uint *users;
		const uint8_t *src = NULL;

		count = 1;
		if (may_stay(b, group, i)) {
			count = neighbours_from(b, group, i);
			src = from->take(from->context, at->shard, at->r, group, at->in_shard, &count, &effort, &users);
		}
		/* All have users before one can fail: the rows behind that one are let go with the slot. */
		for (uint32_t k = 0; src && k < count; k++) {
			resident[b->first + i + k].at = src + k * stride;
			resident[b->first + i + k].users = users;
			resident[b->first + i + k].unchecked = false;
		}
		for (uint32_t k = 0; !rc && k < count; k++) {
			struct resident *r = &resident[b->first + i + k];
			bool begins = b->slot->unchecked_groups >> group & 1 && r->unit && r->unit != UNIT_GOES_ON;

			if (begins && (src || r->unit > 1))
				rc = find_leaf(b, group, i + k, r);
			if (!rc && src)
				rc = take_resident(b, group, i + k, r, left);
		}
	}
	return rc;
}

/* Fill the rows of a block.  Reads of some rows may still be under way. */
static int fill_raw(struct block *b, uint32_t group)
{
	uint64_t stride = b->layout->schema->group[group].stride;
	struct seen_rows rows = {.b = b, .group = group};
	uint32_t left;
	int rc = take_residents(b, group, &left);

	if (rc || !left)
		return rc;
	for (uint64_t wait = fetch_rows(b, group), i = 0; wait; i++, wait >>= 1)
		if (wait & 1)
			b->scratch->awaited += fetch_await(b->source->paths.fetch, b->at[i].shard, b->at[i].r, group,
							   b->at[i].in_shard, b->slot->place.epoch);
	fetch_some(b, group, 0, stride <= SHORT_BYTES ? b->count : TOGETHER);
	while (!rc && rows.next < b->count) {
		const struct located *at = &b->at[rows.next];
		enum path_kind kind = kind_of(b, group, at);
		uint64_t *checked = &b->counts->checked_units;
		struct slot_row row;

		if (kind != PATH_MAP || at->r->check == SHARD_CHECK_ALWAYS || !at->r->guard)
			fill_seen_rows(&rows); /* prefetches, if it does not apply */
		else if (!guard_run_where(is_of_rows, fill_seen_rows, &rows))
			return reader_cut(rows.of, b->err);
		if (rows.next == b->count)
			break;
		row = row_of(b, group, rows.next);
		kind = kind_of(b, group, &b->at[rows.next]);
		if (kind == PATH_MAP) {
			rc = slot_row_land(&row, mapped_at(b, group, rows.next), checked, b->err);
		} else {
			*(kind == PATH_DIRECT ? &b->counts->direct_bytes : &b->counts->pread_bytes) += stride;
			rc = slot_cold_put(b->scratch, &row, kind == PATH_DIRECT, b->slot->place.epoch, checked,
					   b->err);
		}
		rows.next++;
	}
	return rc;
}

/* ---- pages that had to be read meanwhile ---- */

/*
 * Check the rows of maps again.  If a record is a unit, what was delivered is hashed.  Other units
 * are hashed where they are mapped, once, and their rows are copied again.
 */
static int check_block(struct block *b)
{
	const struct shard_schema *schema = b->layout->schema;
	int rc = SHARD_OK;

	for (uint32_t k = 0; !rc && k < b->layout->group_count; k++) {
		uint32_t g = b->layout->group[k];

		if (schema->group[g].codec != SHARD_RAW)
			continue; /* slot_packed.c has looked after each chunk */
		for (uint32_t i = 0; i < b->count; i++)
			if (kind_of(b, g, &b->at[i]) == PATH_MAP)
				reader_forget(b->at[i].r, g, b->at[i].in_shard, 1);
		for (uint32_t i = 0; !rc && i < b->count; i++) {
			struct slot_row row = row_of(b, g, i);
			const struct resident *resident = slot_residents(b->slot, g);

			if (kind_of(b, g, &b->at[i]) != PATH_MAP || (row.flags && *row.flags & ROW_DAMAGED))
				continue;
			if (resident && resident[row.row].at) /* it cannot have come from a device meanwhile */
				continue;
			row.fresh = row.dst && row.r->group[g].unit_records == 1;
			rc = slot_row_land(&row, row.fresh ? row.dst : mapped_at(b, g, i), &b->counts->checked_units,
					   b->err);
		}
	}
	return rc;
}

/*
 * If the thread has waited for pages since *faults, check the mapped rows from `first` to the end
 * of the block again.  Earlier blocks have no rows of other paths, so they can be located again.
 */
static int look_for_faults(struct block *b, uint32_t first, uint64_t *faults)
{
	uint64_t now = scratch_faults(b->scratch);
	struct block earlier;
	int rc = SHARD_OK;

	if (now == *faults)
		return SHARD_OK;
	*faults = now;
	for (earlier = *b; !rc && first < b->first; first += earlier.count) {
		earlier.first = first;
		earlier.count = (uint32_t)min_u64(BLOCK_ROWS, b->first - first);
		rc = locate(&earlier);
		if (!rc)
			rc = check_block(&earlier);
	}
	return rc ? rc : check_block(b);
}

/* ---- a step ---- */

void slot_fetch(struct row_source *source, struct scratch *scratch, struct slot *s)
{
	struct shard_error later; /* the thread that fills a slot with these records meets it again */
	struct block b = {.source = source,
			  .layout = source->layouts.batch,
			  .scratch = scratch,
			  .slot = s,
			  .err = &later,
			  .times = paths_times(&source->paths, s->place.epoch)};

	unsigned entered = readers_enter(&source->ds->readers);

	for (; b.first < s->rows; b.first += b.count) {
		b.count = s->rows - b.first < BLOCK_ROWS ? s->rows - b.first : BLOCK_ROWS;
		if (locate(&b))
			break;
		for (uint32_t k = 0; k < b.layout->group_count; k++) {
			uint32_t g = b.layout->group[k];

			if (b.layout->schema->group[g].codec == SHARD_RAW)
				fetch_rows(&b, g);
			else
				slot_packed_fetch(&b, g);
		}
	}
	readers_leave(&source->ds->readers, entered);
}

/*
 * Fill the rows of a slot from s->first on.  With SHARD_CHECK_DEVICE, look now and then whether the
 * thread has waited for pages.
 */
static int fill_rows(struct row_source *source, struct scratch *scratch, struct slot *s, bool strict,
		     struct fill_counts *counts, struct shard_error *err)
{
	struct block b = {.source = source,
			  .layout = source->layouts.batch,
			  .scratch = scratch,
			  .slot = s,
			  .counts = counts,
			  .err = err,
			  .first = s->first,
			  .strict = strict,
			  .times = paths_times(&source->paths, s->place.epoch)};
	bool looks = source->ds->o.check == SHARD_CHECK_DEVICE;
	uint32_t most = b.layout->record_bytes < LAYOUT_LARGE ? LOOK_BLOCKS : 1, unseen = s->first, blocks = 0;
	unsigned entered = readers_enter(&source->ds->readers); /* rows of `cold` are on their way to the end */
	uint64_t begin = scratch_faults(scratch), faults = begin;
	int rc = SHARD_OK, finished;

	scratch->faults = faults;
	for (; !rc && b.first < s->rows; b.first += b.count) {
		b.count = s->rows - b.first < BLOCK_ROWS ? s->rows - b.first : BLOCK_ROWS;
		rc = locate(&b);
		for (uint32_t k = 0; !rc && k < b.layout->group_count; k++) {
			uint32_t g = b.layout->group[k];

			rc = b.layout->schema->group[g].codec == SHARD_RAW ? fill_raw(&b, g) : slot_packed_fill(&b, g);
		}
		if (rc || !looks || (++blocks < most && b.first + b.count < s->rows))
			continue;
		rc = look_for_faults(&b, unseen, &faults);
		unseen = b.first + b.count;
		blocks = 0;
	}
	finished = slot_cold_finish(scratch, s->place.epoch, counts, rc ? NULL : err);
	paths_doubt(&source->paths, scratch_faults(scratch) - begin, b.hot_rows);
	copy_fence();
	rc = rc ? rc : finished;
	rc = rc ? rc : slot_sizes_take(source, s, strict, err);
	readers_leave(&source->ds->readers, entered);
	return rc;
}

int slot_fill(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
	      struct shard_error *err)
{
	return fill_rows(source, scratch, s, source->on_corrupt == SHARD_CORRUPT_FAIL, counts, err);
}

int slot_fill_one(struct row_source *source, struct scratch *scratch, struct slot *s, uint32_t row,
		  struct fill_counts *counts, struct shard_error *err)
{
	struct fill_counts again = {0}; /* the bytes of the row were counted before */
	struct slot one = *s;
	int rc;

	one.first = row;
	one.rows = row + 1;
	slot_let_go_row(&one, row); /* of a record that was tried before and is damaged in another group */
	one.resident_groups = 0;    /* the CPU checks it: whether it is sound decides which record it is */
	rc = fill_rows(source, scratch, &one, true, &again, err);
	counts->checked_units += again.checked_units;
	return rc;
}
