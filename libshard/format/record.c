/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - I49, I57, I58 and I59 of format/SHARD.md: what the bytes of a record may be
 */
#include "libshard/format/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "shard_pack.h"

void record_holes(const struct shard_schema *s, uint32_t group, struct record_holes *out)
{
	uint64_t at = 0;

	out->count = 0;
	for (;;) { /* fields are few: find the next one by offset, until there is none */
		uint64_t next = s->group[group].stride, end = next;

		for (uint32_t i = 0; i < s->field_count; i++) {
			const struct shard_field *f = &s->field[i];

			if (f->group == group && f->offset >= at && f->offset < next && f->bytes) {
				next = f->offset;
				end = f->offset + f->bytes;
			}
		}
		if (next > at && out->count <= SHARD_FIELDS_MAX) {
			out->hole[out->count].offset = (uint32_t)at;
			out->hole[out->count++].bytes = (uint32_t)(next - at);
		}
		if (next == s->group[group].stride)
			return;
		at = end;
	}
}

int record_check_holes(const struct record_holes *holes, const void *data, uint64_t stride, uint64_t first,
		       uint64_t count, struct shard_error *err)
{
	const uint8_t *record = data;

	for (uint64_t i = 0; holes->count && i < count; i++, record += stride)
		for (uint32_t h = 0; h < holes->count; h++) {
			uint32_t offset = holes->hole[h].offset, bytes = holes->hole[h].bytes;
			size_t bad = first_nonzero(record + offset, bytes);

			MUST("I49", bad == bytes,
			     "record %" PRIu64 ": byte %zu, which belongs to no field, is 0x%02x; must be 0", first + i,
			     offset + bad, record[offset + bad]);
		}
	return SHARD_OK;
}

void record_widen_field(uint8_t *dst, const struct shard_field *to, const uint8_t *src, const struct shard_field *from)
{
	uint64_t step[2][SHARD_DIMS_MAX], run = shard_dtype_bytes(from->dtype);
	uint32_t at[SHARD_DIMS_MAX] = {0}, outer = from->ndim, axis;

	memset(dst, 0, (size_t)to->bytes);
	step[0][outer - 1] = step[1][outer - 1] = run;
	for (axis = outer - 1; axis > 0; axis--) {
		step[0][axis - 1] = step[0][axis] * from->shape[axis];
		step[1][axis - 1] = step[1][axis] * to->shape[axis];
	}
	/* What lies together in both is one run: the last axis that differs, and all behind it. */
	do {
		outer--;
		run = step[0][outer] * from->shape[outer];
	} while (outer && from->shape[outer] == to->shape[outer]);
	do {
		uint64_t source = 0, target = 0;

		for (axis = 0; axis < outer; axis++) {
			source += at[axis] * step[0][axis];
			target += at[axis] * step[1][axis];
		}
		memcpy(dst + target, src + source, (size_t)run);
		for (axis = outer; axis > 0 && ++at[axis - 1] == from->shape[axis - 1]; axis--)
			at[axis - 1] = 0;
	} while (axis);
}

/* I57 of one axis of one record. */
static int record_check_length(const struct shard_field *f, uint32_t axis, uint32_t length, uint64_t record,
			       struct shard_error *err)
{
	MUST("I57", length <= f->shape[axis],
	     "record %" PRIu64 ": field '%.47s' says length %u on axis %u; must be at most %u", record, f->name, length,
	     axis, f->shape[axis]);
	return SHARD_OK;
}

int record_check_ragged(const struct shard_field *f, const uint8_t *field_data, const uint8_t *lengths, uint64_t record,
			struct shard_error *err)
{
	uint32_t limit[SHARD_DIMS_MAX], at[SHARD_DIMS_MAX] = {0};
	size_t item = shard_dtype_bytes(f->dtype);
	uint64_t elements = schema_elements(f), last = f->shape[f->ndim - 1]; /* a ragged field has an axis: I32 */
	uint32_t k = 0;
	int rc;

