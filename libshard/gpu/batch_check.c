/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_check.c - batches, and slabs of a pool, are hashed where they lie on the GPU, before use
 *
 * Behind the copies of a batch, on a stream of their own, kernels hash each unit that a thread has
 * left unchecked: all its records lie in the batch, row by row.  Behind these, one copy brings the
 * results to page-locked memory.  The host looks at them when the event behind that copy is done.
 * device_slots.c says what the two streams wait for.  Each launch has a number of its own, so the
 * result of an older one, of a kernel that did not run, cannot be taken for a new one.
 *
 * Rows of a damaged unit are read again by the CPU, which checks them and does what the options say.
 * The rows that the CPU has then are copied to their place, and the GPU hashes them there once more.
 * The first check has ended by then, so copies and kernels are on the filling stream, and the host
 * waits for them.  If this second check finds damage, too, it is an error.
 *
 * A slab of a pool is a batch here.  A pool may have thousands of slabs, of which few are under way, so
 * there is room for the checks of some batches only.
 *
 * Only the consumer comes here.
 */
#include "libshard/gpu/gpu.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/io.h"

#define CHECKS_MOST  16u /* batches whose checks are under way */
#define BOUNCE_BYTES (UINT64_C(1) << 20)
#define ROW_REPAIRED (SHARD_ROW_SUBSTITUTED | SHARD_ROW_MASKED)

/* Of what a thread has left unchecked. */
struct checked_unit {
	uint64_t want;	    /* its hash */
	uint32_t row, rows; /* of the batch */
	uint32_t result;    /* of the check */
	uint32_t number;    /* of its launch */
	uint32_t group;
	bool is_mixed; /* some of its rows have been repaired, so it is left to the CPU */
};

enum { ROW_SOUND, ROW_MIXED, ROW_FOUND }; /* in a mixed unit, and not repaired; in a unit that the GPU found damaged */

struct batch_check {
	struct feed *feed; /* const after open, as: */
	struct device_slots *slots;
	const struct cuda_device *cuda;
	uint32_t group[SHARD_GROUPS_MAX], group_count; /* whose records are checked */
	uint32_t rows;				       /* of a batch at most, as: */
	size_t units;				       /* those that are checked */
	uint32_t check_count;			       /* checks that may be under way */
	struct cuda_check kernels;
	uint64_t results;	   /* an address of the GPU: [check_count][units] */
	struct check_result *here; /* the same as the host gets them, page-locked */
	uint64_t here_bytes;
	bool is_pinned;

	struct check {
		struct checked_unit *unit; /* [units] that are due, of which there are: */
		uint32_t count, launched;
	} * check;	      /* [check_count] the batches take turns */
	uint32_t next_check;  /* that will be used */
	uint32_t next_launch; /* its number, never 0 */
	uint8_t *found;	      /* [rows] of the batch that is looked at: ROW_* */
	/* Rows on their way to the GPU for the second time, page-locked if that is allowed. */
	uint8_t *bounce;
	uint64_t bounce_bytes;
	bool bounce_is_pinned;
	uint64_t checked, waits, wait_ns, recopied;
};

/* ---- life ---- */

uint32_t batch_check_groups(const struct feed *f, uint32_t map_groups)
{
	return f->ds->o.check == SHARD_CHECK_NEVER || f->ds->o.check == SHARD_CHECK_FIRST ? 0 : map_groups;
}

/* Results of a check begin there. */
static size_t results_at(const struct batch_check *c, uint32_t check)
{
	return check * c->units;
}

/* Units of a group that a batch has at most, as a whole.  The parts of a mixture may have others. */
static size_t units_most(const struct batch_check *c, uint32_t group)
{
	uint32_t unit = c->feed->source.layouts.part ? 1 : c->feed->layout.schema->group[group].unit_records;

	return max_u64(c->rows / unit, 1);
}

static bool alloc_all(struct batch_check *c)
{
	bool has;

	c->here_bytes = align_up(c->check_count * c->units * sizeof(*c->here), LAYOUT_ALIGN);
	c->here = buffer_open((size_t)c->here_bytes);
	if (c->here) {
		/* Else the GPU might write to the copy of a forked child. */
		buffer_keep(c->here, (size_t)c->here_bytes);
		memset(c->here, 0, (size_t)c->here_bytes);
	}
	c->check = mem_array(c->check_count, sizeof(*c->check));
	c->found = mem_array(c->rows, sizeof(*c->found));
	has = c->here && c->check && c->found;
	for (uint32_t i = 0; has && i < c->check_count; i++) {
		c->check[i].unit = mem_array(c->units, sizeof(*c->check[i].unit));
		has = c->check[i].unit;
	}
	return has;
}

