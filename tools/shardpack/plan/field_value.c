/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_value.c - the value of a field: from the form in its source to the bytes of a record
 */
#include "tools/shardpack/plan/plan.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/utf8.h"
#include "shard_inspect.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/parse/json_value.h"
#include "tools/shardpack/parse/parse.h"

/* A value on its way into a record. */
struct taking {
	const struct shard_field *f;
	const struct field_source *s;
	uint8_t *out;
	size_t out_bytes;
	struct field_verdict *v;
};

/* ---- lists of texts ---- */

/* Text `idx` of the list, into `room` bytes, of which it leaves the rest zero. */
static bool take_one(const json_t *text, size_t idx, uint32_t room, uint8_t *out, size_t *bytes,
		     struct field_verdict *v)
{
	if (!json_is_string(text))
		return field_verdict_bad(v, SHARD_MISS_UNSUPPORTED, "element %zu of the list is not a text", idx);
	*bytes = json_string_length(text); /* without a zero byte: JSON is read so */
	if (*bytes > room)
		return field_verdict_bad(v, SHARD_MISS_LIMIT,
					 "text %zu has %zu bytes; the limit is max=%" PRIu32
					 ", raise it or shorten the text",
					 idx, *bytes, room);
	memset(out, 0, room);
	memcpy(out, json_string_value(text), *bytes);
	return true;
}

/*
 * The value is a list of texts, or one: t->out gets what s->pick says, in the form of a record.
 * False, and the verdict, if it is neither, or does not fit.  With pick=each it must be one text:
 * text_each.c has taken the list apart.
 */
static bool take_texts(struct taking *t, const json_t *value)
{
	const struct shard_field *f = t->f;
	const struct field_source *s = t->s;
	struct field_verdict *v = t->v;
	bool is_list = json_is_array(value), all = s->pick == PICK_ALL;
	size_t count = is_list ? json_array_size(value) : 1, bytes = 0, first = 0;
	uint32_t room = f->shape[f->ndim - 1];

	if (s->pick == PICK_EACH && count && is_list)
		return field_verdict_bad(v, SHARD_MISS_UNSUPPORTED, "a list within the list, and no text");
	if (s->pick == PICK_EACH && json_is_string(value) && json_string_length(value) > room)
		return field_verdict_bad(v, SHARD_MISS_LIMIT,
					 "%zu bytes; the limit is max=%" PRIu32 ", raise it or shorten the text",
					 json_string_length(value), room);
	if (!is_list && !json_is_string(value))
		return field_verdict_bad(v, SHARD_MISS_UNSUPPORTED, "neither a text nor a list of texts");
	if (all && count > f->shape[0])
		return field_verdict_bad(v, SHARD_MISS_LIMIT, "%zu texts; the limit is count=%" PRIu32 ", raise it",
					 count, f->shape[0]);
	if (!all && !count && !s->optional)
		return field_verdict_bad(v, SHARD_MISS_EMPTY, "a list without a text; add one, or say optional");
	for (size_t i = 0; i < count; i++) {
		const json_t *text = is_list ? json_array_get(value, i) : value;

		if (!all && i && !json_is_string(text))
			return field_verdict_bad(v, SHARD_MISS_UNSUPPORTED, "element %zu of the list is not a text", i);
		if ((all || !i) && !take_one(text, i, room, t->out + i * room, &bytes, v))
			return false;
		first = i ? first : bytes;
	}
	t->out_bytes = all ? count * room : first;
	return true;
}

void field_texts_add(const struct shard_field *f, const uint8_t *rows, size_t bytes, struct text *out)
{
	uint32_t room = f->shape[1];

	text_add(out, " =", 2);
	for (size_t at = 0; at < bytes; at += room) {
		text_hex(out, rows + at, strnlen((const char *)rows + at, room));
		text_add(out, "00", 2);
	}
}

