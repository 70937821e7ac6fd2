/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_pocket.c - what a batch has as Python has it: its fields, and what it knows of each row
 *
 * Large fields are arrays in the slot.  Small ones are copied out of it, to one piece of memory.
 * Lengths become int64 on the way, and strings a list if that is wanted.  On a GPU all fields are
 * arrays in the slot.
 */
#include "python/core/loader/py_loader.h"

#include <string.h>

#include "python/core/base/py_map.h"
#include "shard_pack.h"

#define VIEW_STRIDE_MIN 4096 /* fields of smaller rows are copied out of the slot: 256 labels are 2 KiB */

static size_t aligned(size_t bytes)
{
	return (bytes + MEMORY_ALIGN_BYTES - 1) / MEMORY_ALIGN_BYTES * MEMORY_ALIGN_BYTES;
}

static bool is_view(const struct loader *l, uint32_t f)
{
	return l->lender.on_device || l->schema->field[f].stride >= VIEW_STRIDE_MIN;
}

/*
 * Lengths are delivered in the type of an index, where the CPU can read them.  So are tokens, if
 * that is wanted.
 */
static bool is_wide(const struct loader *l, uint32_t f)
{
	const struct shard_field *field = &l->schema->field[f];

	return !l->lender.on_device && (field->dtype == SHARD_U16 || field->dtype == SHARD_U32) &&
	       (field->semantic == SHARD_LENGTH || (l->wide_tokens && field->semantic == SHARD_TOKENS));
}

/* Delivered in a list if that is wanted. */
static bool is_string(const struct shard_field *f)
{
	return f->kind == SHARD_STRING || shard_field_is_texts(f);
}

bool pocket_wants(const struct loader *l, const struct shard_batch *b, uint32_t f)
{
	bool wanted = b->field[f].data;

	for (uint32_t i = 0; wanted && l->strings && i < l->schema->field_count; i++)
		wanted = !is_string(&l->schema->field[i]) || l->schema->field[i].length_field != f || !b->field[i].data;
	return wanted;
}

bool pocket_open(struct pocket *p, const struct loader *l, const struct shard_batch *b)
{
	const struct shard_schema *s = l->schema;
	size_t bytes = aligned(b->record_count * sizeof(*b->record)) + 2 * aligned(b->record_count);

	if (b->component)
		bytes += aligned(b->record_count * sizeof(int64_t));

	for (uint32_t f = 0; f < s->field_count; f++)
		if (is_wide(l, f))
			bytes += aligned(b->record_count * (size_t)s->field[f].bytes /
					 shard_dtype_bytes(s->field[f].dtype) * sizeof(int64_t));
		else if (!is_view(l, f))
			bytes += aligned(b->record_count * (size_t)b->field[f].stride);
	p->memory = memory_new(bytes);
	p->used = 0;
	return p->memory;
}

static const void *put(struct pocket *p, const void *data, size_t bytes)
{
	void *to = (char *)p->memory->data + p->used;

	memcpy(to, data, bytes);
	p->used += aligned(bytes);
	return to;
}

PyObject *pocket_rows(struct pocket *p, uint32_t dtype, const void *data, uint32_t count)
{
	const void *numbers = put(p, data, count * shard_dtype_bytes(dtype));

	return (PyObject *)array_of_numbers((PyObject *)p->memory, numbers, dtype, count);
}

PyObject *pocket_component(struct pocket *p, const struct shard_batch *b)
{
	int64_t *to = (int64_t *)(void *)((char *)p->memory->data + p->used);

	for (uint32_t i = 0; i < b->record_count; i++)
		to[i] = b->component[i];
	p->used += aligned(b->record_count * sizeof(*to));
	return (PyObject *)array_of_numbers((PyObject *)p->memory, to, SHARD_I64, b->record_count);
}

PyObject *pocket_valid(struct pocket *p, const struct shard_batch *b)
{
	bool *to = (bool *)p->memory->data + p->used;

	for (uint32_t i = 0; i < b->record_count; i++)
		to[i] = !b->row_flags[i];
	p->used += aligned(b->record_count);
	return (PyObject *)array_of_numbers((PyObject *)p->memory, to, SHARD_BOOL, b->record_count);
}

/* As int64.  A length is a number for each row, unless several axes vary. */
static PyObject *wide_array(struct pocket *p, const struct shard_rows *rows, const struct shard_field *f,
			    uint32_t count)
{
	struct shard_field wide = *f;
	size_t item_bytes = shard_dtype_bytes(f->dtype), per_row = f->bytes / item_bytes;
	int64_t *to = (int64_t *)(void *)((char *)p->memory->data + p->used);
	const int64_t *begin = to;

	for (uint32_t i = 0; i < count; i++, to += per_row) {
		const void *row = (const char *)rows->data + i * rows->stride; /* aligned: so are fields and strides */

		for (size_t k = 0; k < per_row; k++)
			to[k] = item_bytes == 2 ? ((const uint16_t *)row)[k] : ((const uint32_t *)row)[k];
	}
	p->used += aligned(count * per_row * sizeof(*to));
	wide.dtype = SHARD_I64;
	wide.ndim = f->semantic == SHARD_LENGTH && per_row == 1 ? 0 : f->ndim;
	return (PyObject *)array_of_field((PyObject *)p->memory, -1, &wide, begin, count,
					  (Py_ssize_t)(per_row * sizeof(*to)));
}

/* Strings as such, in a list; of a list of texts, a list for each record. */
static PyObject *string_list(const struct shard_batch *b, const struct shard_field *f, const struct shard_rows *rows)
{
	const struct shard_rows *lengths = &b->field[f->length_field];
	PyObject *list = PyList_New(b->record_count), *string;
	uint32_t length;

	for (uint32_t i = 0; list && i < b->record_count; i++) {
		const char *at = (const char *)rows->data + i * rows->stride;

		memcpy(&length, (const char *)lengths->data + i * lengths->stride, sizeof(length));
		length = length < f->shape[0] ? length : f->shape[0]; /* the hash was checked, but not this */
		string = f->kind == SHARD_RAGGED     ? texts_of_rows(at, length, f->shape[1])
			 : f->semantic == SHARD_TEXT ? PyUnicode_DecodeUTF8(at, length, "strict")
						     : PyBytes_FromStringAndSize(at, length);
		if (!string || PyList_SetItem(list, i, string) < 0)
			Py_CLEAR(list);
	}
	return list;
}

PyObject *pocket_field(struct pocket *p, const struct loader *l, struct lease *lease, uint32_t f)
{
	const struct shard_schema *s = l->schema;
	const struct shard_rows *rows = &lease->as.batch.field[f];
	uint32_t count = lease->as.batch.record_count;

	if (is_wide(l, f))
		return wide_array(p, rows, &s->field[f], count);
	if (l->strings && is_string(&s->field[f]))
		return string_list(&lease->as.batch, &s->field[f], rows);
	if (is_view(l, f)) {
		struct array *a = array_of_field((PyObject *)lease, (int)f, &s->field[f], rows->data, count,
						 (Py_ssize_t)rows->stride);

		if (a && s->field[f].semantic == SHARD_LENGTH && a->v.axis_count == 2 && a->v.shape[1] == 1)
			a->v.axis_count = 1; /* on a GPU, where they stay as they are */
		return (PyObject *)a;
	}
	return (PyObject *)array_of_field((PyObject *)p->memory, -1, &s->field[f],
					  put(p, rows->data, count * (size_t)rows->stride), count,
					  (Py_ssize_t)rows->stride);
}
