/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.c - statistics of the records of a shard, whatever their fields
 */
#include "tools/shardpack/build/tally.h"

#define PLANE_PIECE 32768 /* squares of that many bytes fit 32 bits */

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

/* Plainly, so that the compiler makes vectors of it. */
static void add_plane(struct tally_sum *to, const uint8_t *bytes, size_t count)
{
	to->count += count;
	while (count) {
		size_t n = count < PLANE_PIECE ? count : PLANE_PIECE, i;
		uint32_t sum = 0, squares = 0;

		for (i = 0; i < n; i++) {
			sum += bytes[i];
			squares += (uint32_t)bytes[i] * bytes[i];
		}
		to->sum += sum;
		to->sum_squares += squares;
		bytes += n;
		count -= n;
	}
}

static void add_interleaved(struct tally_sum *to, const uint8_t *bytes, size_t pixels, uint32_t channels)
{
	struct moments m = {0};
	size_t i;
	uint32_t c;

	if (channels == IMAGE_CHANNELS) {
		moments_add(&m, bytes, pixels, IMAGE_HWC);
		for (c = 0; c < channels; c++) {
			to[c].count += m.count[c];
			to[c].sum += m.sum[c];
			to[c].sum_squares += m.sum_squares[c];
		}
		return;
	}
	for (i = 0; i < pixels; i++)
		for (c = 0; c < channels; c++, bytes++) {
			to[c].count++;
			to[c].sum += *bytes;
			to[c].sum_squares += (uint32_t)*bytes * *bytes;
		}
}

void tally_add(struct tally *t, const struct shard_schema *s, const uint8_t *const *group)
{
	uint32_t i, c;

	for (i = 0; i < s->field_count; i++) {
		const struct shard_field *f = &s->field[i];
		const uint8_t *bytes = group[f->group] + f->offset;
		uint32_t channels = tally_channels(f);

		if (!channels)
			continue;
		if (f->layout == SHARD_HWC && channels > 1)
			add_interleaved(t->channel[i], bytes, f->bytes / channels, channels);
		else
			for (c = 0; c < channels; c++)
				add_plane(&t->channel[i][c], bytes + c * (f->bytes / channels), f->bytes / channels);
	}
}

void tally_add_moments(struct tally *t, uint32_t field, const struct moments *m)
{
	uint32_t c;

	for (c = 0; c < IMAGE_CHANNELS; c++) {
		t->channel[field][c].count += m->count[c];
		t->channel[field][c].sum += m->sum[c];
		t->channel[field][c].sum_squares += m->sum_squares[c];
	}
}

void tally_merge(struct tally *t, const struct tally *other)
{
	uint32_t f, c;

	for (f = 0; f < SHARD_FIELDS_MAX; f++)
		for (c = 0; c < TALLY_CHANNELS_MAX; c++) {
			t->channel[f][c].count += other->channel[f][c].count;
			t->channel[f][c].sum += other->channel[f][c].sum;
			t->channel[f][c].sum_squares += other->channel[f][c].sum_squares;
		}
}

int tally_write(const struct tally *t, const struct shard_schema *s, const uint64_t *class_records, uint64_t class_count,
		struct shard_writer *w, struct shard_error *err)
{
	uint32_t f, c, label = tally_label(s);
	uint64_t i;
	int rc = SHARD_OK;

	for (f = 0; f < s->field_count; f++)
		for (c = 0; rc == SHARD_OK && c < tally_channels(&s->field[f]); c++) {
			const struct tally_sum *sum = &t->channel[f][c];
			struct shard_moments m = {.count = sum->count, .sum = sum->sum, .sum_squares_low = sum->sum_squares};

			rc = shard_writer_add_moments(w, f, c, &m, err);
		}
	for (i = 0; rc == SHARD_OK && label < SHARD_FIELDS_MAX && i < class_count; i++)
		rc = shard_writer_add_class(w, label, (uint32_t)i, (uint32_t)class_count, class_records[i], err);
	return rc;
}

uint64_t tally_bytes(const struct shard_schema *s, uint64_t class_count)
{
	uint64_t bytes = 0;
	uint32_t f;

	for (f = 0; f < s->field_count; f++)
		if (tally_channels(&s->field[f]))
			bytes += 16 + 24 * (uint64_t)tally_channels(&s->field[f]);
	if (class_count && tally_label(s) < SHARD_FIELDS_MAX)
		bytes += 16 + 8 * class_count;
	return bytes;
}