int batch_check_open(struct batch_check **out, struct feed *feed, struct device_slots *slots, uint32_t groups,
		     struct shard_error *err)
{
	struct batch_check *c = mem_zalloc(sizeof(*c));
	struct shard_error why;
	int rc = SHARD_OK;

	if (c) {
		c->feed = feed;
		c->slots = slots;
		c->cuda = slots->cuda;
		c->rows = steps_rows(&feed->steps);
		c->check_count = slots->slot_count < CHECKS_MOST ? slots->slot_count : CHECKS_MOST;
		c->next_launch = 1;
		for (uint32_t g = 0; g < feed->layout.schema->group_count; g++)
			if (groups >> g & 1) {
				c->group[c->group_count++] = g;
				c->units += units_most(c, g);
			}
	}
	if (!c || !alloc_all(c))
		rc = error_set(&why, SHARD_E_MEMORY, "no memory for the checks of batches of %u records",
			       steps_rows(&feed->steps));
	if (!rc)
		rc = cuda_check_open(c->cuda, &c->kernels, &why);
	if (!rc)
		rc = cuda_pin(c->cuda, c->here, c->here_bytes, &why);
	if (!rc) {
		c->is_pinned = true;
		rc = cuda_alloc(c->cuda, c->here_bytes, &c->results, &why);
	}
	if (!rc)
		rc = cuda_stream_make_urgent(c->cuda, &slots->check_stream, &why);
	/*
	 * Memory of the GPU comes as it was left, which may be with the results of another loader.  All kernels
	 * wait for this copy, because they wait for copies of batches behind it.
	 */
	if (!rc)
		rc = cuda_copy_in(c->cuda, c->results, c->here, c->here_bytes, slots->stream, &why);
	if (rc) {
		batch_check_close(c, false);
		error_set(err, rc,
			  "the GPU cannot check records (%s).  So a thread hashes each record before it is copied",
			  why.message);
		err->os_code = why.os_code;
		return rc;
	}
	*out = c;
	return SHARD_OK;
}

void batch_check_close(struct batch_check *c, bool inherited)
{
	if (!c)
		return;
	if (!inherited) {
		cuda_free(c->cuda, c->results);
		if (c->is_pinned)
			cuda_unpin(c->cuda, c->here);
		if (c->bounce_is_pinned)
			cuda_unpin(c->cuda, c->bounce);
		cuda_check_close(c->cuda, &c->kernels);
		if (c->here)
			buffer_close(c->here, (size_t)c->here_bytes);
		if (c->bounce)
			buffer_close(c->bounce, (size_t)c->bounce_bytes);
	}
	for (uint32_t i = 0; c->check && i < c->check_count; i++)
		mem_free(c->check[i].unit);
	mem_free(c->check);
	mem_free(c->found);
	mem_free(c);
}

/* ---- launches ---- */

/* Begin a call for units of so many rows, from this row on.  None is in it yet. */
static void begin_call(struct batch_check *c, const struct device_slot *s, uint32_t group, uint32_t row, uint32_t rows,
		       size_t result, struct check_call *call)
{
	const struct layout *layout = &c->feed->layout;
	uint64_t stride = layout->schema->group[group].stride;

	memset(call, 0, sizeof(*call));
	memset(call->skip, 0xff, sizeof(call->skip));
	call->bytes = call->step = rows * stride;
	call->from = (uintptr_t)s->as.memory + layout->group_at[group] + row * stride;
	call->to = c->results + (results_at(c, s->check) + result) * sizeof(*c->here);
	call->number = c->next_launch++;
	if (!c->next_launch)
		c->next_launch = 1;
}

static void put_unit(struct check_call *call, uint32_t place, uint64_t want)
{
	call->skip[place / 32] &= ~(UINT32_C(1) << place % 32);
	call->want[place] = want;
	call->row_count = place + 1;
}

/* Queue the copy of the first results of a check, behind the kernels on this stream. */
static int fetch_results(struct batch_check *c, const struct device_slot *s, size_t count, void *stream,
			 struct shard_error *err)
{
	size_t at = results_at(c, s->check);

