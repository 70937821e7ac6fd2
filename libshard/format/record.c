/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - the bytes of a record: where fields are not, where ragged fields end, sizes of images
 *
 * Pure.  The rules I49, I57, I58 and I59 of format/SHARD.md.
 */
#include "libshard/format/record.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/format/invariant.h"
#include "libshard/format/schema.h"

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

int record_check_length(const struct shard_field *f, uint32_t axis, uint32_t length, uint64_t record,
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
