/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gallery.c - small pictures of some records, for a page
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/png_out.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/report/report.h"

#define PICTURES_A_CLASS 4
#define PICTURE_BYTES	 (256 << 10) /* of all of them, as they stand in the page */
#define LABELS_READ	 16384	     /* records in which the first of each class are looked for */

static void put_base64(FILE *out, const uint8_t *in, size_t bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes; i += 3) {
		size_t left = bytes - i;
		uint32_t bits =
			(uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);

		fputc(digits[bits >> 18], out);
		fputc(digits[bits >> 12 & 63], out);
		fputc(left > 1 ? digits[bits >> 6 & 63] : '=', out);
		fputc(left > 2 ? digits[bits & 63] : '=', out);
	}
}

/* The mean of each square of `step` pixels. */
static void shrink(const struct png_image *in, uint32_t step, uint8_t *to, const struct png_image *out)
{
	for (uint32_t y = 0; y < out->height; y++)
		for (uint32_t x = 0; x < out->width; x++)
			for (uint32_t c = 0; c < out->channel_count; c++) {
				uint64_t sum = 0, count = 0;

				for (uint32_t v = y * step; v < (y + 1) * step && v < in->height; v++)
					for (uint32_t u = x * step; u < (x + 1) * step && u < in->width; u++, count++)
						sum += in->pixels[v * in->row_bytes + u * in->pixel_bytes +
								  c * in->channel_bytes];
				*to++ = (uint8_t)((sum + count / 2) / count);
			}
}

static bool is_whole(const struct shard_schema *s, const struct shard_field *f)
{
	return shard_image_size_field(s, (uint32_t)(f - s->field)) < s->field_count;
}

/* How many channels a picture of this field has; 0 if there is none. */
static uint32_t channels_of(const struct shard_schema *s, const struct shard_field *f)
{
	return is_whole(s, f) ? f->shape[1] : shard_field_channels(f);
}

/* The record is there. */
static int picture_of(const struct gallery *g, uint64_t record, struct png_image *out)
{
	const struct shard_schema *s = shard_dataset_schema(g->ds);
	const struct shard_field *f = g->image;
	uint32_t planes = f->layout == SHARD_CHW, channels = channels_of(s, f);
	struct shard_size size = {f->shape[planes], f->shape[planes + 1]};
	struct png_image in = {.pixels = (uint8_t *)g->group[f->group] + f->offset, .channel_count = channels};
	struct shard_error err;
	int rc = SHARD_OK;

	if (is_whole(s, f))
		rc = shard_image_size(s, (uint32_t)(f - s->field), (const void *const *)g->group, record, &size, &err);
	if (rc)
		return fail(exit_code_of_status(rc), "%s", err.message);
	in.height = size.height;
	in.width = size.width;
	in.pixel_bytes = planes ? 1 : channels;
	in.row_bytes = in.width * in.pixel_bytes;
	in.channel_bytes = planes ? in.row_bytes * in.height : 1;
	*out = in;
	return EXIT_DONE;
}

static int put_picture(struct gallery *g, FILE *out, uint64_t record)
{
	struct png_image in, thumb;
	struct shard_error err;
	char error[200];
	uint32_t side, step;
	struct memory_file png;
	int rc = shard_dataset_read(g->ds, &record, 1, g->group, &err);

	if (rc)
		return fail(exit_code_of_status(rc), "%s", err.message);
	rc = picture_of(g, record, &in);
	if (rc)
		return rc;
	side = in.width > in.height ? in.width : in.height;
	step = (side + GALLERY_SIDE - 1) / GALLERY_SIDE;
	thumb = in;
	thumb.pixels = g->small;
	thumb.width = (in.width + step - 1) / step;
	thumb.height = (in.height + step - 1) / step;
	thumb.pixel_bytes = in.channel_count;
	thumb.row_bytes = (size_t)thumb.width * in.channel_count;
	thumb.channel_bytes = 1;
	shrink(&in, step, g->small, &thumb);
	rc = memory_file_open(&png) ? png_write(png.stream, &thumb, error, sizeof(error)) : -1;
	if (!memory_file_close(&png))
		rc = -1;
	if (!rc && png.bytes * 4 / 3 <= g->left_bytes) {
		g->left_bytes -= png.bytes * 4 / 3;
		fprintf(out,
			"<img alt=\"record %" PRIu64 "\" title=\"record %" PRIu64 "\" width=\"%" PRIu32
			"\" height=\"%" PRIu32 "\" src=\"data:image/png;base64,",
			record, record, thumb.width, thumb.height);
		put_base64(out, (const uint8_t *)png.data, png.bytes);
		fputs("\">", out);
	}
	free(png.data);
	return rc ? fail(EXIT_IO, "a picture for the report could not be made") : EXIT_DONE;
}