/* The bytes of the text that begins at hex digit `at`. */
static size_t text_at(const struct field_part *part, size_t at)
{
	size_t end = at;

	while (end < part->text_bytes && (part->text[end] != '0' || part->text[end + 1] != '0'))
		end += 2;
	return (end - at) / 2;
}

bool field_texts_fit(const struct shard_field *f, const struct field_source *s, const struct field_part *part)
{
	uint64_t row = shard_dtype_bytes(f->dtype) * recipe_field_items(f);
	uint32_t count = 0;
	size_t bytes;

	if (s->pick == PICK_ALL) {
		for (size_t at = 0; at < part->text_bytes; at += 2 * (bytes + 1)) {
			bytes = text_at(part, at);
			if (++count > f->shape[0] || bytes > f->shape[1] || at + 2 * bytes == part->text_bytes)
				return false;
		}
		return true;
	}
	if (f->kind == SHARD_TENSOR || part->bytes > row)
		return part->bytes == row;
	return part->bytes % (row / f->shape[0]) == 0;
}

size_t field_texts_put(const struct shard_field *f, const struct field_part *part, uint8_t *out)
{
	size_t bytes, used = 0;

	for (size_t at = 0; at < part->text_bytes; at += 2 * (bytes + 1), used += f->shape[1]) {
		bytes = text_at(part, at);
		text_unhex(part->text + at, 2 * bytes, out + used, bytes);
	}
	return used;
}

/* ---- values ---- */

/* One number as it is written.  Integers of 64 bits with and without sign fit. */
struct number {
	enum { WHOLE, REAL, TRUTH } kind;
	__int128 whole; /* also of a truth */
	double real;
};

size_t field_value_room(const struct shard_field *f)
{
	return (size_t)(recipe_field_items(f) * shard_dtype_bytes(f->dtype));
}

/* ---- numbers ---- */

/* The range of an integer type. */
static void range_of(uint32_t dtype, __int128 *least, __int128 *most)
{
	unsigned bits = 8 * (unsigned)shard_dtype_bytes(dtype);
	bool is_signed = integer_is_signed(dtype);

	*most = ((__int128)1 << (is_signed ? bits - 1 : bits)) - 1;
	*least = is_signed ? -*most - 1 : 0;
}

/* False if the type does not hold it.  A whole number is held exactly, and a fraction rounded. */
static bool put_number(uint32_t dtype, const struct number *n, uint8_t *out)
{
	double real = n->kind == REAL ? n->real : (double)n->whole;
	__int128 least, most;
	uint64_t bits;
	float narrow;

	if (n->kind == TRUTH && dtype != SHARD_BOOL)
		return false;
	if (dtype == SHARD_F32) {
		if (isfinite(real) && fabs(real) >= 0x1.ffffffp127) /* rounds to more than the greatest */
			return false;
		narrow = (float)real;
		memcpy(out, &narrow, sizeof(narrow));
		return n->kind == REAL || (__int128)narrow == n->whole;
	}
	if (dtype == SHARD_F64) {
		memcpy(out, &real, sizeof(real));
		return n->kind == REAL || (__int128)real == n->whole;
	}
	range_of(dtype, &least, &most);
	if (dtype == SHARD_BOOL)
		most = 1;
	if (n->kind == REAL || n->whole < least || n->whole > most)
		return false;
	bits = (uint64_t)n->whole;
	memcpy(out, &bits, shard_dtype_bytes(dtype)); /* little-endian, as the format */
	return true;
}

static bool refuse_number(struct taking *t, const struct number *n, uint64_t idx)
{
	char text[48];

	if (n->kind == REAL)
		snprintf(text, sizeof(text), "%.17g", n->real);
	else if (n->kind == TRUTH)
		snprintf(text, sizeof(text), "%s", n->whole ? "true" : "false");
	else if (n->whole < 0)
		snprintf(text, sizeof(text), "%" PRId64, (int64_t)n->whole);
	else
		snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)n->whole);
	return field_verdict_bad(t->v, SHARD_MISS_UNSUPPORTED,
				 "number %" PRIu64 ", %s, does not fit %s; choose a dtype that holds it", idx, text,
				 shard_name(SHARD_NAME_DTYPE, t->f->dtype));
}

