/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_records.c - records of fixed size from where the plan's slices say they lie
 *
 * Fields whose slices lie side by side in the same records of a file are read together, as a
 * stream: of CIFAR one read brings label and image, of a shuffled order one read per record, of
 * neighbouring records one for all of them.
 */
#include "tools/shardpack/make/make.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/parse.h"

/* ---- the bytes of a field as they stand in a file, made those of a record ---- */

/*
 * The other order of bytes is swapped, and integers get the width of the field.  `in` has `have`
 * bytes of the file: a whole field has as many as it says, a ragged one may have fewer.  The rest of
 * that becomes 0, and its length is written as well.  `group` are those of the record.
 */
static void convert_field(const struct shard_schema *schema, uint32_t field, const struct plan_slice *s,
			  const uint8_t *in, uint64_t have, uint8_t *const *group)
{
	const struct shard_field *to = &schema->field[field];
	size_t item = shard_dtype_bytes(s->dtype), items = (size_t)have / item, wide = shard_dtype_bytes(to->dtype);
	uint8_t *out = group[to->group] + to->offset;
	bool is_signed = integer_is_signed(s->dtype);

	if (s->dtype != to->dtype) {
		/* the plan found that each fits; a u64 that is not a class becomes negative */
		for (size_t i = 0; i < items; i++)
			integer_store(out + wide * i, wide,
				      (uint64_t)integer_load(in + i * item, item, is_signed, s->swap));
	} else if (s->swap && item > 1) {
		for (size_t i = 0; i < have; i += item)
			for (size_t k = 0; k < item; k++)
				out[i + k] = in[i + item - 1 - k];
	} else {
		memcpy(out, in, (size_t)have);
	}
	if (to->kind == SHARD_RAGGED) {
		const struct shard_field *length = &schema->field[to->length_field];
		uint32_t count = (uint32_t)items;

		memset(out + items * wide, 0, (size_t)to->bytes - items * wide);
		memcpy(group[length->group] + length->offset, &count, sizeof(count));
	}
}

/* ---- streams ---- */

#define RAW_BYTES  (UINT64_C(1) << 18) /* of one read, unless a single record is larger */
#define AHEAD	   8u		       /* records that are prefetched */
#define COPY_BYTES (UINT64_C(1) << 15) /* below, a system call costs more than page faults */

/* Fields that are read together. */
struct stream {
	uint32_t field[SHARD_FIELDS_MAX], field_count;
	uint64_t start[SHARD_FIELDS_MAX]; /* of each, behind the first byte that is read */
	uint64_t span;			  /* bytes of one record, from the first byte to the last */
	uint32_t lead;			  /* field that starts first */
	bool direct;			  /* one field as it lies: it may be read into its place */
	bool near;			  /* the block's records seem to be in memory */
};

struct fixed {
	const struct plan *plan;
	const struct shard_schema *schema;
	const struct source_files *source_files;
	struct stream stream[SHARD_FIELDS_MAX];
	uint32_t stream_count;
	struct scratch raw;
	/* Instead of streams, where records hold packed documents; else NULL. */
	struct window_piece *piece;		       /* [piece_max] */
	uint8_t *piece_raw;			       /* of the longest piece, 8 bytes a token */
	const struct shard_field *label;	       /* NULL: every label is right */
	uint32_t label_field;			       /* its number */
	const struct plan_slice *at[SHARD_FIELDS_MAX]; /* the slice of each field that was used last */
};

/* Bytes of a field in the file, of one record that is whole. */
static uint64_t stored_field_bytes(const struct fixed *f, uint32_t field, const struct plan_slice *s)
{
	const struct shard_field *to = &f->schema->field[field];

	return to->bytes / shard_dtype_bytes(to->dtype) * shard_dtype_bytes(s->dtype);
}

/*
 * Bytes of one record in this slice of the stream.  A field that is read alone may have another
 * dtype in each file.
 */
static uint64_t span_of(const struct fixed *f, const struct stream *st, const struct plan_slice *lead)
{
	return st->field_count == 1 ? stored_field_bytes(f, st->lead, lead) : st->span;
}