	return cuda_copy_out(c->cuda, c->here + at, c->results + at * sizeof(*c->here), count * sizeof(*c->here),
			     stream, err);
}

/*
 * Queue the check of the units that are due, and the copy of the results.  A call has units of one
 * length at distances that are multiples of it.  Runs begin where they like, so the next one may need
 * another call.
 */
static int launch(struct batch_check *c, const struct device_slot *s, struct shard_error *err)
{
	struct check *check = &c->check[s->check];
	struct checked_unit *unit = check->unit, *end = unit + check->count;
	void *stream = c->slots->check_stream;
	struct check_call call;
	size_t results = 0;
	int rc = unit < end ? cuda_stream_wait(c->cuda, stream, s->ready, err) : SHARD_OK;

	while (!rc && unit < end) {
		const struct checked_unit *first = unit;

		if (first->is_mixed) {
			unit++;
			continue;
		}
		begin_call(c, s, first->group, first->row, first->rows, results, &call);
		for (; unit < end; unit++) {
			uint32_t place = (unit->row - first->row) / first->rows;

			if (unit->group != first->group || unit->rows != first->rows || place >= CHECK_ROWS ||
			    (unit->row - first->row) % first->rows)
				break;
			if (unit->is_mixed)
				continue;
			put_unit(&call, place, unit->want);
			unit->number = call.number;
			unit->result = (uint32_t)results + place;
			check->launched++;
		}
		results += call.row_count;
		rc = cuda_check_launch(c->cuda, &c->kernels, &call, stream, err);
	}
	if (!rc && results)
		rc = fetch_results(c, s, results, stream, err);
	return rc || !results ? rc : cuda_event_record(c->cuda, s->ready, stream, err);
}

/* A unit from this row on lies in the batch.  Was one of its records left unchecked? */
static bool is_due(const struct resident *r)
{
	bool due = false;

	for (uint32_t i = 0; !due && i < r->unit; i++)
		due = r[i].at && r[i].unchecked;
	return due;
}

static bool is_mixed(const uint8_t *row_flags, uint32_t rows)
{
	uint8_t all = 0;

	for (uint32_t i = 0; i < rows; i++)
		all |= row_flags[i];
	return all & ROW_REPAIRED;
}

int batch_check_queue(struct batch_check *c, const struct slot *host, struct device_slot *to, struct shard_error *err)
{
	struct check *check = &c->check[c->next_check];

	to->check = c->next_check;
	c->next_check = (c->next_check + 1) % c->check_count;
	check->count = check->launched = 0;
	for (uint32_t k = 0; k < c->group_count; k++) {
		uint32_t g = c->group[k];
		const struct resident *r = host->unchecked_groups >> g & 1 ? slot_residents(host, g) : NULL;

		for (uint32_t i = 0; r && i < host->rows; i += r[i].unit ? r[i].unit : 1)
			if (r[i].unit && is_due(r + i))
				check->unit[check->count++] =
					(struct checked_unit){.want = r[i].want,
							      .row = i,
							      .rows = r[i].unit,
							      .group = g,
							      .is_mixed = is_mixed(host->row_flags + i, r[i].unit)};
	}
	to->looked = !check->count;
	return launch(c, to, err);
}

/* ---- results ---- */

/* Read a result that is there.  Fails with DEVICE if it is that of another launch. */
static int read_result(const struct batch_check *c, const struct device_slot *s, size_t result, uint32_t number,
		       uint32_t row, bool *damaged, struct shard_error *err)
{
	const struct check_result *r = &c->here[results_at(c, s->check) + result];

	*damaged = r->verdict == CHECK_DAMAGED;
	if (r->number == number && (*damaged || r->verdict == CHECK_SOUND))
		return SHARD_OK;
	return error_set(err, SHARD_E_DEVICE,
			 "the GPU has not checked row %u of a %s: the result is that of launch %u, and not of launch "
			 "%u; open the dataset with SHARD_CHECK_FIRST, so that a CPU checks it, and report this",
			 row, c->feed->steps.share ? "slab of the pool" : "batch", r->number, number);
}

