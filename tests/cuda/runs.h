/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - pools of small records, whose runs come out of the page cache, and the same without that
 *
 * A program that includes this links with -Wl,--wrap=slot_fill.
 */
#ifndef TESTS_CUDA_RUNS_H
#define TESTS_CUDA_RUNS_H

#include "tests/cuda/pooling.h"

/* A loader in host memory, and pools that are fed by the ring and out of the page cache. */
struct runs {
	struct training maps;
	struct shard_loader *ring, *host;
	bool is_held;
};

/* Images of `width` pixels in one line, in units of so many records; 0: as advised. */
static inline void open_lines(uint32_t width, uint32_t weights, uint32_t unit)
{
	schema = photo_schema(1, SHARD_RAW);
	schema.field[PHOTO_IMAGE].shape[1] = width;
	schema.field[PHOTO_WEIGHT].shape[0] = weights;
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	if (unit)
		schema.group[0].unit_records = unit;
	make_dataset("lines", shards, COUNT(shards));
}

static inline void open_runs(struct runs *r, struct shard_loader_options o, uint64_t seed)
{
	o.size = sizeof(o);
	o.gpu.pool_bytes = least_pool(o);
	open_pool(&r->maps, o, seed);
	r->is_held = r->maps.l->pool->plan.is_held;
	o.gpu.pin_most = SHARD_PIN_NOTHING;
	CHECK_OK(shard_loader_open(&r->ring, ds, &o, &fixture_err));
	o.gpu = (struct shard_loader_gpu){.slot_count = 0};
	CHECK_OK(shard_loader_open(&r->host, ds, &o, &fixture_err));
}

/* What differs between a batch of a pool and that of the host; "": nothing. */
static inline const char *difference(const struct shard_batch *got, const struct shard_batch *want, uint32_t fields)
{
	fake->settle();
	if (got->epoch != want->epoch || got->position != want->position || got->record_count != want->record_count)
		return "place";
	if (memcmp(got->record, want->record, want->record_count * sizeof(*want->record)))
		return "records";
	if (memcmp(got->row_flags, want->row_flags, want->record_count))
		return "flags";
	for (uint32_t f = 0; f < schema.field_count; f++)
		for (uint32_t i = 0; fields >> f & 1 && i < want->record_count; i++) {
			const uint8_t *at = fake->at((uintptr_t)got->field[f].data + i * got->field[f].stride);

			if (got->field[f].stride != want->field[f].stride ||
			    memcmp(at, (const uint8_t *)want->field[f].data + i * want->field[f].stride,
				   schema.field[f].bytes))
				return schema.field[f].name;
		}
	return "";
}

/*
 * So many calls of all three.  Returns what differed first, or "".  Damage that is an error ends
 * this: *failed is its status, and both pools say the same, which is in *why.
 */
static inline const char *compare_runs(struct runs *r, unsigned calls, uint32_t fields, int *failed,
				       struct shard_error *why)
{
	const char *found = "";

	for (*failed = SHARD_OK; calls && !*found && !*failed; calls--) {
		struct shard_batch maps, ring, host;
		struct shard_error other;
		int rc = shard_loader_next_device(r->ring, r->maps.stream, &ring, &other);

		if (shard_loader_next_device(r->maps.l, r->maps.stream, &maps, why) != rc)
			return "status";
		if (rc == SHARD_E_CORRUPT || rc == SHARD_E_IO) {
			*failed = rc;
			return strcmp(why->message, other.message) ? "error" : "";
		}
		CHECK_EQ(shard_loader_next(r->host, &host, &other), rc);
		if (rc == SHARD_END)
			continue;
		CHECK_EQ(rc, SHARD_OK);
		CHECK_STR(difference(&ring, &host, fields), "");
		found = difference(&maps, &host, fields);
		CHECK_OK(shard_loader_release_after(r->maps.l, &maps, r->maps.stream, &fixture_err));
		CHECK_OK(shard_loader_release_after(r->ring, &ring, r->maps.stream, &fixture_err));
		CHECK_OK(shard_loader_release(r->host, &host, &fixture_err));
	}
	return found;
}

#endif