/* Is `field` wherever `lead` is, at the same distance and in the same records? */
static bool lies_beside(const struct plan *p, uint32_t lead, uint32_t field)
{
	uint64_t a = p->field_slice[lead], b = p->field_slice[field], n = p->field_slice[lead + 1] - a;

	if (p->field_slice[field + 1] - b != n)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		const struct plan_slice *x = &p->slice[a + i], *y = &p->slice[b + i];

		if (x->first != y->first || x->file != y->file || x->stride != y->stride ||
		    y->offset - x->offset != p->slice[b].offset - p->slice[a].offset || y->dtype != p->slice[b].dtype ||
		    x->dtype != p->slice[a].dtype)
			return false;
	}
	return true;
}

static void find_streams(struct fixed *f)
{
	const struct plan *p = f->plan;
	uint32_t i;

	for (uint32_t field = 0; field < p->recipe.field_count; field++) {
		const struct plan_slice *slice = &p->slice[p->field_slice[field]];

		if (p->field_slice[field] == p->field_slice[field + 1])
			continue; /* lengths follow from the field that they are of */
		for (i = 0; i < f->stream_count; i++) {
			struct stream *s = &f->stream[i];
			uint64_t a = p->slice[p->field_slice[s->field[0]]].offset, stride = slice->stride;

			/* Within one record of the file: else reading both reads more. */
			if (f->schema->field[field].kind == SHARD_TENSOR &&
			    f->schema->field[s->field[0]].kind == SHARD_TENSOR &&
			    (slice->offset > a ? slice->offset - a : a - slice->offset) < stride &&
			    lies_beside(p, s->field[0], field)) {
				s->field[s->field_count++] = field;
				break;
			}
		}
		if (i == f->stream_count) {
			f->stream[i].field[0] = field;
			f->stream[i].field_count = 1;
			f->stream_count++;
		}
	}
	for (uint32_t k = 0; k < f->stream_count; k++) {
		struct stream *s = &f->stream[k];

		s->lead = s->field[0];
		for (i = 1; i < s->field_count; i++)
			if (p->slice[p->field_slice[s->field[i]]].offset < p->slice[p->field_slice[s->lead]].offset)
				s->lead = s->field[i];
		for (i = 0; i < s->field_count; i++) {
			const struct plan_slice *slice = &p->slice[p->field_slice[s->field[i]]];
			uint64_t end;

			s->start[i] = slice->offset - p->slice[p->field_slice[s->lead]].offset;
			end = s->start[i] + stored_field_bytes(f, s->field[i], slice);
			s->span = end > s->span ? end : s->span;
		}
		s->direct = s->field_count == 1 && f->schema->field[s->lead].kind == SHARD_TENSOR;
	}
}

struct fixed *fixed_open(const struct plan *plan, const struct shard_schema *schema,
			 const struct source_files *source_files)
{
	struct fixed *f = xcalloc(1, sizeof(*f));
	bool is_wide = false;

	f->plan = plan;
	f->schema = schema;
	f->source_files = source_files;
	f->label = shard_schema_label(schema);
	f->label_field = f->label ? (uint32_t)(f->label - schema->field) : 0;
	if (f->label && !plan->class_count) { /* may one be too large for i64? */
		for (uint64_t i = plan->field_slice[f->label_field]; i < plan->field_slice[f->label_field + 1]; i++)
			is_wide = is_wide || plan->slice[i].dtype == SHARD_U64;
		f->label = is_wide ? f->label : NULL;
	}
	find_streams(f);
	if (plan->pack) {
		f->piece = xcalloc(plan->pack->piece_max, sizeof(*f->piece));
		f->piece_raw = xcalloc(schema->field[TOKEN_PACK_TOKENS].shape[0], 8);
	}
	return f;
}

void fixed_close(struct fixed *f)
{
	if (!f)
		return;
	free(f->piece);
	free(f->piece_raw);
	scratch_free(&f->raw);
	free(f);
}

