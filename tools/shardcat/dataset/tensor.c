/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c - the value of one field of one record: as numbers, as text, as .npy and as a picture
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"
#include "shard_inspect.h"
#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"

#define ELEMENTS_SHOWN	   16
#define STRING_SHOWN_BYTES 2000

/* ---- one element of any dtype as a number ---- */

bool dtype_is_integer(uint32_t dtype)
{
	return dtype >= SHARD_U8 && dtype <= SHARD_I64;
}

bool dtype_is_float(uint32_t dtype)
{
	return dtype >= SHARD_F16 && dtype <= SHARD_F64;
}

static double f16_value(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double value;

	if (exponent == 31)
		value = fraction ? (double)NAN : (double)INFINITY;
	else if (exponent)
		value = ldexp(fraction + 1024, exponent - 25);
	else
		value = ldexp(fraction, -24); /* subnormal */
	return bits >> 15 ? -value : value;
}

/* Little-endian bytes, as the format has them; the sign is extended for signed dtypes. */
static uint64_t load_bits(uint32_t dtype, const void *data)
{
	unsigned bytes = (unsigned)shard_dtype_bytes(dtype), shift = 64 - 8 * bytes;
	uint64_t bits = 0;
	int64_t value;

	memcpy(&bits, data, bytes);
	if (dtype != SHARD_I8 && dtype != SHARD_I16 && dtype != SHARD_I32)
		return bits;
	bits <<= shift;
	memcpy(&value, &bits, sizeof(value));
	return (uint64_t)(value >> shift);
}

int64_t number_integer(uint32_t dtype, const void *data)
{
	return (int64_t)load_bits(dtype, data);
}

double number_double(uint32_t dtype, const void *data)
{
	uint64_t bits = load_bits(dtype, data);
	uint32_t low = (uint32_t)bits;
	double value;
	float narrow;

	switch (dtype) {
	case SHARD_I8:
	case SHARD_I16:
	case SHARD_I32:
	case SHARD_I64:
		return (double)(int64_t)bits;
	case SHARD_F16:
		return f16_value((uint16_t)bits);
	case SHARD_BF16:
		low <<= 16;
		/* fallthrough */
	case SHARD_F32:
		memcpy(&narrow, &low, sizeof(narrow));
		return narrow;
	case SHARD_F64:
		memcpy(&value, &bits, sizeof(value));
		return value;
	case SHARD_BOOL:
		return bits != 0;
	default:
		return (double)bits;
	}
}

const char *number_text(char out[NUMBER_CHARS], uint32_t dtype, const void *data)
{
	uint64_t bits = load_bits(dtype, data);

	switch (dtype) {
	case SHARD_I8:
	case SHARD_I16:
	case SHARD_I32:
	case SHARD_I64:
		snprintf(out, NUMBER_CHARS, "%" PRId64, (int64_t)bits);
		break;
	case SHARD_F16:
	case SHARD_BF16:
		snprintf(out, NUMBER_CHARS, "%.5g", number_double(dtype, data));
		break;
	case SHARD_F32:
		snprintf(out, NUMBER_CHARS, "%.9g", number_double(dtype, data));
		break;
	case SHARD_F64:
		snprintf(out, NUMBER_CHARS, "%.17g", number_double(dtype, data));
		break;
	case SHARD_BOOL:
		snprintf(out, NUMBER_CHARS, "%s", bits ? "true" : "false");
		break;
	default:
		snprintf(out, NUMBER_CHARS, "%" PRIu64, bits);
	}
	return out;
}

/* ---- a field of a record ---- */

const char *shape_text(char out[SHAPE_CHARS], const uint32_t *shape, uint32_t ndim)
{
	size_t used = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < ndim && used < SHAPE_CHARS; i++)
		used += (size_t)snprintf(out + used, SHAPE_CHARS - used, "%s%" PRIu32 "%s", i ? "," : "[", shape[i],
					 i + 1 < ndim ? "" : "]");
	return out;
}

