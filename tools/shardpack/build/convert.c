/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - one input of the plan to one record, or to the reason why not
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shardpack/build/budget.h"
#include "tools/shardpack/build/convert_private.h"
#include "tools/shardpack/format/exif.h"
#include "tools/shardpack/build/quarantine.h"

/* Where the small group of a record of images begins, behind the large one. */
static size_t meta_offset(const struct shard_schema *s)
{
	return ((size_t)s->group[0].record_bytes + SCRATCH_ALIGN_BYTES - 1) & ~(size_t)(SCRATCH_ALIGN_BYTES - 1);
}

/* The picture at hand needs this much; the first claim holds to its end. */
static void claim(void *context, uint64_t bytes)
{
	struct converter *c = context;

	if (!c->budget || c->claimed_bytes || bytes <= BUDGET_SMALL_BYTES)
		return;
	budget_take(c->budget, bytes);
	c->claimed_bytes = bytes;
}

void convert_claim(struct converter *c, uint64_t bytes)
{
	if (bytes > BUDGET_SMALL_BYTES)
		claim(c, bytes > BUDGET_BYTES ? bytes : BUDGET_BYTES);
}

/*
 * What the decoder asks for itself, which it does before the size of the image is known to others: at least 2 bytes for
 * each of its pixels, and the turned image has 3.  The first claim must do for both.
 */
static void claim_decoder(void *context, uint64_t bytes)
{
	struct converter *c = context;

	claim(c, c->turning ? bytes * 5 / 2 : bytes);
}

static void give_back(struct converter *c)
{
	if (c->turn.pixels.capacity_bytes > BUDGET_SMALL_BYTES)
		turn_free(&c->turn);
	if (c->claimed_bytes)
		budget_give(c->budget, c->claimed_bytes);
	c->claimed_bytes = 0;
}

void convert_next_picture(struct converter *c)
{
	if (c->file.capacity_bytes <= BUDGET_SMALL_BYTES)
		give_back(c);
}

/* What is kept from input to input is small. */
static void unclaim(struct converter *c)
{
	if (c->file.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&c->file);
	if (c->part.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&c->part);
	give_back(c);
}

struct converter *converter_open(const struct plan *plan, int source_fd, const struct stored *stored,
				 const struct quarantine *quarantine, struct budget *budget)
{
	struct converter *c = calloc(1, sizeof(*c));
	const struct limits *limits = &plan->recipe.limits;
	struct shard_error err;
	bool ok;

	if (!c)
		return NULL;
	recipe_schema(&plan->recipe, &c->schema, &err); /* whoever has a plan saw that there is one */
	c->plan = plan;
	c->source_fd = source_fd;
	c->stored = stored;
	c->quarantine = quarantine;
	c->budget = budget;
	c->decoder = decoder_open(&(struct decode_options){.max_pixels = limits_most(limits, LIMIT_PIXELS),
							      .max_side = (uint32_t)limits_most(limits, LIMIT_SIDE),
							      .max_scans = (uint32_t)limits_most(limits, LIMIT_SCANS),
							      .max_memory_bytes = limits_most(limits, LIMIT_MEMORY),
							      .accept = (enum decode_accept)plan->recipe.accept,
							      .claim = claim_decoder, .context = c});
	c->transform = transform_open(&plan->recipe.transform);
	c->turn.claim = claim;
	c->turn.context = c;
	ok = c->decoder && c->transform;
	for (uint32_t i = 0; ok && i < plan->recipe.field_count; i++) {
		const struct field_source *s = &plan->recipe.from[i];

		if (s->kind == FIELD_IMAGE)
			ok = (c->of_field[i] = transform_open(&s->transform)) != NULL;
		else if (s->kind == FIELD_MASK)
			ok = (c->mask[i] = mask_open(&plan->recipe.transform, s->fill)) != NULL;
	}
	if (!ok) {
		converter_close(c);
		return NULL;
	}
	return c;
}

void converter_close(struct converter *c)
{
	if (!c)
		return;
	decoder_close(c->decoder);
	transform_close(c->transform);
	for (uint32_t i = 0; i < SHARD_FIELDS_MAX; i++) {
		transform_close(c->of_field[i]);
		mask_close(c->mask[i]);
	}
	turn_free(&c->turn);
	scratch_free(&c->file);
	scratch_free(&c->part);
	free(c);
}