uint64_t fixed_block_records(const struct shard_schema *schema)
{
	uint64_t bytes = 0, records;
	for (uint32_t g = 0; g < schema->group_count; g++)
		bytes += schema->group[g].record_bytes;
	records = bytes ? FIXED_BLOCK_BYTES / bytes : FIXED_BLOCK_RECORDS;
	if (records > FIXED_BLOCK_RECORDS)
		records = FIXED_BLOCK_RECORDS;
	return records ? records : 1;
}

/* Zeroed: bytes between fields are never written. */
int fixed_block_open(struct fixed_block *b, const struct shard_schema *schema)
{
	uint64_t records = fixed_block_records(schema);
	struct shard_error err;

	*b = (struct fixed_block){.input_idx = xcalloc(records, sizeof(*b->input_idx)),
				  .bad = xcalloc(records, sizeof(*b->bad))};
	for (uint32_t g = 0; g < schema->group_count; g++) {
		/* Whole cache lines: some processors copy pages twice as fast into them. */
		size_t bytes = (size_t)(records * schema->group[g].record_bytes + SCRATCH_ALIGN_BYTES - 1) &
			       ~(size_t)(SCRATCH_ALIGN_BYTES - 1);

		b->group[g] = aligned_alloc(SCRATCH_ALIGN_BYTES, bytes);
		if (!b->group[g])
			exit_without_memory(bytes);
		memset(b->group[g], 0, bytes);
	}
	return shard_tally_open(&b->tally, schema, &err) == SHARD_OK ? EXIT_DONE : fail_of_library(&err);
}

void fixed_block_close(struct fixed_block *b)
{
	free(b->input_idx);
	free(b->bad);
	shard_tally_close(b->tally);
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++)
		free(b->group[g]);
	memset(b, 0, sizeof(*b));
}

/* ---- a block ---- */

static const struct plan_slice *slice_of(struct fixed *f, uint32_t field, uint64_t input_idx)
{
	const struct plan_slice *s = f->at[field];

	if (!s || input_idx < s->first || input_idx - s->first >= s->count)
		s = f->at[field] = plan_find_slice(f->plan, field, input_idx);
	return s;
}

/* Neighbours in the file from place `i` of the block on, as far as one read should go. */
static uint64_t run_of(const struct fixed_block *b, uint64_t i, const struct plan_slice *s, uint64_t span)
{
	uint64_t most = s->first + s->count - b->input_idx[i], n = 1;

	if (s->stride && span < RAW_BYTES && (RAW_BYTES - span) / s->stride + 1 < most)
		most = (RAW_BYTES - span) / s->stride + 1;
	else if (!s->stride || span >= RAW_BYTES)
		most = 1;
	while (n < most && i + n < b->place.count && b->input_idx[i + n] == b->input_idx[i] + n)
		n++;
	return n;
}

static bool fail_block(struct fixed *f, struct fixed_block *b, uint32_t file, const char *why)
{
	return verdict_set(&b->verdict, OUTCOME_FAILED, 0, "%s: %s", f->plan->file[file].path, why);
}

static bool read_bytes(const struct fixed *f, const struct stream *st, uint32_t file, uint64_t offset, void *out,
		       uint64_t bytes, char why[160])
{
	return (st->near && bytes <= COPY_BYTES &&
		source_file_copy(f->source_files, file, offset, out, (size_t)bytes)) ||
	       source_file_read(f->source_files, file, offset, out, (size_t)bytes, why, 160);
}

/* The records that come soon, if each is read alone: the processor then fetches several at once. */
static void prefetch_record(struct fixed *f, const struct fixed_block *b, const struct stream *st, uint64_t i)
{
	const struct plan_slice *s;

	if (!st->near || i >= b->place.count)
		return;
	s = slice_of(f, st->lead, b->input_idx[i]);
	source_file_prefetch(f->source_files, s->file, s->offset + (b->input_idx[i] - s->first) * s->stride,
			     span_of(f, st, s));
}