/* Replace the sizes of the axes that vary by the lengths that the record states. */
static int take_lengths(const struct input *in, const struct record *record, struct tensor *tensor)
{
	const struct shard_field *f = tensor->field, *lengths = &in->schema->field[f->length_field];
	const uint8_t *at = (const uint8_t *)record->group[lengths->group] + lengths->offset;

	for (uint32_t axis = 0; axis < f->ndim; axis++) {
		uint32_t length;

		if (!(f->ragged_axes >> axis & 1))
			continue;
		memcpy(&length, at, sizeof(length));
		at += sizeof(length);
		if (length > f->shape[axis])
			return fail(EXIT_BAD,
				    "%s: I57: field %s says length %" PRIu32 " on axis %u; must be at most %" PRIu32,
				    in->path, f->name, length, axis, f->shape[axis]);
		tensor->shape[axis] = length;
	}
	return EXIT_DONE;
}

/*
 * Copy the box `tensor->shape` out of the field's full shape; returns where the next element goes.
 */
static uint8_t *gather(const struct tensor *tensor, uint32_t axis, const uint8_t *from, uint64_t from_bytes,
		       uint8_t *to)
{
	if (axis == tensor->ndim) {
		memcpy(to, from, tensor->element_bytes);
		return to + tensor->element_bytes;
	}
	from_bytes /= tensor->field->shape[axis]; /* of one step along this axis */
	if (axis + 1 == tensor->ndim) {
		memcpy(to, from, tensor->shape[axis] * tensor->element_bytes);
		return to + tensor->shape[axis] * tensor->element_bytes;
	}
	for (uint64_t i = 0; i < tensor->shape[axis]; i++)
		to = gather(tensor, axis + 1, from + i * from_bytes, from_bytes, to);
	return to;
}

/* The pixels of a whole image, which stand next to each other, get its height and width. */
static int take_size(const struct input *in, const struct record *record, struct tensor *tensor)
{
	uint32_t field = (uint32_t)(tensor->field - in->schema->field);
	struct shard_size size;
	struct shard_error err;
	int rc;

	if (shard_image_size_field(in->schema, field) >= in->schema->field_count)
		return EXIT_DONE;
	rc = shard_image_size(in->schema, field, (const void *const *)record->group, record->idx, &size, &err);
	if (rc)
		return fail(exit_code_of_status(rc), "%s: %s", in->path, err.message);
	tensor->ndim = 3;
	tensor->shape[2] = tensor->shape[1];
	tensor->shape[0] = size.height;
	tensor->shape[1] = size.width;
	return EXIT_DONE;
}

int tensor_take(const struct input *in, const struct record *record, const struct shard_field *field,
		struct tensor *out)
{
	int rc = EXIT_DONE;

	*out = (struct tensor){
		.field = field,
		.ndim = field->ndim,
		.element_count = 1,
		.element_bytes = shard_dtype_bytes(field->dtype),
	};
	for (uint32_t i = 0; i < field->ndim; i++)
		out->shape[i] = field->shape[i];
	if (field->kind != SHARD_TENSOR)
		rc = take_lengths(in, record, out);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < out->ndim; i++)
		out->element_count *= out->shape[i];
	out->data = xmalloc(field->bytes, 1); /* at most the stride, which was read already */
	if (out->element_count)
		gather(out, 0, (const uint8_t *)record->group[field->group] + field->offset, field->bytes, out->data);
	return take_size(in, record, out);
}

void tensor_free(struct tensor *tensor)
{
	free(tensor->data);
	*tensor = (struct tensor){0};
}

/* ---- as text ---- */

static void print_range(const struct tensor *tensor, FILE *out)
{
	double least = 0, greatest = 0, sum = 0;

	for (uint64_t i = 0; i < tensor->element_count; i++) {
		double value = number_double(tensor->field->dtype, tensor->data + i * tensor->element_bytes);

		least = i && least <= value ? least : value;
		greatest = i && greatest >= value ? greatest : value;
		sum += value;
	}
	fprintf(out, "min %.6g  max %.6g  mean %.6g", least, greatest, sum / (double)tensor->element_count);
}

/* One of several texts: a quote in it is marked, so that it does not end the text. */
static void print_text(const char *text, size_t bytes, FILE *out)
{
	const char *end = text + bytes, *quote;

	fputc('"', out);
	for (; (quote = memchr(text, '"', (size_t)(end - text))) != NULL; text = quote + 1) {
		escape_write(out, text, (size_t)(quote - text), ESCAPE_EXACT);
		fputs("\\\"", out);
	}
	escape_write(out, text, (size_t)(end - text), ESCAPE_EXACT);
	fputc('"', out);
}