/* Is an axis of `size` elements one of the field?  Axis 0 of a ragged one may be shorter. */
static bool check_axis(struct taking *t, uint32_t axis, uint64_t size)
{
	uint64_t want = t->f->shape[axis];

	if (!axis && t->f->kind == SHARD_RAGGED)
		return size <= want ||
		       field_verdict_bad(t->v, SHARD_MISS_LIMIT,
					 "%" PRIu64 " of them; the limit is max=%" PRIu64 ", raise it", size, want);
	return size == want ||
	       field_verdict_bad(t->v, SHARD_MISS_UNSUPPORTED,
				 "axis %" PRIu32 " has %" PRIu64 " elements; the field has %" PRIu64, axis, size, want);
}

/* ---- JSON ---- */

static bool take_json_number(struct taking *t, const json_t *value)
{
	size_t item = shard_dtype_bytes(t->f->dtype);
	struct number n = {.kind = WHOLE};
	char what[JSON_VALUE_BYTES];

	if (json_is_boolean(value))
		n = (struct number){.kind = TRUTH, .whole = json_is_true(value)};
	else if (json_is_integer(value))
		n.whole = json_integer_value(value);
	else if (json_is_real(value))
		n = (struct number){.kind = REAL, .real = json_real_value(value)};
	else
		return field_verdict_bad(t->v, SHARD_MISS_UNSUPPORTED, "element %zu is %.120s and must be a number",
					 t->out_bytes / item, json_value_say(value, what));
	if (!put_number(t->f->dtype, &n, t->out + t->out_bytes))
		return refuse_number(t, &n, t->out_bytes / item);
	t->out_bytes += item;
	return true;
}

static bool take_json(struct taking *t, const json_t *value, uint32_t axis)
{
	char what[JSON_VALUE_BYTES];

	if (axis == t->f->ndim)
		return take_json_number(t, value);
	if (!json_is_array(value))
		return field_verdict_bad(t->v, SHARD_MISS_UNSUPPORTED,
					 "axis %" PRIu32 " is %.120s and must be a list; the field has %" PRIu32
					 " axes%s",
					 axis, json_value_say(value, what), t->f->ndim,
					 json_is_object(value) && !axis ? "; a nested key is written with a dot" : "");
	if (!check_axis(t, axis, json_array_size(value)))
		return false;
	for (size_t i = 0; i < json_array_size(value); i++)
		if (!take_json(t, json_array_get(value, i), axis + 1))
			return false;
	return true;
}

/* With errno as json_loadb() left it: of memory that ran out it speaks as of bad JSON. */
static bool bad_json(struct taking *t, const char *data, size_t bytes, const json_error_t *error)
{
	struct yolo y = {data, data + bytes, 0};
	struct yolo_box box;
	char why[YOLO_WHY_BYTES];

	if (errno == ENOMEM)
		return field_verdict_bad(t->v, FIELD_NO_MEMORY, "out of memory for its JSON");
	if ((t->s->kind == FIELD_BOXES || t->s->kind == FIELD_RAGGED) && yolo_next(&y, &box, why) == YOLO_BOX)
		return field_verdict_bad(t->v, SHARD_MISS_DECODE,
					 "not JSON, but lines of a class and a box, as YOLO has them: say format=yolo");
	return field_verdict_bad(t->v, SHARD_MISS_DECODE, "no %s, at byte %d: %s",
				 t->s->kind == FIELD_TEXT ? "list of texts in JSON" : "JSON", error->position,
				 json_why(error));
}

/* ---- NumPy ---- */

/* The number at `from`, whose bytes are in the order of this machine. */
static struct number load_number(uint32_t dtype, const uint8_t *from)
{
	struct number n = {.kind = WHOLE};
	__int128 least, most;
	uint64_t bits = 0;
	float narrow;