/* Records [i, i + n) of the block, from the stream that they lie side by side in. */
static bool read_run(struct fixed *f, struct fixed_block *b, const struct stream *st, uint64_t i, uint64_t n)
{
	const struct plan_slice *lead = slice_of(f, st->lead, b->input_idx[i]);
	uint64_t skip = (b->input_idx[i] - lead->first) * lead->stride, span = span_of(f, st, lead);
	uint64_t bytes = (n - 1) * lead->stride + span;
	const struct shard_field *to = &f->schema->field[st->lead];
	uint64_t record_bytes = f->schema->group[to->group].record_bytes;
	uint8_t *group[SHARD_GROUPS_MAX], *place = b->group[to->group] + i * record_bytes + to->offset;
	char why[160];
	if (to->kind == SHARD_RAGGED && bytes > lead->bytes - skip)
		bytes = lead->bytes - skip;
	if (st->direct && lead->dtype == to->dtype && (!lead->swap || shard_dtype_bytes(to->dtype) == 1) &&
	    (n == 1 || (lead->stride == record_bytes && span == record_bytes)))
		return read_bytes(f, st, lead->file, lead->offset + skip, place, bytes, why) ||
		       fail_block(f, b, lead->file, why);
	if (!scratch_reserve(&f->raw, (size_t)bytes))
		return verdict_set(&b->verdict, OUTCOME_STOP, 0, "out of memory for %" PRIu64 " bytes of %s", bytes,
				   f->plan->file[lead->file].path);
	if (!read_bytes(f, st, lead->file, lead->offset + skip, f->raw.data, bytes, why))
		return fail_block(f, b, lead->file, why);
	for (uint64_t k = 0; k < n; k++) {
		for (uint32_t g = 0; g < f->schema->group_count; g++)
			group[g] = b->group[g] + (i + k) * f->schema->group[g].record_bytes;
		for (uint32_t j = 0; j < st->field_count; j++) {
			uint32_t field = st->field[j];
			const struct plan_slice *s = slice_of(f, field, b->input_idx[i]);
			uint64_t at = k * lead->stride + st->start[j], have = stored_field_bytes(f, field, s);

			convert_field(f->schema, field, s, f->raw.data + at, have < bytes - at ? have : bytes - at,
				      group);
		}
	}
	return true;
}

/*
 * Records from all over a file that is not in memory: ask for all of them at once, so that the disk
 * has many to choose from.  Three looks tell; where all is near, asking would cost more.
 */
static void expect_stream(struct fixed *f, const struct fixed_block *b, struct stream *st)
{
	uint64_t look[] = {0, b->place.count / 2, b->place.count - 1}, n;
	bool near = true;

	for (uint64_t i = 0; i < 3; i++) {
		const struct plan_slice *s = slice_of(f, st->lead, b->input_idx[look[i]]);

		near = near && source_file_is_near(f->source_files, s->file,
						   s->offset + (b->input_idx[look[i]] - s->first) * s->stride);
	}
	st->near = near;
	for (uint64_t i = 0; !near && i < b->place.count; i += n) {
		const struct plan_slice *s = slice_of(f, st->lead, b->input_idx[i]);

		n = run_of(b, i, s, span_of(f, st, s));
		source_file_expect(f->source_files, s->file, s->offset + (b->input_idx[i] - s->first) * s->stride,
				   (n - 1) * s->stride + span_of(f, st, s));
	}
}

void fixed_record(const struct fixed_block *b, const struct shard_schema *schema, uint64_t i,
		  const void *group[SHARD_GROUPS_MAX])
{
	for (uint32_t g = 0; g < schema->group_count; g++)
		group[g] = b->group[g] + i * schema->group[g].record_bytes;
}

/* Which labels are wrong?  Count the other records. */
static void judge(struct fixed *f, struct fixed_block *b)
{
	const void *group[SHARD_GROUPS_MAX];

	for (uint64_t i = 0; i < b->place.count; i++) {
		int64_t label = 0;
		bool is_class = true;

		fixed_record(b, f->schema, i, group);
		if (f->label)
			is_class = shard_label_read(f->label, group, f->plan->class_count, &label);
		b->bad[i] = f->plan->class_count
				    ? !is_class
				    : label < 0 && slice_of(f, f->label_field, b->input_idx[i])->dtype == SHARD_U64;
		b->bad_count += b->bad[i];
		if (!b->bad[i])
			shard_tally_add(b->tally, group);
	}
}