void tensor_print(const struct tensor *tensor, FILE *out)
{
	uint64_t count = tensor->element_count, shown;
	char number[NUMBER_CHARS];

	if (tensor->field->kind == SHARD_STRING) {
		shown = count < STRING_SHOWN_BYTES ? count : STRING_SHOWN_BYTES;
		fputc('"', out);
		escape_write(out, (const char *)tensor->data, shown, ESCAPE_EXACT);
		fputs(shown < count ? "\"..." : "\"", out);
	} else if (shard_field_is_texts(tensor->field)) {
		shown = tensor->shape[0] < ELEMENTS_SHOWN ? tensor->shape[0] : ELEMENTS_SHOWN;
		fputc('[', out);
		for (uint64_t i = 0; i < shown; i++) {
			const char *row = (const char *)tensor->data + i * tensor->shape[1];

			fputs(i ? ", " : "", out);
			print_text(row, strnlen(row, tensor->shape[1]), out);
		}
		fputs(shown < tensor->shape[0] ? ", ...]" : "]", out);
	} else if (count <= ELEMENTS_SHOWN) {
		fputs(tensor->ndim ? "[" : "", out);
		for (uint64_t i = 0; i < count; i++)
			fprintf(out, "%s%s", i ? ", " : "",
				number_text(number, tensor->field->dtype, tensor->data + i * tensor->element_bytes));
		fputs(tensor->ndim ? "]" : "", out);
	} else {
		print_range(tensor, out);
	}
}

/* ---- as .npy and as an image ---- */

size_t npy_header(const struct tensor *tensor, char out[NPY_HEADER_BYTES])
{
	/* NumPy does not know bf16, so it gets its bits. */
	static const char *const dtypes[] = {
		[SHARD_U8] = "|u1",   [SHARD_I8] = "|i1",   [SHARD_U16] = "<u2", [SHARD_I16] = "<i2",
		[SHARD_U32] = "<u4",  [SHARD_I32] = "<i4",  [SHARD_U64] = "<u8", [SHARD_I64] = "<i8",
		[SHARD_F16] = "<f2",  [SHARD_BF16] = "<u2", [SHARD_F32] = "<f4", [SHARD_F64] = "<f8",
		[SHARD_BOOL] = "|b1",
	};
	char shape[SHAPE_CHARS];
	size_t used, padded;

	shape_text(shape, tensor->shape, tensor->ndim);
	if (tensor->ndim)
		shape[strlen(shape) - 1] = 0; /* the closing bracket; npy writes a tuple, (3,) if it has one item */
	used = 10 + (size_t)snprintf(out + 10, NPY_HEADER_BYTES - 10,
				     "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }",
				     dtypes[tensor->field->dtype], shape[0] ? shape + 1 : "",
				     tensor->ndim == 1 ? "," : "");
	padded = (used + 1 + 63) / 64 * 64;
	memset(out + used, ' ', padded - used - 1);
	out[padded - 1] = '\n';
	memcpy(out, "\x93NUMPY\x01\x00", 8);
	out[8] = (char)((padded - 10) & 0xff);
	out[9] = (char)((padded - 10) >> 8);
	return padded;
}

/* Samples of 32 bits or fewer; f64 is not a dtype of images. */
static bool has_float_samples(uint32_t dtype)
{
	return dtype_is_float(dtype) && dtype != SHARD_F64;
}

/* As picture_image(), but as if each sample had one byte. */
static int bytes_image(const struct tensor *tensor, struct png_image *out)
{
	const struct shard_field *f = tensor->field;
	const char *layout = shard_name(SHARD_NAME_LAYOUT, f->layout);
	uint64_t height, width, channels = 1;
	char shape[SHAPE_CHARS];
	bool has_pixels = f->dtype == SHARD_U8 || f->dtype == SHARD_U16 || has_float_samples(f->dtype);
	bool is_chw = f->layout == SHARD_CHW && tensor->ndim == 3, is_hwc = f->layout == SHARD_HWC && tensor->ndim == 3;

	shape_text(shape, tensor->shape, tensor->ndim);
	if (!has_pixels || (!is_chw && !is_hwc && tensor->ndim != 2))
		return fail(EXIT_USAGE,
			    "field %s is %s%s%s%s, not an image of u8, u16 or floats in layout hwc or chw; `shardcat "
			    "get --npy` takes any field",
			    f->name, shard_name(SHARD_NAME_DTYPE, f->dtype), shape, f->layout ? " " : "",
			    f->layout ? layout : "");
	height = tensor->shape[is_chw ? 1 : 0];
	width = tensor->shape[is_chw ? 2 : 1];
	if (is_chw || is_hwc)
		channels = tensor->shape[is_chw ? 0 : 2];
	if ((channels != 1 && channels != 3) || !height || !width)
		return fail(EXIT_USAGE,
			    "field %s is %s %s; a picture has 1 or 3 channels and no empty side; `shardcat get --npy` "
			    "takes any field",
			    f->name, shape, layout);
	*out = (struct png_image){
		.pixels = tensor->data,
		.width = (uint32_t)width,
		.height = (uint32_t)height,
		.channel_count = (uint32_t)channels,
		.row_bytes = is_chw ? width : width * channels,
		.pixel_bytes = is_chw ? 1 : channels,
		.channel_bytes = is_chw ? width * height : 1,
	};
	return EXIT_DONE;
}