void convert_set(struct result *r, enum outcome outcome, uint32_t reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
	r->outcome = outcome;
	r->reason = reason;
}

size_t converter_record_bytes(const struct shard_schema *s)
{
	return meta_offset(s) + (size_t)s->group[1].record_bytes;
}

uint32_t convert_orientation(const struct converter *c, const uint8_t *data, uint64_t bytes)
{
	return c->plan->recipe.exif == EXIF_APPLY ? exif_orientation(data, bytes) : 1;
}

static enum decode_status decode(struct converter *c, struct transform *t, const uint8_t *data, uint64_t bytes,
				 uint32_t orientation, uint8_t *dst, struct decode_verdict *verdict)
{
	const struct image_sink *sink = transform_sink(t, dst);
	enum decode_status status;

	c->turning = orientation != 1;
	if (c->turning)
		sink = turn_sink(&c->turn, orientation, sink);
	status = decoder_stream(c->decoder, data, bytes, sink, verdict);
	if (status == DECODE_OK && c->turning && !turn_finish(&c->turn))
		status = DECODE_NO_MEMORY;
	if (status == DECODE_OK)
		transform_finish(t);
	c->turning = false;
	return status;
}

bool convert_status(struct result *r, enum decode_status status, const struct decode_verdict *v)
{
	if (status == DECODE_BAD_INPUT)
		convert_set(r, OUTCOME_BAD, (uint32_t)v->reason, "%s", v->message);
	else if (status != DECODE_OK)
		convert_set(r, OUTCOME_STOP, 0, "out of memory while it was decoded");
	else if (v->reason && !r->reason)
		convert_set(r, OUTCOME_RECORD, (uint32_t)v->reason, "%s", v->message);
	return status == DECODE_OK;
}

bool convert_image(struct converter *c, struct result *r, struct transform *t, const struct scratch *from, uint64_t bytes,
		   uint32_t orientation, uint8_t *dst)
{
	struct decode_verdict verdict;

	return convert_status(r, decode(c, t, from->data, bytes, orientation, dst, &verdict), &verdict);
}

/* Say in the record which damage was accepted. */
static void put_damage(const struct converter *c, const struct result *r)
{
	const struct shard_field *f = recipe_damage(&c->plan->recipe, &c->schema);

	if (f)
		r->meta[f->offset] = (uint8_t)r->reason;
}

/* The input's bytes are at hand: make the record. */
static void convert(struct converter *c, struct result *r)
{
	if (!text_is_name(r->path, r->path_bytes, SHARD_KEY_BYTES_MAX)) {
		convert_set(r, OUTCOME_BAD, SHARD_MISS_KEY,
			    "the path becomes the record's key, so it must be UTF-8 of at most %d bytes; it has %zu",
			    SHARD_KEY_BYTES_MAX, r->path_bytes);
		return;
	}
	c->orientation = convert_orientation(c, c->file.data, r->input.source_bytes);
	if (!convert_image(c, r, c->transform, &c->file, r->input.source_bytes, c->orientation, r->record) || !convert_fields(c, r))
		return;
	put_damage(c, r);
	r->outcome = OUTCOME_RECORD;
}

/* A bad input, with all that belongs to it. */
static void keep(struct converter *c, struct result *r)
{
	if (!quarantine_keep(c->quarantine, r->path, c->file.data, r->input.source_bytes, r->message, sizeof(r->message)))
		r->outcome = OUTCOME_STOP;
	else
		convert_keep_fields(c, r);
}

void converter_run(struct converter *c, struct result *r)
{
	struct input_bytes in;
	bool have_bytes;

	r->message[0] = '\0';
	r->reason = 0;
	r->meta = r->record + meta_offset(&c->schema);
	r->input_idx = plan_input_at(c->plan, r->ordinal);
	plan_input(c->plan, r->input_idx, &r->input);
	r->path_bytes = plan_input_path(c->plan, &r->input, r->path);
	in = (struct input_bytes){r->path, r->input.file, r->input.offset, r->input.source_bytes};
	have_bytes = convert_read(c, r, &in, &c->file);
	if (have_bytes)
		convert(c, r);
	if (r->outcome == OUTCOME_BAD && have_bytes && c->quarantine)
		keep(c, r);
	unclaim(c);
}