	for (uint32_t d = 0; d < f->ndim; d++) {
		limit[d] = f->shape[d];
		if (!(f->ragged_axes >> d & 1))
			continue;
		limit[d] = load32(lengths + 4 * k++);
		rc = record_check_length(f, d, limit[d], record, err);
		if (rc)
			return rc;
	}
	for (uint64_t row = 0; row < elements; row += last) { /* neighbours along the last axis */
		bool inside = true;
		uint64_t bad, begin;

		for (uint32_t d = 0; d + 1 < f->ndim; d++)
			inside = inside && at[d] < limit[d];
		begin = inside ? min_u64(limit[f->ndim - 1], last) : 0; /* more than `last` is I57's to refuse */
		bad = begin + first_nonzero(field_data + (row + begin) * item, (size_t)((last - begin) * item)) / item;
		MUST("I58", bad == last,
		     "record %" PRIu64 ": field '%.47s': element %" PRIu64 " lies past the lengths; must be zero",
		     record, f->name, row + bad);
		for (uint32_t d = f->ndim - 1; d-- > 0;) { /* count up, the last axis first */
			if (++at[d] < f->shape[d])
				break;
			at[d] = 0;
		}
	}
	return SHARD_OK;
}

int record_check_size(const struct shard_field *f, const uint8_t *size, const uint8_t *length, uint64_t record,
		      struct shard_error *err)
{
	uint32_t height = load32(size), width = load32(size + 4), pixels = load32(length);

	MUST("I59", height && width && (uint64_t)height * width == pixels,
	     "record %" PRIu64 ": field '%.47s': height %u and width %u, but %u pixels; must be at least 1 each, and "
	     "their product the number of pixels",
	     record, f->name, height, width, pixels);
	return SHARD_OK;
}

/*
 * ---- images that have a height and width of their own: format/SHARD.md 2.11 ----
 *
 * A size in a record is bytes from outside: it is used after shard_image_size() has checked it.
 */

static bool is_whole(const struct shard_field *f)
{
	return f->kind == SHARD_RAGGED && f->dtype == SHARD_U8 && f->semantic == SHARD_IMAGE &&
	       f->layout == SHARD_HWC && f->ndim == 2 && f->ragged_axes == 1 && f->shape[1] >= 1 &&
	       f->shape[1] <= SHARD_TALLY_CHANNELS_MAX;
}

uint32_t shard_image_size_field(const struct shard_schema *schema, uint32_t field)
{
	char name[SHARD_NAME_BYTES + sizeof("_size")];

	if (field >= schema->field_count || !is_whole(&schema->field[field]))
		return SHARD_FIELDS_MAX;
	snprintf(name, sizeof(name), "%.*s_size", SHARD_NAME_BYTES - 1, schema->field[field].name);
	for (uint32_t i = 0; i < schema->field_count; i++) {
		const struct shard_field *f = &schema->field[i];

		if (!strncmp(f->name, name, sizeof(f->name)) && f->kind == SHARD_TENSOR && f->dtype == SHARD_U32 &&
		    f->ndim == 1 && f->shape[0] == 2)
			return i;
	}
	return SHARD_FIELDS_MAX;
}

int shard_image_size(const struct shard_schema *schema, uint32_t field, const void *const *group, uint64_t record,
		     struct shard_size *size, struct shard_error *err)
{
	uint32_t size_field = shard_image_size_field(schema, field);
	const struct shard_field *f, *length, *of;
	const uint8_t *at, *pixels;
	int rc;

	if (size_field >= schema->field_count)
		return error_set(err, SHARD_E_ARGUMENT, "field %u: is not a whole image, so it has no size", field);
	f = &schema->field[field];
	length = &schema->field[f->length_field];
	of = &schema->field[size_field];
	at = (const uint8_t *)group[of->group] + of->offset;
	pixels = (const uint8_t *)group[length->group] + length->offset;
	rc = record_check_length(f, 0, load32(pixels), record, err);
	if (!rc)
		rc = record_check_size(f, at, pixels, record, err);
	if (!rc)
		*size = (struct shard_size){load32(at), load32(at + 4)};
	return rc;
}
