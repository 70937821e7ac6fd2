/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_check.c - a batch is hashed where it lies on the GPU, before it is lent
 *
 * Behind the copies of a batch, on their stream, kernels hash each row that a thread has left
 * unchecked.  Behind these, one copy brings the results to page-locked memory.  The host looks at
 * them when the event behind that copy is done.  Each launch has a number of its own, so the result
 * of an older one, of a kernel that did not run, cannot be taken for a new one.
 *
 * A damaged row is read again by the CPU, which checks it and does what the options say.  What the
 * CPU has then is copied to the row's place, and is hashed there once more.  That must be good.
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

struct batch_check {
	struct feed *feed; /* const after open, as: */
	struct device_slots *slots;
	const struct cuda_device *cuda;
	uint32_t group[SHARD_GROUPS_MAX], group_count; /* whose records are checked */
	uint32_t rows;				       /* of a batch at most */
	struct cuda_check kernels;
	uint64_t results;	   /* an address of the GPU: [slot_count of slots][group_count][rows] */
	struct check_result *here; /* the same as the host gets them, page-locked */
	uint64_t here_bytes;
	bool is_pinned;

	struct checked_slot {
		uint8_t *due;	/* [group_count][rows] is the row checked? */
		uint64_t *want; /* [group_count][rows] the hashes of these */
		bool queued;	/* some are */
		uint32_t first; /* number of the first launch; those behind it follow */
	} * of;			/* [slot_count of slots] */
	uint8_t *damaged;	/* [rows] of the batch that is being finished */
	uint32_t next;		/* number of the next launch, never 0 */
	/* A row on its way to the GPU for the second time, page-locked if that is allowed. */
	uint8_t *bounce;
	uint64_t bounce_bytes;
	bool bounce_is_pinned;
	uint64_t checked, waits, wait_ns, recopied;
};

/* ---- life ---- */

uint32_t batch_check_groups(const struct feed *f, uint32_t map_groups)
{
	/* The rows of a pool come in runs, of which the CPU hashes each record once. */
	return f->steps.share || f->ds->o.check == SHARD_CHECK_NEVER || f->ds->o.check == SHARD_CHECK_FIRST
		       ? 0
		       : map_groups;
}

/* Results of a device slot begin there. */
static size_t results_at(const struct batch_check *c, const struct device_slot *s)
{
	return (size_t)(s - c->slots->slot) * c->group_count * c->rows;
}

