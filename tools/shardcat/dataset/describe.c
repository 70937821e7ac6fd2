/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.c - schema and statistics, as text and as JSON
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "libshard/base/words.h"
#include "shard_inspect.h"
#include "tools/common/human.h"
#include "tools/common/message.h"

#define TWO_TO_64 18446744073709551616.0

const char *hex_text(char out[HEX_CHARS], const uint8_t *data, size_t bytes)
{
	hex_from_bytes(out, data, bytes);
	return out;
}

const char *root_text(char out[HEX_CHARS], const uint8_t root[16])
{
	uint8_t swapped[16];

	for (unsigned i = 0; i < 16; i++) /* two little-endian halves, the low one first */
		swapped[i] = root[15 - i];
	return hex_text(out, swapped, sizeof(swapped));
}

const char *describe_order(uint32_t order)
{
	static const char *const names[] = {"unknown", "source", "shuffle"};

	return order < 3 ? names[order] : names[0];
}

/* Mean and standard deviation (of the whole population) in units of the values, 0 to 255. */
static double moments_mean(const struct shard_moments *m)
{
	return m->count ? (double)m->sum / (double)m->count : 0;
}

static double moments_std(const struct shard_moments *m)
{
	double mean = moments_mean(m), squares = (double)m->sum_squares_high * TWO_TO_64 + (double)m->sum_squares_low;
	double variance = m->count ? squares / (double)m->count - mean * mean : 0;

	return variance > 0 ? sqrt(variance) : 0; /* rounding can take a constant image below 0 */
}

static void field_json(struct json_out *j, const struct shard_schema *schema, const struct shard_field *f)
{
	json_out_object_line(j, NULL);
	json_out_string(j, "name", f->name);
	json_out_string(j, "dtype", shard_name(SHARD_NAME_DTYPE, f->dtype));
	json_out_array_line(j, "shape");
	for (uint32_t i = 0; i < f->ndim; i++)
		json_out_u64(j, NULL, f->shape[i]);
	json_out_end(j);
	json_out_string(j, "kind", shard_name(SHARD_NAME_KIND, f->kind));
	json_out_string(j, "layout", shard_name(SHARD_NAME_LAYOUT, f->layout));
	json_out_string(j, "semantic", shard_name(SHARD_NAME_SEMANTIC, f->semantic));
	json_out_u64(j, "group", f->group);
	json_out_u64(j, "offset", f->offset);
	json_out_u64(j, "bytes", f->bytes);
	if (f->kind != SHARD_TENSOR) {
		json_out_array_line(j, "ragged_axes");
		for (uint32_t i = 0; i < f->ndim; i++)
			if (f->ragged_axes >> i & 1)
				json_out_u64(j, NULL, i);
		json_out_end(j);
		json_out_string(j, "length_field", schema->field[f->length_field].name);
	}
	json_out_end(j);
}

void describe_schema_json(struct json_out *j, const struct shard_schema *schema)
{
	json_out_array(j, "groups");
	for (uint32_t i = 0; i < schema->group_count; i++) {
		const struct shard_group *g = &schema->group[i];

		json_out_object_line(j, NULL);
		json_out_string(j, "codec", shard_name(SHARD_NAME_CODEC, g->codec));
		json_out_u64(j, "stride", g->stride);
		json_out_u64(j, "record_bytes", g->record_bytes);
		json_out_u64(j, "align_log2", g->align_log2);
		json_out_u64(j, "unit_records", g->unit_records);
		json_out_u64(j, "chunk_records", g->chunk_records);
		json_out_end(j);
	}
	json_out_end(j);
	json_out_array(j, "fields");
	for (uint32_t i = 0; i < schema->field_count; i++)
		field_json(j, schema, &schema->field[i]);
	json_out_end(j);
}

