/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_options.c - settles the options of a loader: fills in defaults, checks them, makes steps of them
 *
 * The order depends on the options and the schema of the dataset alone.  It does not depend on
 * batch size, threads, memory or world: jobs that differ in those have the same order.
 */
#include "libshard/loader/loader.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/thread.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"

#define SLOTS_DEFAULT	4u
#define DEVICE_SLOTS	3u /* the trainer has one, one is there, and one is on its way */
#define THREADS_DEFAULT 4u /* at most; one thread copies some 14 GB/s, but decoding needs more */
#define THREADS_MOST	256u
#define GLOBAL_BYTES	(UINT64_C(128) << 10) /* one such record is worth a request to a disk */
#define WINDOW_RUNS	40u		      /* in 64 lanes and runs of 256 KiB: 0.67 GB, ten batches of 256 runs */
#define LANES		64u
#define WINDOW_MOST	65536u /* records of a window: more are a mistake, or belong into one record */
#define CORRUPT_DEFAULT 1024u  /* rows: more are not a few bad sectors */

static int check(const struct shard_loader_options *o, struct shard_error *err)
{
	const struct {
		const char *name;
		uint32_t value;
	} reserved[] = {{"reserved", o->reserved},
			{"order.reserved", o->order.reserved},
			{"repair.reserved", o->repair.reserved},
			{"window.reserved", o->window.reserved}};

	if (o->order.shuffle > SHARD_SHUFFLE_WINDOWS || o->tail > SHARD_KEEP)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: order.shuffle is %u, tail %u; must be at most 3 and 2", o->order.shuffle,
				 o->tail);
	if (!o->batch_records)
		return error_set(err, SHARD_E_ARGUMENT, "options: batch_records is 0; must be 1 or more");
	if (o->rank >= o->world)
		return error_set(err, SHARD_E_ARGUMENT, "options: rank is %u; must be below world, %u", o->rank,
				 o->world);
	if (o->tail == SHARD_KEEP && o->world != 1)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: SHARD_KEEP needs world 1, not %u, because ranks would take different "
				 "numbers of steps; use SHARD_DROP or SHARD_PAD",
				 o->world);
	if (o->slot_count < 2 || o->slot_count > LAYOUT_SLOTS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "options: slot_count is %u; must be 2 to %u", o->slot_count,
				 LAYOUT_SLOTS_MAX);
	if (o->gpu.slot_count < DEVICE_SLOTS_MIN || o->gpu.slot_count > DEVICE_SLOTS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "options: gpu.slot_count is %u; must be %u to %u",
				 o->gpu.slot_count, DEVICE_SLOTS_MIN, DEVICE_SLOTS_MAX);
	if (o->gpu.stream && !o->gpu.device)
		return error_set(
			err, SHARD_E_ARGUMENT,
			"options: gpu.stream is %p and gpu.device 0; set gpu.device to SHARD_GPU_OF_STREAM, or to the "
			"SHARD_GPU(n) of that stream",
			o->gpu.stream);
	if (o->thread_count > THREADS_MOST)
		return error_set(err, SHARD_E_ARGUMENT, "options: thread_count is %u; must be at most %u",
				 o->thread_count, THREADS_MOST);
	if (o->path > SHARD_PATH_PREAD || o->repair.on_corrupt > SHARD_CORRUPT_MASK)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: path is %u, repair.on_corrupt %u; must be at most 3 and 2", o->path,
				 o->repair.on_corrupt);
	if (o->order.run_records > ORDER_RECORDS_MAX || o->order.phase_unit_records > ORDER_RECORDS_MAX)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: order.run_records is %" PRIu64 ", order.phase_unit_records %" PRIu64
				 "; must be at most %" PRIu64,
				 o->order.run_records, o->order.phase_unit_records, ORDER_RECORDS_MAX);
	if (o->order.shuffle != SHARD_SHUFFLE_WINDOWS && o->order.shuffle != SHARD_SHUFFLE_BY_SIZE &&
	    (o->order.run_records || o->order.phase_unit_records || o->order.window_runs || o->order.lane_count))
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: runs, windows and lanes need SHARD_SHUFFLE_WINDOWS; order.shuffle is %u",
				 o->order.shuffle);
	if (o->resume_appended > 1)
		return error_set(err, SHARD_E_ARGUMENT, "options: resume_appended is %u; must be 0 or 1",
				 o->resume_appended);
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (reserved[i].value)
			return error_set(err, SHARD_E_ARGUMENT, "options: %s is %u; must be 0", reserved[i].name,
					 reserved[i].value);
	return SHARD_OK;
}