static bool alloc_all(struct batch_check *c)
{
	size_t each = (size_t)c->group_count * c->rows;
	bool has;

	c->here_bytes = align_up(c->slots->slot_count * each * sizeof(*c->here), LAYOUT_ALIGN);
	c->here = buffer_open((size_t)c->here_bytes);
	if (c->here) {
		/* Else the GPU might write to the copy of a forked child. */
		buffer_keep(c->here, (size_t)c->here_bytes);
		memset(c->here, 0, (size_t)c->here_bytes);
	}
	c->of = mem_array(c->slots->slot_count, sizeof(*c->of));
	c->damaged = mem_array(c->rows, sizeof(*c->damaged));
	has = c->here && c->of && c->damaged;
	for (uint32_t i = 0; has && i < c->slots->slot_count; i++) {
		c->of[i].due = mem_array(each, sizeof(*c->of[i].due));
		c->of[i].want = mem_array(each, sizeof(*c->of[i].want));
		has = c->of[i].due && c->of[i].want;
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
		c->next = 1;
		for (uint32_t g = 0; g < feed->layout.schema->group_count; g++)
			if (groups >> g & 1)
				c->group[c->group_count++] = g;
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
	/* Memory of the GPU comes as it was left, which may be with the results of another loader. */
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
	for (uint32_t i = 0; c->of && i < c->slots->slot_count; i++) {
		mem_free(c->of[i].due);
		mem_free(c->of[i].want);
	}
	mem_free(c->of);
	mem_free(c->damaged);
	mem_free(c);
}

/* ---- launches ---- */

/* Put the rows into a call that are due.  Returns whether there are any. */
static bool put_rows(struct check_call *call, const uint8_t *due, const uint64_t *want)
{
	bool any = false;

	memset(call->skip, 0, sizeof(call->skip));
	for (uint32_t i = 0; i < call->row_count; i++) {
		call->want[i] = want[i];
		if (due[i])
			any = true;
		else
			call->skip[i / 32] |= UINT32_C(1) << i % 32;
	}
	return any;
}

/*
 * Queue the check of the rows that are due, and the copy of the results.  Each part of a group has a
 * number, whether or not it needs a launch.
 */
static int launch(struct batch_check *c, struct device_slot *s, struct shard_error *err)
{
	const struct layout *layout = &c->feed->layout;
	struct checked_slot *of = &c->of[s - c->slots->slot];
	size_t at = results_at(c, s), each = (size_t)c->group_count * c->rows;
	uint32_t parts = c->group_count * (uint32_t)ceil_div(c->rows, CHECK_ROWS);
	struct check_call call;
	int rc = SHARD_OK;

	if (c->next > UINT32_MAX - parts)
		c->next = 1;
	of->first = c->next;
	for (uint32_t k = 0; k < c->group_count; k++) {
		call.bytes = call.step = layout->schema->group[c->group[k]].stride;
		for (uint32_t first = 0; !rc && first < c->rows; first += CHECK_ROWS) {
			size_t row = (size_t)k * c->rows + first;

			call.number = c->next++;
			if (first >= s->as.rows)
				continue;
			call.row_count = (uint32_t)min_u64(CHECK_ROWS, s->as.rows - first);
			call.from = (uintptr_t)s->as.memory + layout->group_at[c->group[k]] + first * call.step;
			call.to = c->results + (at + row) * sizeof(*c->here);
			if (put_rows(&call, of->due + row, of->want + row))
				rc = cuda_check_launch(c->cuda, &c->kernels, &call, c->slots->stream, err);
		}
	}
	return rc ? rc
		  : cuda_copy_out(c->cuda, c->here + at, c->results + at * sizeof(*c->here), each * sizeof(*c->here),
				  c->slots->stream, err);
}

int batch_check_queue(struct batch_check *c, const struct slot *host, struct device_slot *to, struct shard_error *err)
{
	struct checked_slot *of = &c->of[to - c->slots->slot];

	of->queued = false;
	for (uint32_t k = 0; k < c->group_count; k++) {
		const struct resident *resident = slot_residents(host, c->group[k]);

		for (uint32_t i = 0; i < host->rows; i++) {
			bool due = resident && resident[i].at && resident[i].unchecked;

			of->due[(size_t)k * c->rows + i] = due;
			of->want[(size_t)k * c->rows + i] = due ? resident[i].want : 0;
			of->queued |= due;
		}
	}
	return of->queued ? launch(c, to, err) : SHARD_OK;
}

/* ---- results ---- */

/*
 * Look at the results of a batch, which are there.  Marks damaged rows.  Fails with DEVICE if a
 * result is missing.
 */
static int look(struct batch_check *c, const struct device_slot *s, uint32_t *damaged, struct shard_error *err)
{
	const struct checked_slot *of = &c->of[s - c->slots->slot];
	uint32_t parts = (uint32_t)ceil_div(c->rows, CHECK_ROWS);

	*damaged = 0;
	memset(c->damaged, 0, c->rows);
	for (uint32_t k = 0; k < c->group_count; k++)
		for (uint32_t i = 0; i < s->as.rows; i++) {
			size_t row = (size_t)k * c->rows + i;
			const struct check_result *r = &c->here[results_at(c, s) + row];
			uint32_t number = of->first + k * parts + i / CHECK_ROWS;

			if (!of->due[row])
				continue;
			if (r->number != number || (r->verdict != CHECK_SOUND && r->verdict != CHECK_DAMAGED))
				return error_set(err, SHARD_E_DEVICE,
						 "the GPU has not checked row %u of a batch: the result is that of "
						 "launch %u, and not of launch %u; open the dataset with "
						 "SHARD_CHECK_FIRST, so that a CPU checks it, and report this",
						 i, r->number, number);
			c->checked++;
			if (r->verdict == CHECK_SOUND)
				continue;
			*damaged += !c->damaged[i];
			c->damaged[i] = 1;
		}
	return SHARD_OK;
}

/* ---- damage ---- */

static int open_bounce(struct batch_check *c, struct shard_error *err)
{
	if (c->bounce)
		return SHARD_OK;
	c->bounce_bytes = align_up(c->feed->layout.record_bytes, LAYOUT_ALIGN);
	c->bounce = buffer_open((size_t)c->bounce_bytes);
	if (!c->bounce)
		return error_set(err, SHARD_E_MEMORY, "no memory to copy a record of %" PRIu64 " bytes again",
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

/*
 * Copy a row to its place, with what describes it, and have its records checked there.  If it is
 * another record now, or zeros, these are what the CPU has.
 */
static int copy_row(struct batch_check *c, const struct slot *from, struct device_slot *to, uint32_t row, bool repaired,
		    struct shard_error *err)
{
	const struct layout *layout = &c->feed->layout;
	struct checked_slot *of = &c->of[to - c->slots->slot];
	uint64_t used = 0;
	int rc = open_bounce(c, err);

	for (uint32_t k = 0; !rc && k < layout->group_count; k++) {
		uint32_t g = layout->group[k];
		uint64_t stride = layout->schema->group[g].stride;

		if (layout_is_block(layout, g))
			rc = copy_piece(c, from, to, layout->group_at[g] + row * stride, stride, &used, err);
		for (uint32_t i = 0; !rc && !layout_is_block(layout, g) && i < layout->field_count[g]; i++) {
			const struct spread_field *f = &layout->field[g][i];

			rc = copy_piece(c, from, to, f->at + row * f->bytes, f->bytes, &used, err);
		}
	}
	if (rc)
		return rc;
	to->as.record[row] = from->record[row];
	to->as.row_flags[row] = from->row_flags[row];
	for (uint32_t k = 0; k < layout->whole_count; k++)
		slot_sizes(&to->as, k)[row] = slot_sizes(from, k)[row];
	for (uint32_t k = 0; k < c->group_count; k++) {
		uint64_t stride = layout->schema->group[c->group[k]].stride;
		size_t at = (size_t)k * c->rows + row;

		if (repaired || !of->due[at])
			of->want[at] =
				checksum64(from->memory + layout->group_at[c->group[k]] + row * stride, (size_t)stride);
		of->due[at] = 1;
	}
	return cuda_stream_finish(c->cuda, c->slots->stream, err); /* the next row needs the buffer */
}

/*
 * Bring the damaged rows again, copy them, and have only these checked.  If damage is an error, bring
 * all rows: the error is then the one that a batch in host memory has.
 */
static int bring_again(struct batch_check *c, struct device_slot *to, struct shard_error *err)
{
	struct checked_slot *of = &c->of[to - c->slots->slot];
	bool strict = c->feed->o.repair.on_corrupt == SHARD_CORRUPT_FAIL;
	const struct slot *from = NULL;
	uint64_t repaired = 0;
	int rc = strict ? feed_bring_again(c->feed, &to->as, 0, to->as.rows, &from, &repaired, err) : SHARD_OK;

	for (uint32_t i = 0; !rc && i < to->as.rows; i++) {
		if (!c->damaged[i]) {
			for (uint32_t k = 0; k < c->group_count; k++)
				of->due[(size_t)k * c->rows + i] = 0;
			continue;
		}
		if (!strict)
			rc = feed_bring_again(c->feed, &to->as, i, i + 1, &from, &repaired, err);
		if (!rc)
			rc = copy_row(c, from, to, i, repaired, err);
		to->repaired += repaired;
		c->recopied += !rc && !repaired;
	}
	return rc;
}

static int repair(struct batch_check *c, struct device_slot *to, struct shard_error *err)
{
	uint64_t checked = c->checked;
	struct shown s;
	uint32_t damaged, row = 0;
	int rc;

	rc = bring_again(c, to, err);
	if (!rc)
		rc = launch(c, to, err);
	if (!rc)
		rc = cuda_stream_finish(c->cuda, c->slots->stream, err);
	if (!rc)
		rc = look(c, to, &damaged, err);
	c->checked = checked; /* these rows were counted */
	if (rc || !damaged)
		return rc;
	while (!c->damaged[row])
		row++;
	return error_set(err, SHARD_E_DEVICE,
			 "%s: record %" PRIu64
			 " is sound in host memory, and is damaged on the GPU after a second copy, too: "
			 "the link to the GPU or its memory is faulty",
			 show(&s, c->feed->ds->dir), to->as.record[row]);
}

int batch_check_finish(struct batch_check *c, struct device_slot *to, struct shard_error *err)
{
	struct checked_slot *of = &c->of[to - c->slots->slot];
	uint64_t begin = clock_now_ns();
	uint32_t damaged;
	bool done;
	int rc;

	if (!of->queued)
		return SHARD_OK;
	rc = cuda_event_ask(c->cuda, to->ready, &done, err);
	if (!rc && !done) {
		rc = cuda_event_finish(c->cuda, to->ready, err);
		c->waits++;
		c->wait_ns += clock_now_ns() - begin;
	}
	if (!rc)
		rc = look(c, to, &damaged, err);
	return rc || !damaged ? rc : repair(c, to, err);
}

void batch_check_stats(const struct batch_check *c, struct shard_loader_stats *out)
{
	out->device_checked_count = c->checked;
	out->check_wait_count = c->waits;
	out->device_wait_ns += c->wait_ns;
	out->recopied_count = c->recopied;
}