/* ---- images of floating point or of 16 bits, made visible ---- */

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

int picture_scale(struct input *in, const struct shard_field *field, struct picture_scale *out)
{
	static const char made_by[] = "made by shardpack\nsource images\n";
	struct shard_reader *reader = NULL;
	struct shard_error err;
	char *text;
	int rc;

	*out = (struct picture_scale){.known = false};
	if (!has_float_samples(field->dtype) || field->semantic != SHARD_IMAGE)
		return EXIT_DONE;
	rc = input_first_reader(in, &reader);
	if (rc || !reader)
		return rc;
	rc = input_provenance(reader, &text, &err);
	if (rc)
		return fail_of_library(&err);
	if (!strncmp(text, made_by, strlen(made_by)))
		out->known = find_scale(text, field, out);
	free(text);
	return EXIT_DONE;
}

/* In place: sample i is written where element i / 2 or before was read. */
static void floats_to_u8(const struct picture_scale *scale, struct tensor *tensor)
{
	bool planes = tensor->field->layout == SHARD_CHW && tensor->ndim == 3;
	uint64_t plane = planes ? (uint64_t)tensor->shape[1] * tensor->shape[2] : 1;
	double least = INFINITY, greatest = -INFINITY;

	for (uint64_t i = 0; i < tensor->element_count && !scale->known; i++) {
		double value = number_double(tensor->field->dtype, tensor->data + i * tensor->element_bytes);

		if (!isfinite(value)) /* beyond the range, whatever it is */
			continue;
		least = value < least ? value : least;
		greatest = value > greatest ? value : greatest;
	}
	for (uint64_t i = 0; i < tensor->element_count; i++) {
		double value = number_double(tensor->field->dtype, tensor->data + i * tensor->element_bytes);
		uint64_t c = planes ? i / plane : i % 3;

		value = scale->known ? value * scale->std[c] + scale->mean[c] : (value - least) / (greatest - least);
		/* 0 also if it is not a number */
		tensor->data[i] = value > 0 ? value < 1 ? (uint8_t)lrint(value * 255) : 255 : 0;
	}
	tensor->element_bytes = 1;
}

int picture_image(const struct picture_scale *scale, bool wide, struct tensor *tensor, struct png_image *out)
{
	const struct picture_scale by_itself = {.known = false};
	const struct shard_field *f = tensor->field;
	int rc = bytes_image(tensor, out);

	if (rc)
		return rc;
	if (f->dtype == SHARD_U16 && wide) {
		out->wide = true;
		out->row_bytes *= 2;
		out->pixel_bytes *= 2;
		out->channel_bytes *= 2;
	} else if (f->dtype == SHARD_U16 && f->semantic != SHARD_IMAGE) {
		return fail(EXIT_USAGE,
			    "field %s is u16 and not an image, so its 16 bits cannot be shown in 8; `shardcat get "
			    "--png` and `--npy` write all of them",
			    f->name);
	} else if (f->dtype == SHARD_U16) {
		for (uint64_t i = 0; i < tensor->element_count; i++)
			tensor->data[i] = tensor->data[2 * i + 1];
		tensor->element_bytes = 1;
	} else if (has_float_samples(f->dtype)) {
		floats_to_u8(out->channel_count == 3 ? scale : &by_itself, tensor);
	}
	return EXIT_DONE;
}