/* ---- windows of packed documents, from where their pieces lie ---- */

/* Where a piece lies in its file. */
static uint64_t offset_of(const struct fixed *f, const struct window_piece *piece, const struct token_stream **stream)
{
	uint64_t begin = f->plan->pack->begin[piece->place];
	const struct token_stream *s = token_pack_find(f->plan->pack, begin);

	*stream = s;
	return s->offset + (begin - s->before) * shard_dtype_bytes(s->dtype);
}

/* Ask for what a window needs, if it is not in memory. */
static void expect_packed(struct fixed *f, uint64_t window)
{
	uint32_t count = window_pack_pieces(&f->plan->pack->windows, window, f->piece);
	const struct token_stream *s;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t offset = offset_of(f, &f->piece[i], &s);

		if (!i && source_file_is_near(f->source_files, s->file, offset))
			return;
		source_file_expect(f->source_files, s->file, offset, f->piece[i].length * shard_dtype_bytes(s->dtype));
	}
}

static uint8_t *field_at(const struct fixed *f, uint32_t field, uint8_t *const *group)
{
	const struct shard_field *to = &f->schema->field[field];

	return group[to->group] + to->offset;
}

/* Tokens of a piece to `out`, as the field has them. */
static bool read_piece(struct fixed *f, const struct window_piece *piece, uint8_t *out, struct verdict *v)
{
	const struct token_stream *s;
	uint64_t offset = offset_of(f, piece, &s), value;
	const struct shard_field *to = &f->schema->field[TOKEN_PACK_TOKENS];
	size_t item = shard_dtype_bytes(s->dtype), wide = shard_dtype_bytes(to->dtype), bytes = piece->length * item;
	bool as_it_lies = s->dtype == to->dtype && !s->swap;
	char why[160];

	if (!source_file_read(f->source_files, s->file, offset, as_it_lies ? out : f->piece_raw, bytes, why,
			      sizeof(why)))
		return verdict_set(v, OUTCOME_FAILED, 0, "%s: %s", f->plan->file[s->file].path, why);
	for (uint32_t i = 0; !as_it_lies && i < piece->length; i++) {
		/* The plan found that it fits; what was read then may be other bytes now. */
		value = (uint64_t)integer_load(f->piece_raw + i * item, item, false, s->swap);
		if (value >> (8 * wide))
			return verdict_set(v, OUTCOME_FAILED, 0,
					   "%s: the token at offset %" PRIu64
					   " does not fit %s any more: the file changed",
					   f->plan->file[s->file].path, offset + i * item,
					   shard_name(SHARD_NAME_DTYPE, to->dtype));
		integer_store(out + i * wide, wide, value);
	}
	return true;
}

static bool fill_packed(struct fixed *f, uint64_t window, uint8_t *const *group, struct verdict *v)
{
	const struct shard_field *field = f->schema->field;
	uint32_t count = window_pack_pieces(&f->plan->pack->windows, window, f->piece), at = 0;
	uint8_t *tokens = field_at(f, TOKEN_PACK_TOKENS, group), *lengths = field_at(f, TOKEN_PACK_LENGTHS, group);
	uint8_t *positions =
		f->schema->field_count > TOKEN_PACK_POSITIONS ? field_at(f, TOKEN_PACK_POSITIONS, group) : NULL;
	size_t wide = shard_dtype_bytes(field[TOKEN_PACK_TOKENS].dtype);

	memset(lengths, 0, field[TOKEN_PACK_LENGTHS].bytes);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t length = f->piece[i].length;

		if (!read_piece(f, &f->piece[i], tokens + at * wide, v))
			return false;
		memcpy(lengths + 4 * (size_t)i, &length, 4);
		for (uint32_t k = 0; positions && k < length; k++)
			memcpy(positions + 4 * (size_t)(at + k), &k, 4);
		at += length;
	}
	memset(tokens + at * wide, 0, field[TOKEN_PACK_TOKENS].bytes - at * wide);
	if (positions)
		memset(positions + 4 * (size_t)at, 0, field[TOKEN_PACK_POSITIONS].bytes - 4 * (size_t)at);
	memcpy(field_at(f, TOKEN_PACK_COUNT, group), &count, 4);
	return true;
}

