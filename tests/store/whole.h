/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole.h - datasets of whole images: each has a size of its own, and boxes beside it
 *
 * The bytes of a record follow from its number.  A test may let some records lie about their size,
 * with hashes that are right.
 */
#ifndef TESTS_STORE_WHOLE_H
#define TESTS_STORE_WHOLE_H

#include "tests/store/fixture.h"

#define WHOLE_BOXES 3u
enum { WHOLE_IMAGE, WHOLE_LENGTH, WHOLE_SIZE, WHOLE_LABEL, WHOLE_BOX };

/* What a record says of itself, instead of the truth. */
struct whole_lie {
	uint64_t record;
	uint32_t height, width, pixels;
};

static const struct whole_lie *whole_lies; /* of datasets written from now on */
static size_t whole_lie_count;

/* Images of up to `most` pixels.  All fields but the images are in group 1. */
static inline struct shard_schema whole_schema(uint32_t most, uint32_t codec)
{
	struct shard_schema s = {
		.group_count = 2,
		.field_count = 5,
		.group = {{.codec = codec}},
		.field = {{.name = "image",
			   .dtype = SHARD_U8,
			   .kind = SHARD_RAGGED,
			   .layout = SHARD_HWC,
			   .semantic = SHARD_IMAGE,
			   .ndim = 2,
			   .shape = {most, 3},
			   .ragged_axes = 1,
			   .length_field = WHOLE_LENGTH},
			  {.name = "image_length",
			   .dtype = SHARD_U32,
			   .semantic = SHARD_LENGTH,
			   .group = 1,
			   .ndim = 1,
			   .shape = {1}},
			  {.name = "image_size", .dtype = SHARD_U32, .group = 1, .ndim = 1, .shape = {2}},
			  {.name = "label", .dtype = SHARD_I64, .semantic = SHARD_LABEL, .group = 1},
			  {.name = "boxes",
			   .dtype = SHARD_F32,
			   .semantic = SHARD_BOXES,
			   .group = 1,
			   .ndim = 2,
			   .shape = {WHOLE_BOXES, 4}}},
	};

	CHECK_OK(shard_schema_lay_out(&s, 0, &fixture_err));
	return s;
}

/*
 * Turn a field of images that all have this size into one of images that differ in size, and draw
 * `count` of these: the first has this size, and others are between `least` and it.
 */
static inline void whole_field(struct prng *p, struct shard_field *field, struct shard_size least,
			       struct shard_size *size, uint32_t count)
{
	uint32_t height = field->shape[0], width = field->shape[1];
	uint32_t square = (height > width ? height : width) / 4 + 1, pixels = height * width;

	CHECK(field->ndim == 3 && field->layout == SHARD_HWC && least.height <= height && least.width <= width);
	size[0] = (struct shard_size){height, width};
	for (uint32_t i = 1; i < count; i++)
		size[i] = (struct shard_size){least.height + (uint32_t)prng_below(p, height - least.height + 1),
					      least.width + (uint32_t)prng_below(p, width - least.width + 1)};
	field->kind = SHARD_RAGGED;
	field->ragged_axes = 1;
	field->ndim = 2;
	field->shape[1] = field->shape[2];
	field->shape[0] = (pixels > square * square ? pixels : square * square);
	field->shape[0] += prng_below(p, 3) ? 0 : (uint32_t)prng_below(p, 30);
	field->bytes = (uint64_t)field->shape[0] * field->shape[1];
}

/*
 * Of record `idx`: any ratio that a packer gives.  The first two are the longest, so that sums of
 * sides are at their limits.
 */
static inline struct shard_size whole_size(const struct shard_schema *s, uint64_t idx)
{
	struct prng p = {idx * 3 + 2};
	uint32_t most = s->field[WHOLE_IMAGE].shape[0], longest = 1, height, width;

	while ((longest + 1) * (longest + 1) <= most)
		longest++;
	longest *= 4;
	height = idx == 0 ? longest : 1 + (uint32_t)prng_below(&p, longest < most ? longest : most);
	width = most / height < longest ? most / height : longest;
	if (idx == 1)
		return (struct shard_size){most / longest, longest};
	return (struct shard_size){height, prng_below(&p, 3) ? width : 1 + (uint32_t)prng_below(&p, width)};
}

/* The record_bytes of group 0 or 1 of record `idx`. */
static inline void whole_record(const struct shard_schema *s, uint32_t group, uint64_t idx, uint8_t *out)
{
	struct shard_size size = whole_size(s, idx);
	uint32_t said[3] = {size.height * size.width, size.height, size.width};
	int64_t label = (int64_t)(idx % PHOTO_CLASSES);
	struct prng p = {idx * 2 + group};
	float box[4 * WHOLE_BOXES];

	memset(out, 0, (size_t)s->group[group].record_bytes);
	for (size_t i = 0; i < whole_lie_count; i++)
		if (whole_lies[i].record == idx)
			memcpy(said,
			       (const uint32_t[]){whole_lies[i].pixels, whole_lies[i].height, whole_lies[i].width},
			       sizeof(said));
	if (!group) {
		prng_fill(&p, out, (size_t)size.height * size.width * 3);
		return;
	}
	for (uint32_t i = 0; i < 4 * WHOLE_BOXES; i++)
		box[i] = (float)prng_below(&p, (i % 2 ? size.height : size.width) * 4) / 4;
	memcpy(out + s->field[WHOLE_LENGTH].offset, said, 4);
	memcpy(out + s->field[WHOLE_SIZE].offset, said + 1, 8);
	memcpy(out + s->field[WHOLE_LABEL].offset, &label, 8);
	memcpy(out + s->field[WHOLE_BOX].offset, box, sizeof(box));
}

/* A dataset of one shard, "0.shard". */
static inline void write_whole(const char *dir, const struct shard_schema *s, uint64_t count)
{
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = count, .skip_read_back = 1};
	struct shard_seal_options so = {.size = sizeof(so), .replace = 1};
	uint8_t *record[2] = {malloc(s->group[0].record_bytes), malloc(s->group[1].record_bytes)};
	struct shard_written written;
	struct shard_writer *w;
	struct shard_seal *seal;
	char path[600];

	snprintf(path, sizeof(path), "%s/0.shard", dir);
	CHECK_OK(shard_writer_open(&w, path, s, &o, &fixture_err));
	for (uint64_t i = 0; i < count; i++) {
		const void *group[2] = {record[0], record[1]};

		whole_record(s, 0, i, record[0]);
		whole_record(s, 1, i, record[1]);
		CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
	}
	CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
	shard_writer_close(w);
	CHECK_OK(shard_seal_open(&seal, dir, &so, &fixture_err));
	CHECK_OK(shard_seal_add(seal, "0.shard", NULL, written.sha256, &fixture_err));
	CHECK_OK(shard_seal_finish(seal, &fixture_err));
	shard_seal_close(seal);
	free(record[0]);
	free(record[1]);
}

#endif