int describe_moments_json(struct json_out *j, struct input *in)
{
	struct shard_moments m;
	struct shard_error err;
	int rc = SHARD_OK;

	json_out_array(j, "statistics");
	for (uint32_t f = 0; f < in->schema->field_count && rc >= 0; f++) {
		for (uint32_t c = 0; (rc = input_moments(in, f, c, &m, &err)) == SHARD_OK; c++) {
			json_out_object_line(j, NULL);
			json_out_string(j, "field", in->schema->field[f].name);
			json_out_u64(j, "channel", c);
			json_out_u64(j, "count", m.count);
			json_out_u64(j, "sum", m.sum);
			if (!m.sum_squares_high)
				json_out_u64(j, "sum_squares", m.sum_squares_low);
			json_out_double(j, "mean", moments_mean(&m));
			json_out_double(j, "std", moments_std(&m));
			json_out_end(j);
		}
	}
	json_out_end(j);
	return rc < 0 ? fail_of_library(&err) : EXIT_DONE;
}

void describe_schema(FILE *out, const struct shard_schema *schema)
{
	char count[HUMAN_CHARS], shape[SHAPE_CHARS];
	int width = 0;

	for (uint32_t i = 0; i < schema->field_count; i++)
		if ((int)strlen(schema->field[i].name) > width)
			width = (int)strlen(schema->field[i].name);
	fputs("fields\n", out);
	for (uint32_t i = 0; i < schema->field_count; i++) {
		const struct shard_field *f = &schema->field[i];

		fprintf(out, "  %-*s  %-4s %s%s", width, f->name, shard_name(SHARD_NAME_DTYPE, f->dtype),
			shape_text(shape, f->shape, f->ndim), f->ndim ? " " : "");
		if (f->layout)
			fprintf(out, "%s ", shard_name(SHARD_NAME_LAYOUT, f->layout));
		if (f->kind != SHARD_TENSOR)
			fprintf(out, "%s ", shard_name(SHARD_NAME_KIND, f->kind));
		if (f->semantic)
			fprintf(out, "(%s) ", shard_name(SHARD_NAME_SEMANTIC, f->semantic));
		fprintf(out, "in group %" PRIu32 "\n", f->group);
	}
	fputs("groups\n", out);
	for (uint32_t i = 0; i < schema->group_count; i++) {
		const struct shard_group *g = &schema->group[i];

		fprintf(out, "  %" PRIu32 "  %s, stride %s B", i, shard_name(SHARD_NAME_CODEC, g->codec),
			human_count(count, g->stride));
		if (g->record_bytes != g->stride)
			fprintf(out, " of which %s used", human_count(count, g->record_bytes));
		fprintf(out, ", %" PRIu32 " record%s per %s\n", g->unit_records, g->unit_records == 1 ? "" : "s",
			g->chunk_records ? "chunk" : "hash");
	}
}

/* One line: mean or std of all channels of a field. */
static int print_channels(FILE *out, struct input *in, uint32_t field, const char *what,
			  double (*of)(const struct shard_moments *), struct shard_error *err)
{
	struct shard_moments m;
	int rc;

	fprintf(out, "  %s %s", in->schema->field[field].name, what);
	for (uint32_t c = 0; (rc = input_moments(in, field, c, &m, err)) == SHARD_OK; c++)
		fprintf(out, " %.6f", of(&m) / 255);
	fputc('\n', out);
	return rc;
}

int describe_moments(FILE *out, struct input *in)
{
	struct shard_moments m;
	struct shard_error err;
	bool first = true;
	int rc = SHARD_OK;

	for (uint32_t f = 0; f < in->schema->field_count && rc >= 0; f++) {
		rc = input_moments(in, f, 0, &m, &err);
		if (rc)
			continue;
		if (first)
			fputs("statistics, of values scaled to 0..1\n", out);
		first = false;
		rc = print_channels(out, in, f, "mean", moments_mean, &err);
		if (rc >= 0)
			rc = print_channels(out, in, f, "std ", moments_std, &err);
	}
	return rc < 0 ? fail_of_library(&err) : EXIT_DONE;
}