	memcpy(&bits, from, shard_dtype_bytes(dtype));
	n.whole = bits;
	switch (dtype) {
	case SHARD_F32:
		memcpy(&narrow, from, sizeof(narrow));
		return (struct number){.kind = REAL, .real = narrow};
	case SHARD_F64:
		n.kind = REAL;
		memcpy(&n.real, from, sizeof(n.real));
		return n;
	case SHARD_BOOL:
		n.kind = TRUTH;
		return n;
	default:
		range_of(dtype, &least, &most);
		if (n.whole > most)
			n.whole -= 2 * (most + 1);
		return n;
	}
}

/* Where element `idx`, counted with the last axis fastest, is in an array whose first one is. */
static uint64_t fortran_place(const struct npy *head, uint64_t idx)
{
	uint64_t place = 0, step = 1, place_of[NPY_DIMS_MAX];
	for (uint32_t axis = head->ndim; axis--; idx /= head->shape[axis])
		place_of[axis] = idx % head->shape[axis];
	for (uint32_t axis = 0; axis < head->ndim; step *= head->shape[axis++])
		place += place_of[axis] * step;
	return place;
}

static bool take_npy_data(struct taking *t, const struct npy *head, const uint8_t *data)
{
	size_t item = shard_dtype_bytes(head->dtype), own = shard_dtype_bytes(t->f->dtype);
	uint64_t count = head->data_bytes / item;
	uint8_t native[8];
	struct number n;

	for (uint64_t i = 0; i < count; i++, t->out_bytes += own) {
		const uint8_t *from = data + item * (head->fortran ? fortran_place(head, i) : i);

		for (size_t k = 0; k < item; k++)
			native[k] = from[head->swap ? item - 1 - k : k];
		n = load_number(head->dtype, native);
		if (!put_number(t->f->dtype, &n, t->out + t->out_bytes))
			return refuse_number(t, &n, i);
	}
	return true;
}

static bool take_npy(struct taking *t, const uint8_t *data, size_t bytes)
{
	struct npy head;
	char why[160];
	if (!npy_parse(data, bytes, &head, why, sizeof(why)))
		return field_verdict_bad(t->v, SHARD_MISS_DECODE, "an array of NumPy: %s", why);
	if (head.data_bytes != bytes - head.data_offset)
		return field_verdict_bad(
			t->v, head.data_bytes > bytes - head.data_offset ? SHARD_MISS_TRUNCATED : SHARD_MISS_DAMAGED,
			"an array of NumPy: its shape asks for %" PRIu64 " bytes, and %" PRIu64 " follow its head",
			head.data_bytes, (uint64_t)bytes - head.data_offset);
	if (head.dtype == SHARD_F16 || head.dtype == SHARD_BF16)
		return field_verdict_bad(t->v, SHARD_MISS_UNSUPPORTED, "an array of NumPy: dtype %s; save it as f4",
					 head.dtype == SHARD_F16 ? "f2" : "V2");
	if (head.ndim != t->f->ndim)
		return field_verdict_bad(t->v, SHARD_MISS_UNSUPPORTED,
					 "an array of NumPy with %" PRIu32 " axes; the field has %" PRIu32, head.ndim,
					 t->f->ndim);
	for (uint32_t axis = 0; axis < head.ndim; axis++)
		if (!check_axis(t, axis, head.shape[axis]))
			return false;
	return take_npy_data(t, &head, data + head.data_offset);
}

/* ---- lines of YOLO ---- */