/* The first records of the classes that are shown; their labels are read, not their images. */
static int find_records(struct gallery *g)
{
	void *dst[SHARD_GROUPS_MAX] = {NULL};
	uint8_t *group = malloc((size_t)g->label->stride);
	struct shard_error err;
	int rc = SHARD_OK;

	if (!group)
		return fail(EXIT_IO, "out of memory for a record of %" PRIu64 " bytes", g->label->stride);
	dst[g->label->group] = group;
	for (uint64_t i = 0; i < g->record_count && i < LABELS_READ && !rc; i++) {
		int64_t label;

		rc = shard_dataset_read(g->ds, &i, 1, dst, &err);
		memcpy(&label, group + g->label->offset, sizeof(label));
		for (uint64_t k = 0; k < g->a_class && label >= 0 && (uint64_t)label < GALLERY_PICTURES / g->a_class;
		     k++)
			if (g->record[(uint64_t)label * g->a_class + k] == UINT64_MAX) {
				g->record[(uint64_t)label * g->a_class + k] = i;
				break;
			}
	}
	free(group);
	return rc ? fail(exit_code_of_status(rc), "%s", err.message) : EXIT_DONE;
}

/* Of records that have no class: as many as there is room for, at equal distances. */
static void sample_records(struct gallery *g)
{
	g->sample_count = g->record_count < GALLERY_PICTURES ? g->record_count : GALLERY_PICTURES;
	for (uint64_t i = 0; i < g->sample_count; i++)
		g->record[i] = i * (g->record_count / g->sample_count) +
			       i * (g->record_count % g->sample_count) / g->sample_count;
}

int gallery_open(struct gallery *g, struct shard_dataset *ds, uint64_t class_count)
{
	const struct shard_schema *s = shard_dataset_schema(ds);
	struct shard_dataset_info info;

	shard_dataset_info(ds, &info);
	*g = (struct gallery){.ds = ds, .left_bytes = PICTURE_BYTES, .record_count = info.record_count};
	for (uint32_t i = 0; i < s->field_count && !g->image; i++)
		if (channels_of(s, &s->field[i]) == 1 || channels_of(s, &s->field[i]) == 3)
			g->image = &s->field[i];
	g->label = shard_schema_label(s);
	if (!g->image)
		return EXIT_DONE;
	memset(g->record, 0xff, sizeof(g->record));
	for (uint32_t i = 0; i < s->group_count; i++) {
		if (i != g->image->group && !is_whole(s, g->image))
			continue;
		g->group[i] = malloc((size_t)s->group[i].stride);
		if (!g->group[i])
			return fail(EXIT_IO, "out of memory for a record of %" PRIu64 " bytes", s->group[i].stride);
	}
	if (!g->label || !class_count) {
		sample_records(g);
		return EXIT_DONE;
	}
	g->a_class = GALLERY_PICTURES / class_count < 1 ? 1 : GALLERY_PICTURES / class_count;
	g->a_class = g->a_class < PICTURES_A_CLASS ? g->a_class : PICTURES_A_CLASS;
	return find_records(g);
}

void gallery_close(struct gallery *g)
{
	for (uint32_t i = 0; i < SHARD_GROUPS_MAX; i++)
		free(g->group[i]);
}

int gallery_put_class(struct gallery *g, FILE *out, uint64_t class_idx)
{
	int code = EXIT_DONE;

	for (uint64_t k = 0; k < g->a_class && class_idx < GALLERY_PICTURES / g->a_class && code == EXIT_DONE; k++)
		if (g->record[class_idx * g->a_class + k] != UINT64_MAX)
			code = put_picture(g, out, g->record[class_idx * g->a_class + k]);
	return code;
}

int gallery_put_sample(struct gallery *g, FILE *out)
{
	int code = EXIT_DONE;

	for (uint64_t i = 0; i < g->sample_count && code == EXIT_DONE; i++)
		code = put_picture(g, out, g->record[i]);
	return code;
}