/* Look at the results of a batch, which are there.  Finds the rows that are to be brought again. */
static int look(struct batch_check *c, const struct device_slot *s, bool *any, struct shard_error *err)
{
	const struct check *check = &c->check[s->check];
	int rc = SHARD_OK;

	*any = false;
	memset(c->found, ROW_SOUND, c->rows);
	for (const struct checked_unit *u = check->unit; !rc && u < check->unit + check->count; u++) {
		bool damaged = false;

		if (!u->is_mixed)
			rc = read_result(c, s, u->result, u->number, u->row, &damaged, err);
		for (uint32_t i = u->row; !rc && i < u->row + u->rows; i++) {
			if (damaged)
				c->found[i] = ROW_FOUND;
			else if (u->is_mixed && !c->found[i] && !(s->as.row_flags[i] & ROW_REPAIRED))
				c->found[i] = ROW_MIXED;
			*any |= c->found[i] != ROW_SOUND;
		}
	}
	return rc;
}

bool batch_check_is_back(const struct batch_check *c, const struct device_slot *s)
{
	bool done;

	return s->looked || cuda_event_ask(c->cuda, s->ready, &done, NULL) || done;
}

/*
 * If the check of a batch has come back and is good, nothing of it is needed any more.  Where the driver
 * gives no answer, half of a result may be there.
 */
static bool look_early(struct batch_check *c, struct device_slot *s)
{
	bool any, done;

	if (cuda_event_ask(c->cuda, s->ready, &done, NULL) || !done || look(c, s, &any, NULL) || any)
		return false;
	c->checked += c->check[s->check].launched;
	return s->looked = true;
}

bool batch_check_has_room(struct batch_check *c)
{
	struct device_slots *o = c->slots;
	uint32_t first = 0;

	while (first < o->queue_count && o->slot[o->queue[first]].looked)
		first++;
	while (o->queue_count - first >= c->check_count && look_early(c, &o->slot[o->queue[first]]))
		first++;
	return o->queue_count - first < c->check_count;
}

/* ---- damage ---- */

static int open_bounce(struct batch_check *c, struct shard_error *err)
{
	if (c->bounce)
		return SHARD_OK;
	c->bounce_bytes = align_up(max_u64(c->feed->layout.record_bytes, BOUNCE_BYTES), LAYOUT_ALIGN);
	c->bounce = buffer_open((size_t)c->bounce_bytes);
	if (!c->bounce)
		return error_set(err, SHARD_E_MEMORY, "no memory to copy records of %" PRIu64 " bytes again",
				 c->bounce_bytes);
	buffer_keep(c->bounce, (size_t)c->bounce_bytes);
	c->bounce_is_pinned =
		c->bounce_bytes <= cuda_pin_most_bytes() && !cuda_pin(c->cuda, c->bounce, c->bounce_bytes, NULL);
	return SHARD_OK;
}

/* Queue the copy of bytes at `at` of a slot, which are put into the bounce buffer from *used on. */
static int copy_piece(struct batch_check *c, const struct slot *from, const struct device_slot *to, uint64_t at,
		      uint64_t bytes, uint64_t *used, struct shard_error *err)
{
	uint8_t *between = c->bounce + *used;

	memcpy(between, from->memory + at, (size_t)bytes);
	*used += bytes;
	return cuda_copy_in(c->cuda, (uintptr_t)to->as.memory + at, between, bytes, c->slots->stream, err);
}

/* Queue the copies of rows [first, end) to their place, with what describes them. */
static int copy_rows(struct batch_check *c, const struct slot *from, struct device_slot *to, uint32_t first,
		     uint32_t end, struct shard_error *err)
{
	const struct layout *layout = &c->feed->layout;
	uint64_t used = 0, rows = end - first;
	int rc = SHARD_OK;

	for (uint32_t k = 0; !rc && k < layout->group_count; k++) {
		uint32_t g = layout->group[k];
		uint64_t stride = layout->schema->group[g].stride;

		if (layout_is_block(layout, g))
			rc = copy_piece(c, from, to, layout->group_at[g] + first * stride, rows * stride, &used, err);
		for (uint32_t i = 0; !rc && !layout_is_block(layout, g) && i < layout->field_count[g]; i++) {
			const struct spread_field *f = &layout->field[g][i];

			rc = copy_piece(c, from, to, f->at + first * f->bytes, rows * f->bytes, &used, err);
		}
	}
	for (uint32_t row = first; row < end; row++) {
		c->recopied += !rc && c->found[row] == ROW_FOUND && from->row_flags[row] == to->as.row_flags[row];
		to->is_repaired |= from->row_flags[row] & ROW_REPAIRED;
		to->as.record[row] = from->record[row];
		to->as.row_flags[row] = from->row_flags[row];
		for (uint32_t k = 0; k < layout->whole_count; k++)
			slot_sizes(&to->as, k)[row] = slot_sizes(from, k)[row];
	}
	return rc;
}