/* Boxes are four numbers of each line, and what stands beside them is the class. */
static bool take_yolo(struct taking *t, const char *data, size_t bytes)
{
	struct yolo y = {data, data + bytes, 0};
	struct yolo_box box;
	enum yolo_status status;
	uint64_t count = 0;
	char why[YOLO_WHY_BYTES];

	while ((status = yolo_next(&y, &box, why)) == YOLO_BOX) {
		struct number class = {.kind = WHOLE, .whole = box.class_idx};

		if (!check_axis(t, 0, ++count))
			return false;
		for (int n = 0; n < 4 && t->s->kind == FIELD_BOXES; n++, t->out_bytes += sizeof(float))
			memcpy(t->out + t->out_bytes, &box.number[n], sizeof(float));
		if (t->s->kind == FIELD_BOXES)
			continue;
		if (!put_number(t->f->dtype, &class, t->out + t->out_bytes))
			return refuse_number(t, &class, count - 1);
		t->out_bytes += shard_dtype_bytes(t->f->dtype);
	}
	return status == YOLO_END || field_verdict_bad(t->v, SHARD_MISS_DECODE, "%s", why);
}

/* ---- text and bytes ---- */

static bool take_text(struct taking *t, const char *data, size_t bytes)
{
	size_t at;

	if (bytes > t->f->shape[0])
		return field_verdict_bad(t->v, SHARD_MISS_LIMIT,
					 "%zu bytes; the limit is max=%" PRIu32 ", raise it or shorten the value",
					 bytes, t->f->shape[0]);
	at = t->s->kind == FIELD_TEXT ? utf8_bad(data, bytes) : bytes;
	if (at < bytes)
		return field_verdict_bad(t->v, SHARD_MISS_DECODE, "not UTF-8 at byte %zu; kind=bytes takes any", at);
	if (bytes)
		memcpy(t->out, data, bytes);
	t->out_bytes = bytes;
	return true;
}

/* ---- all of them ---- */

/* The numbers of boxes are there: are they boxes? */
static bool settle_boxes(struct taking *t)
{
	float *boxes = (float *)(void *)t->out; /* where a record has them, or malloc() gave room */
	struct decode_verdict v;

	if (boxes_read((enum boxes_format)t->s->boxes, t->s->unit, boxes, t->out_bytes / (4 * sizeof(*boxes)), boxes,
		       &v) == DECODE_OK)
		return true;
	return field_verdict_bad(t->v, v.reason, "%s", v.message);
}

static bool is_text(const struct field_source *s)
{
	return s->kind == FIELD_TEXT || s->kind == FIELD_BYTES;
}

/* What JSON has for the field. */
static bool take_value(struct taking *t, const json_t *value)
{
	const struct field_source *s = t->s;
	char what[JSON_VALUE_BYTES];

	if (is_text(s) && s->pick != PICK_UNSAID)
		return take_texts(t, value);
	if (s->kind == FIELD_TEXT && json_is_array(value))
		return field_verdict_bad(t->v, SHARD_MISS_UNSUPPORTED, "a list; " FIELD_LIST_REMEDY);
	if (is_text(s) && !json_is_string(value))
		return field_verdict_bad(t->v, SHARD_MISS_UNSUPPORTED, "%.60s is %.100s, and must be a text",
					 field_json_key(s), json_value_say(value, what));
	if (is_text(s))
		return take_text(t, json_string_value(value), json_string_length(value));
	return take_json(t, value, 0);
}

