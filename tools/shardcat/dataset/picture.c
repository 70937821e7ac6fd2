/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture.c - images of floating point or of 16 bits, made visible
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardcat/dataset/number.h"

static bool is_float(uint32_t dtype)
{
	return dtype == SHARD_F16 || dtype == SHARD_BF16 || dtype == SHARD_F32;
}

/*
 * The three numbers behind `key`, which begins with what separates them from what is before;
 * provenance is a text of the packer's.  They are "\nmean 0.5 0.5 0.5" of the field image,
 * ",mean=0.5/0.5/0.5" in the line of another.
 */
static bool find_numbers(const char *text, const char *key, char separator, double out[3])
{
	const char *at = strstr(text, key);
	char *end;

	if (!at)
		return false;
	at += strlen(key);
	for (int c = 0; c < 3; c++, at = end + (*end == separator)) {
		out[c] = strtod(at, &end);
		if (end == at || !isfinite(out[c]) || (c < 2 && *end != separator))
			return false;
	}
	return strchr("\n,", *end) != NULL; /* or the NUL */
}

/* Those of a field; the text is cut behind its line. */
static bool find_scale(char *text, const struct shard_field *field, struct picture_scale *out)
{
	char key[SHARD_NAME_BYTES + 16], *line;

	if (!strcmp(field->name, "image"))
		return find_numbers(text, "\nmean ", ' ', out->mean) && find_numbers(text, "\nstd ", ' ', out->std);
	snprintf(key, sizeof(key), "\nfield %s ", field->name);
	line = strstr(text, key);
	if (!line)
		return false;
	line[1 + strcspn(line + 1, "\n")] = '\0';
	return find_numbers(line, ",mean=", '/', out->mean) && find_numbers(line, ",std=", '/', out->std);
}

int picture_scale(struct target *t, const struct shard_field *field, struct picture_scale *out)
{
	static const char made_by[] = "made by shardpack\nsource images\n";
	struct shard_reader *reader = NULL;
	struct shard_view text;
	struct shard_error err;
	char *copy;
	int rc;

	*out = (struct picture_scale){.known = false};
	if (!is_float(field->dtype) || field->semantic != SHARD_IMAGE)
		return EXIT_DONE;
	rc = target_first_reader(t, &reader);
	if (rc || !reader)
		return rc;
	rc = shard_reader_provenance(reader, &text, &err);
	if (rc)
		return fail_of_library(&err);
	if (text.bytes < sizeof(made_by) - 1 || memcmp(text.data, made_by, sizeof(made_by) - 1))
		return EXIT_DONE;
	copy = strndup(text.data, text.bytes);
	if (!copy)
		return fail(EXIT_IO, "out of memory for the provenance");
	out->known = find_scale(copy, field, out);
	free(copy);
	return EXIT_DONE;
}

static uint8_t to_u8(double value)
{
	return value > 0 ? value < 1 ? (uint8_t)lrint(value * 255) : 255 : 0; /* 0 also if it is no number */
}

/* Infinite numbers are beyond the range, whatever it is. */
static void find_range(const struct tensor *tensor, double *least, double *greatest)
{
	*least = INFINITY;
	*greatest = -INFINITY;
	for (uint64_t i = 0; i < tensor->element_count; i++) {
		double value = number_double(tensor->field->dtype, tensor->data + i * tensor->element_bytes);

		if (!isfinite(value))
			continue;
		*least = value < *least ? value : *least;
		*greatest = value > *greatest ? value : *greatest;
	}
}

/* In place: sample i is written where element i / 2 or before was read. */
static void make_u8(const struct picture_scale *scale, struct tensor *tensor)
{
	bool planes = tensor->field->layout == SHARD_CHW;
	uint64_t plane = planes ? tensor->shape[1] * tensor->shape[2] : 1;
	double least, greatest;

	find_range(tensor, &least, &greatest);
	for (uint64_t i = 0; i < tensor->element_count; i++) {
		double value = number_double(tensor->field->dtype, tensor->data + i * tensor->element_bytes);
		uint64_t c = planes ? i / plane : i % 3;

		value = scale->known ? value * scale->std[c] + scale->mean[c] : (value - least) / (greatest - least);
		tensor->data[i] = to_u8(value);
	}
	tensor->element_bytes = 1;
}

/* As they lie, or the upper bytes, in place. */
static void take_u16(bool wide, struct tensor *tensor, struct png_image *out)
{
	if (wide) {
		out->wide = true;
		out->row_bytes *= 2;
		out->pixel_bytes *= 2;
		out->channel_bytes *= 2;
		return;
	}
	for (uint64_t i = 0; i < tensor->element_count; i++)
		tensor->data[i] = tensor->data[2 * i + 1];
	tensor->element_bytes = 1;
}

int picture_image(const struct picture_scale *scale, bool wide, struct tensor *tensor, struct png_image *out)
{
	struct picture_scale by_itself = {.known = false};
	int rc = tensor_image(tensor, out);

	if (rc || tensor->field->dtype == SHARD_U16) {
		if (!rc && !wide && tensor->field->semantic != SHARD_IMAGE)
			return fail(EXIT_USAGE,
				    "field %s is u16 and no image, so its 16 bits cannot be shown in 8; `shardcat get "
				    "--png` and `--npy` write all of them",
				    tensor->field->name);
		if (!rc)
			take_u16(wide, tensor, out);
		return rc;
	}
	if (is_float(tensor->field->dtype))
		make_u8(out->channel_count == 3 ? scale : &by_itself, tensor);
	return rc;
}