/* Have what was copied to rows [first, end) hashed there, and wait for that. */
static int check_rows(struct batch_check *c, const struct slot *from, const struct device_slot *to, uint32_t first,
		      uint32_t end, struct shard_error *err)
{
	const struct layout *layout = &c->feed->layout;
	uint32_t number = c->next_launch;
	struct shown s;
	int rc = SHARD_OK;

	for (uint32_t k = 0; !rc && k < c->group_count; k++) {
		uint64_t stride = layout->schema->group[c->group[k]].stride;
		struct check_call call;

		begin_call(c, to, c->group[k], first, end - first, k, &call);
		put_unit(&call, 0,
			 checksum64(from->memory + layout->group_at[c->group[k]] + first * stride, (size_t)call.bytes));
		rc = cuda_check_launch(c->cuda, &c->kernels, &call, c->slots->stream, err);
	}
	if (!rc)
		rc = fetch_results(c, to, c->group_count, c->slots->stream, err);
	if (!rc)
		rc = cuda_stream_finish(c->cuda, c->slots->stream, err); /* the next rows need the buffer, too */
	for (uint32_t k = 0; !rc && k < c->group_count; k++) {
		bool damaged;

		rc = read_result(c, to, k, number, first, &damaged, err);
		number = number + 1 ? number + 1 : 1;
		if (!rc && damaged)
			rc = error_set(err, SHARD_E_DEVICE,
				       "%s: record %" PRIu64 "%s is sound in host memory, and is damaged on the GPU "
				       "after a second copy, too: the link to the GPU or its memory is faulty",
				       show(&s, c->feed->ds->dir), to->as.record[first],
				       end - first > 1 ? ", or one in the rows behind it," : "");
	}
	return rc;
}

/*
 * Bring the rows that were found again, and copy them.  If damage is an error, bring all rows from the
 * first one on: the error is then the one that a batch in host memory has.
 */
static int repair(struct batch_check *c, struct device_slot *to, struct shard_error *err)
{
	bool strict = c->feed->o.repair.on_corrupt == SHARD_CORRUPT_FAIL;
	uint64_t row_bytes = max_u64(c->feed->layout.record_bytes, 1), repaired = 0;
	uint32_t first = 0, last = to->as.rows - 1, end;
	const struct slot *from = NULL;
	int rc = open_bounce(c, err);

	while (!c->found[first])
		first++;
	while (!c->found[last])
		last--;
	if (!rc && strict) /* in the same blocks of rows as a thread has filled them */
		rc = feed_bring_again(c->feed, &to->as,
				      c->feed->source.layouts.part ? 0 : first / BLOCK_ROWS * BLOCK_ROWS, last + 1,
				      &from, &repaired, err);
	for (; !rc && first <= last; first = end) {
		end = first + 1;
		if (!c->found[first])
			continue;
		while (end <= last && c->found[end] && (end + 1 - first) * row_bytes <= c->bounce_bytes)
			end++;
		if (!strict)
			rc = feed_bring_again(c->feed, &to->as, first, end, &from, &repaired, err);
		to->repaired += repaired;
		if (!rc)
			rc = copy_rows(c, from, to, first, end, err);
		if (!rc)
			rc = check_rows(c, from, to, first, end, err);
	}
	return rc;
}

int batch_check_finish(struct batch_check *c, struct device_slot *to, struct shard_error *err)
{
	uint64_t begin = clock_now_ns();
	bool any, done;
	int rc;

	if (to->looked)
		return SHARD_OK;
	rc = cuda_event_ask(c->cuda, to->ready, &done, err);
	if (!rc && !done) {
		rc = cuda_event_finish(c->cuda, to->ready, err);
		c->waits++;
		c->wait_ns += clock_now_ns() - begin;
	}
	if (!rc)
		rc = look(c, to, &any, err);
	if (rc)
		return rc;
	c->checked += c->check[to->check].launched;
	if (any)
		rc = repair(c, to, err);
	to->looked = !rc;
	return rc;
}

void batch_check_stats(const struct batch_check *c, struct shard_loader_stats *out)
{
	out->device_checked_count = c->checked;
	out->check_wait_count = c->waits;
	out->device_wait_ns += c->wait_ns;
	out->recopied_count = c->recopied;
}