bool field_value(const struct shard_field *f, const struct field_source *s, const void *data, size_t bytes,
		 uint8_t *out, size_t *out_bytes, struct field_verdict *v)
{
	struct taking t = {.f = f, .s = s, .out = out, .v = v};
	json_error_t error;
	json_t *value;
	bool ok;

	if (is_text(s) && s->pick == PICK_UNSAID) {
		ok = take_text(&t, data, bytes);
	} else if (s->boxes == BOXES_YOLO) {
		ok = take_yolo(&t, data, bytes);
	} else if (s->kind != FIELD_TEXT && bytes >= NPY_MAGIC_BYTES && !memcmp(data, NPY_MAGIC, NPY_MAGIC_BYTES)) {
		ok = take_npy(&t, data, bytes);
	} else {
		errno = 0;
		value = json_loadb(data, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
		ok = value ? take_value(&t, value) : bad_json(&t, data, bytes, &error);
		json_decref(value);
	}
	ok = ok && (s->kind != FIELD_BOXES || settle_boxes(&t));
	*out_bytes = t.out_bytes;
	return ok;
}

bool field_value_of_key(const struct shard_field *f, const struct field_source *s, const void *data, size_t bytes,
			uint8_t *out, size_t *out_bytes, bool *there, struct field_verdict *v)
{
	struct taking t = {.f = f, .s = s, .out = out, .v = v};
	const char *key = field_json_key(s);
	json_error_t error;
	char why[JSON_VALUE_BYTES];
	json_t *object, *value;
	bool ok;

	errno = 0;
	object = json_loadb(data, bytes, JSON_REJECT_DUPLICATES, &error);
	value = json_value_find(object, key);
	*there = !object || (value && !json_is_null(value));
	if (!object)
		ok = bad_json(&t, data, bytes, &error);
	else if (!*there)
		ok = field_verdict_bad(t.v, SHARD_MISS_EMPTY, "%.180s; add it, or say optional",
				       json_value_absent(object, key, why));
	else
		ok = take_value(&t, value) && (s->kind != FIELD_BOXES || settle_boxes(&t));
	json_decref(object);
	*out_bytes = t.out_bytes;
	return ok;
}

/* ---- the numbers of --columns ---- */

static bool signed_cell(const char *text, size_t bytes, uint8_t out[8])
{
	int64_t value, most = bytes == 8 ? INT64_MAX : (INT64_C(1) << (8 * bytes - 1)) - 1;

	if (!text_i64(text, strlen(text), &value))
		return false;
	memcpy(out, &value, 8);
	return value <= most && value >= -most - 1;
}

static bool unsigned_cell(const char *text, size_t bytes, uint8_t out[8])
{
	unsigned long long value, most = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;

	if (!text[0] || text[strspn(text, "0123456789")])
		return false;
	errno = 0;
	value = strtoull(text, NULL, 10);
	memcpy(out, &value, 8);
	return !errno && value <= most;
}

/* Are these only digits, which `value` does not have?  A whole number may name something. */
static bool is_another_whole(const char *text, double value)
{
	const char *digits = text + (*text == '-');
	char exact[DBL_MAX_10_EXP + 3];

	if (digits[strspn(digits, "0123456789")])
		return false;
	while (digits[0] == '0' && digits[1])
		digits++;
	snprintf(exact, sizeof(exact), "%.0f", fabs(value));
	return strcmp(exact, digits) != 0;
}

static bool float_cell(const char *text, uint32_t dtype, uint8_t out[8])
{
	double d;
	float f;

	if (!text_is_decimal(text, strlen(text), true))
		return false;
	errno = 0;
	if (dtype == SHARD_F32) {
		f = strtof(text, NULL);
		d = f;
		memcpy(out, &f, sizeof(f));
	} else {
		d = strtod(text, NULL);
		memcpy(out, &d, sizeof(d));
	}
	/* "inf" is one, 1e999 is not */
	return !(errno == ERANGE && isinf(d)) && !is_another_whole(text, d);
}

bool field_value_of_column(const struct shard_field *f, const char *text, uint8_t out[8])
{
	size_t bytes = shard_dtype_bytes(f->dtype);

	memset(out, 0, 8);
	switch (f->dtype) {
	case SHARD_U8:
	case SHARD_U16:
	case SHARD_U32:
	case SHARD_U64:
		return unsigned_cell(text, bytes, out);
	case SHARD_I8:
	case SHARD_I16:
	case SHARD_I32:
	case SHARD_I64:
		return signed_cell(text, bytes, out);
	case SHARD_BOOL:
		out[0] = !strcmp(text, "1") || !strcmp(text, "true");
		return out[0] || !strcmp(text, "0") || !strcmp(text, "false");
	default:
		return float_cell(text, f->dtype, out);
	}
}