/* Runs are made of whole units, the same ones in every epoch, so that no chunk is read in parts. */
static void settle_windows(struct shard_loader_order *o, const struct shard_schema *s)
{
	const struct shard_group *main = &s->group[0]; /* the one with the longest records */
	uint64_t record_bytes = schema_strides(s), unit;
	bool compressed = false;

	for (uint32_t g = 0; g < s->group_count; g++) {
		compressed |= s->group[g].codec != SHARD_RAW;
		if (s->group[g].stride > main->stride)
			main = &s->group[g];
	}
	unit = main->codec == SHARD_RAW ? main->unit_records : main->chunk_records;
	if (o->shuffle == SHARD_SHUFFLE_BY_SIZE && !o->run_records && !o->phase_unit_records && !o->window_runs &&
	    !o->lane_count)
		o->shuffle = record_bytes >= GLOBAL_BYTES && !compressed ? SHARD_SHUFFLE_GLOBAL : SHARD_SHUFFLE_WINDOWS;
	else if (o->shuffle == SHARD_SHUFFLE_BY_SIZE)
		o->shuffle = SHARD_SHUFFLE_WINDOWS;
	if (o->shuffle != SHARD_SHUFFLE_WINDOWS)
		return;
	o->phase_unit_records = o->phase_unit_records ? o->phase_unit_records : unit;
	if (!o->run_records)
		o->run_records = ceil_div(ceil_div(FETCH_RUN_BYTES, record_bytes), unit) * unit;
	o->window_runs = o->window_runs ? o->window_runs : WINDOW_RUNS;
	o->lane_count = o->lane_count ? o->lane_count : LANES;
}

/* Fields of varying shape need their lengths, and images that differ in size their sizes. */
static int settle_fields(struct shard_loader_options *o, const struct shard_schema *s, struct shard_error *err)
{
	uint32_t all = (UINT32_C(1) << s->field_count) - 1;

	if (o->fields & ~all)
		return error_set(err, SHARD_E_ARGUMENT, "options: fields is %#x; the dataset has %u fields", o->fields,
				 s->field_count);
	if (!o->fields)
		o->fields = all;
	for (uint32_t f = 0; f < s->field_count; f++) {
		uint32_t size = shard_image_size_field(s, f);

		if (!(o->fields >> f & 1) || s->field[f].kind == SHARD_TENSOR)
			continue;
		o->fields |= UINT32_C(1) << s->field[f].length_field;
		if (size < s->field_count)
			o->fields |= UINT32_C(1) << size;
	}
	return SHARD_OK;
}

/* What a mixture decides by itself. */
static int check_mix(const struct shard_loader_options *o, struct shard_error *err)
{
	if (o->selection)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: there are a mixture and a selection; give the selection to "
				 "shard_mix_open(), with its dataset");
	if (o->tail != SHARD_DROP)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: tail is %u; an epoch of a mixture has no tail, as its last step takes "
				 "positions of the next epoch: leave tail at 0",
				 o->tail);
	if (o->gpu.pool_bytes)
		return error_set(err, SHARD_E_UNSUPPORTED,
				 "options: gpu.pool_bytes is %" PRIu64
				 ", but a pool cannot hold a mixture; leave it at 0",
				 o->gpu.pool_bytes);
	return SHARD_OK;
}

/* A pool copies whole records as they are stored, and they must be so in all parts. */
static int check_joined(const struct shard_loader_options *o, const struct shard_dataset *ds, struct shard_error *err)
{
	struct shown s;

	if (o->gpu.pool_bytes && ds->parts_differ)
		return error_set(err, SHARD_E_UNSUPPORTED,
				 "options: gpu.pool_bytes is %" PRIu64 ", but the parts of %s store their records in "
				 "different ways, and a pool cannot hold those; leave it at 0",
				 o->gpu.pool_bytes, show(&s, ds->dir));
	return joined_check_fields(ds, o->fields, err);
}