/* The records of windows; `group` is where the first of them begins in each group, and the others follow. */
static bool fill_all_packed(struct fixed *f, const uint64_t *window, uint64_t count, uint8_t *const *group,
			    struct verdict *v)
{
	uint8_t *record[SHARD_GROUPS_MAX];

	for (uint64_t i = 0; i < count; i++)
		expect_packed(f, window[i]);
	for (uint64_t i = 0; i < count; i++) {
		for (uint32_t g = 0; g < f->schema->group_count; g++)
			record[g] = group[g] + i * f->schema->group[g].record_bytes;
		if (!fill_packed(f, window[i], record, v))
			return false;
	}
	return true;
}

/* ---- all records of a block ---- */

void fixed_fill(struct fixed *f, struct fixed_block *b)
{
	uint64_t n;

	b->bad_count = 0;
	verdict_set(&b->verdict, OUTCOME_RECORD, 0, "%s", "");
	shard_tally_move(NULL, b->tally);
	if (plan_inputs_at(f->plan, b->place.first, b->place.count, b->input_idx) != EXIT_DONE) {
		verdict_set(&b->verdict, OUTCOME_STOP, 0, "the order of its records could not be computed");
		return;
	}
	if (f->piece && !fill_all_packed(f, b->input_idx, b->place.count, b->group, &b->verdict))
		return;
	for (uint32_t s = 0; s < f->stream_count; s++)
		expect_stream(f, b, &f->stream[s]);
	for (uint32_t s = 0; s < f->stream_count; s++)
		for (uint64_t i = 0; i < b->place.count; i += n) {
			const struct plan_slice *lead = slice_of(f, f->stream[s].lead, b->input_idx[i]);

			n = run_of(b, i, lead, span_of(f, &f->stream[s], lead));
			if (n == 1)
				prefetch_record(f, b, &f->stream[s], i + AHEAD);
			if (!read_run(f, b, &f->stream[s], i, n))
				return;
		}
	judge(f, b);
}

void fixed_explain(const struct fixed *f, const struct fixed_block *b, uint64_t i, struct verdict *out)
{
	const struct plan_slice *s = plan_find_slice(f->plan, f->label_field, b->input_idx[i]);
	uint64_t offset = s->offset + (b->input_idx[i] - s->first) * s->stride;
	const void *group[SHARD_GROUPS_MAX];
	int64_t label;

	fixed_record(b, f->schema, i, group);
	shard_label_read(f->label, group, f->plan->class_count, &label);
	if (!f->plan->class_count)
		verdict_set(out, OUTCOME_BAD, SHARD_MISS_DAMAGED,
			    "label %" PRIu64 " at offset %" PRIu64 " of %s; the limit is %" PRId64, (uint64_t)label,
			    offset, f->plan->file[s->file].path, INT64_MAX);
	else
		verdict_set(out, OUTCOME_BAD, SHARD_MISS_DAMAGED,
			    "label %" PRId64 " at offset %" PRIu64 " of %s; there are %" PRIu64 " classes, from 0",
			    label, offset, f->plan->file[s->file].path, f->plan->class_count);
}

bool fixed_keep(const struct fixed *f, const struct fixed_block *b, uint64_t i, const char *quarantine,
		const char *path, struct verdict *v)
{
	const struct shard_schema *s = f->schema;
	uint8_t *bytes;
	size_t n = 0;
	bool kept;

	for (uint32_t k = 0; k < s->field_count; k++)
		n += s->field[k].bytes;
	bytes = xmalloc(n, 1);
	n = 0;
	for (uint32_t k = 0; k < s->field_count; k++) {
		const struct shard_field *field = &s->field[k];

		memcpy(bytes + n, b->group[field->group] + i * s->group[field->group].record_bytes + field->offset,
		       field->bytes);
		n += field->bytes;
	}
	kept = quarantine_keep(quarantine, path, bytes, n, v->message, sizeof(v->message));
	free(bytes);
	return kept;
}
