/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_tally.c - statistics of what was written: sums over the channels of images, records of each class
 *
 * The same that shardpack counts, so that a dataset says the same of itself whoever packed it.
 */
#include "python/core/base/py_core.h"

#include <string.h>

#define PIECE 32768 /* squares of that many bytes fit 32 bits */
#define LANES 12    /* a multiple of every number of channels, so that a lane meets one channel only */

uint32_t tally_channels(const struct shard_field *f)
{
	uint32_t channels = 0;

	if (f->kind != SHARD_TENSOR || f->dtype != SHARD_U8 || f->semantic != SHARD_IMAGE || f->ndim != 3)
		return 0;
	if (f->layout == SHARD_HWC)
		channels = f->shape[2];
	else if (f->layout == SHARD_CHW)
		channels = f->shape[0];
	return channels <= TALLY_CHANNELS_MAX ? channels : 0;
}

uint32_t tally_label(const struct shard_schema *s)
{
	uint32_t f;

	for (f = 0; f < s->field_count; f++)
		if (s->field[f].semantic == SHARD_LABEL && s->field[f].dtype == SHARD_I64 && !s->field[f].ndim)
			return f;
	return SHARD_FIELDS_MAX;
}

static void add(struct shard_moments *m, uint64_t count, uint64_t sum, uint64_t squares)
{
	m->count += count;
	m->sum += sum;
	m->sum_squares_high += m->sum_squares_low + squares < squares;
	m->sum_squares_low += squares;
}

static void add_plane(struct shard_moments *m, const uint8_t *bytes, uint64_t count)
{
	while (count) {
		uint64_t n = count < PIECE ? count : PIECE;
		uint32_t sum = 0, squares = 0;

		for (uint64_t i = 0; i < n; i++) {
			sum += bytes[i];
			squares += (uint32_t)bytes[i] * bytes[i];
		}
		add(m, n, sum, squares);
		bytes += n;
		count -= n;
	}
}

static void add_interleaved(struct shard_moments *m, const uint8_t *bytes, uint64_t count, uint32_t channels)
{
	while (count) {
		uint64_t n = count < PIECE * LANES ? count : PIECE * LANES, i = 0;
		uint32_t sum[LANES] = {0}, squares[LANES] = {0};

		for (; i + LANES <= n; i += LANES)
			for (uint64_t k = 0; k < LANES; k++) {
				sum[k] += bytes[i + k];
				squares[k] += (uint32_t)bytes[i + k] * bytes[i + k];
			}
		for (; i < n; i++) {
			sum[i % LANES] += bytes[i];
			squares[i % LANES] += (uint32_t)bytes[i] * bytes[i];
		}
		for (uint32_t k = 0; k < LANES; k++)
			add(&m[k % channels], (n + LANES - 1 - k) / LANES, sum[k], squares[k]);
		bytes += n;
		count -= n;
	}
}

bool tally_label_good(const struct tally *t, const struct shard_schema *s, const char *const *group, int64_t *label)
{
	if (!t->class_count || t->label == SHARD_FIELDS_MAX)
		return true;
	memcpy(label, group[s->field[t->label].group] + s->field[t->label].offset, sizeof(*label));
	return *label >= 0 && (uint64_t)*label < t->class_count;
}

void tally_add(struct tally *t, const struct shard_schema *s, const char *const *group)
{
	int64_t label;

	for (uint32_t i = 0; i < s->field_count; i++) {
		const struct shard_field *f = &s->field[i];
		const uint8_t *bytes = (const uint8_t *)group[f->group] + f->offset;
		uint32_t channels = tally_channels(f);

		if (channels && f->layout == SHARD_HWC)
			add_interleaved(t->channel[i], bytes, f->bytes, channels);
		for (uint32_t c = 0; f->layout == SHARD_CHW && c < channels; c++)
			add_plane(&t->channel[i][c], bytes + c * (f->bytes / channels), f->bytes / channels);
	}
	if (t->class_count && t->label < SHARD_FIELDS_MAX && tally_label_good(t, s, group, &label))
		t->class_records[label]++;
}

int tally_write(const struct tally *t, const struct shard_schema *s, struct shard_writer *w, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (uint32_t f = 0; f < s->field_count; f++)
		for (uint32_t c = 0; !rc && c < tally_channels(&s->field[f]); c++)
			rc = shard_writer_add_moments(w, f, c, &t->channel[f][c], err);
	for (uint64_t i = 0; !rc && t->label < SHARD_FIELDS_MAX && i < t->class_count; i++)
		rc = shard_writer_add_class(w, t->label, (uint32_t)i, (uint32_t)t->class_count, t->class_records[i], err);
	return rc;
}