/* Rows of a batch that follow from one record, and what cannot be with these. */
static int check_window(const struct shard_loader_options *o, const struct shard_dataset *ds, struct shard_error *err)
{
	const struct shard_loader_window *w = &o->window;
	uint64_t rows;

	if (!w->episodes && !w->offset_count && !w->offset)
		return SHARD_OK;
	if (!w->episodes || !w->offset_count || !w->offset)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: window.episodes, window.offset and window.offset_count: %s; give all of "
				 "them, or none",
				 w->episodes ? "there are no offsets" : "there are no episodes");
	if (w->offset_count > WINDOW_MOST)
		return error_set(err, SHARD_E_ARGUMENT, "options: window.offset_count is %u; must be at most %u",
				 w->offset_count, WINDOW_MOST);
	for (uint32_t i = 1; i < w->offset_count; i++)
		if (w->offset[i] <= w->offset[i - 1])
			return error_set(err, SHARD_E_ARGUMENT,
					 "options: window.offset[%u] is %" PRId32 ", behind %" PRId32
					 "; offsets must be ascending",
					 i, w->offset[i], w->offset[i - 1]);
	if (!mul_fits(o->batch_records, w->offset_count, &rows) || rows > UINT32_MAX)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: batches of %u windows of %u records have more than 2^32 rows; use smaller "
				 "batches",
				 o->batch_records, w->offset_count);
	if (o->mix || o->gpu.pool_bytes)
		return error_set(err, SHARD_E_UNSUPPORTED,
				 "options: window is given, and windows cannot be %s; leave one of both out",
				 o->mix ? "of a mixture" : "gathered from a pool on a GPU (gpu.pool_bytes)");
	if (o->repair.on_corrupt == SHARD_CORRUPT_SUBSTITUTE)
		return error_set(
			err, SHARD_E_ARGUMENT,
			"options: window is given, and repair.on_corrupt would put another record in the place "
			"of a damaged one in the middle of a window; use SHARD_CORRUPT_MASK");
	if (o->resume_appended)
		return error_set(
			err, SHARD_E_UNSUPPORTED,
			"options: window is given, and resume_appended: windows of the epoch before the append "
			"would reach into its new records; leave one of both out");
	return dataset_check_id(ds, w->episodes->dataset_id, "options: window.episodes are", err);
}

int settle_options(struct shard_loader_options *o, const struct shard_dataset *ds, struct steps *out,
		   struct shard_error *err)
{
	static const enum order_kind kinds[] = {[SHARD_SEQUENTIAL] = ORDER_SEQUENTIAL,
						[SHARD_SHUFFLE_GLOBAL] = ORDER_ONE_LEVEL,
						[SHARD_SHUFFLE_WINDOWS] = ORDER_TWO_LEVELS};
	static const enum order_last tails[] = {
		[SHARD_DROP] = ORDER_DROP, [SHARD_PAD] = ORDER_PAD, [SHARD_KEEP] = ORDER_KEEP};
	uint64_t record_count = o->selection ? o->selection->count : ds->m.record_count;
	uint32_t cpus;
	int rc;

	o->world = o->world ? o->world : 1;
	o->repair.corrupt_most = o->repair.corrupt_most ? o->repair.corrupt_most : CORRUPT_DEFAULT;
	o->slot_count = o->slot_count ? o->slot_count : SLOTS_DEFAULT;
	o->gpu.slot_count = o->gpu.slot_count ? o->gpu.slot_count : DEVICE_SLOTS;
	if (!o->thread_count) {
		cpus = thread_cpu_count();
		o->thread_count = cpus < THREADS_DEFAULT ? cpus : THREADS_DEFAULT;
	}
	rc = check(o, err);
	if (rc)
		return rc;
	rc = settle_fields(o, &ds->m.schema, err);
	if (!rc && o->mix)
		rc = check_mix(o, err);
	else if (!rc && o->selection)
		rc = dataset_check_id(ds, o->selection->dataset_id, "options: the selection is", err);
	if (!rc && ds->part_count)
		rc = check_joined(o, ds, err);
	if (rc)
		return rc;
	if (o->tail == SHARD_KEEP && !o->mix && record_count) /* no batch has more, so none needs more memory */
		o->batch_records = (uint32_t)min_u64(o->batch_records, record_count);
	rc = check_window(o, ds, err);
	if (rc)
		return rc;
	settle_windows(&o->order, &ds->m.schema);
	if (o->mix)
		record_count = o->mix->epoch_records;
	*out = (struct steps){.selection = o->selection, .window = o->window};
	out->params = (struct order_params){
		.kind = kinds[o->order.shuffle],
		.record_count = record_count,
		.seed = o->order.seed,
		.run_records = o->order.run_records,
		.phase_unit_records = o->order.phase_unit_records,
		.window_runs = o->order.window_runs,
		.lane_count = o->mix && !o->order.lane_count ? LANES : o->order.lane_count,
	};
	out->rank = (struct order_rank){
		.record_count = record_count,
		.batch_records = o->batch_records,
		.rank = o->rank,
		.world = o->world,
		.last = o->mix ? ORDER_RUN_ON : tails[o->tail],
	};
	if (order_rank_check(&out->rank))
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: %u records for each of %u ranks exceed %" PRIu64 " records in a step; use "
				 "smaller batches",
				 o->batch_records, o->world, ORDER_STEP_RECORDS_MAX);
	return SHARD_OK;
}
