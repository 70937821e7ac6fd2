/* SPDX-License-Identifier: Apache-2.0 */
/*
 * converter.c - one input of the plan to one record, or to the reason why not
 */
#include "tools/shardpack/make/make.h"

#include <stdlib.h>

#include "shard_inspect.h"
#include "tools/shardpack/images/image.h"
#include "tools/shardpack/input/source_times.h"

struct converter {
	const struct plan *plan; /* const after open, and so are the next five */
	struct shard_schema schema;
	int source_fd;
	const struct stored *stored;
	const struct source_times *times; /* or NULL */
	const struct quarantine *quarantine;
	struct pictures pictures;
	struct record_fields *fields;
	struct scratch file; /* the bytes of the input */
};

/* Where the small group of a record of images begins, behind the large one. */
static size_t meta_offset(const struct shard_schema *s)
{
	return ((size_t)s->group[0].record_bytes + SCRATCH_ALIGN_BYTES - 1) & ~(size_t)(SCRATCH_ALIGN_BYTES - 1);
}

size_t converter_record_bytes(const struct shard_schema *s)
{
	return meta_offset(s) + (size_t)s->group[1].record_bytes;
}

struct converter *converter_open(const struct plan *plan, int source_fd, const struct stored *stored,
				 const struct source_times *times, const struct quarantine *quarantine,
				 struct budget *budget, struct sandbox *sandbox)
{
	struct converter *c = calloc(1, sizeof(*c));
	struct shard_error err;

	if (!c)
		return NULL;
	recipe_schema(&plan->recipe, &c->schema, &err); /* it has one, or there was no plan */
	c->plan = plan;
	c->source_fd = source_fd;
	c->stored = stored;
	c->times = times;
	c->quarantine = quarantine;
	if (pictures_open(&c->pictures, &plan->recipe, budget, sandbox))
		c->fields = record_fields_open(plan, &c->schema, source_fd, stored, times, &c->pictures);
	if (c->fields)
		return c;
	converter_close(c);
	return NULL;
}

void converter_close(struct converter *c)
{
	if (!c)
		return;
	pictures_close(&c->pictures);
	record_fields_close(c->fields);
	scratch_free(&c->file);
	free(c);
}

/* Say in the record which damage was accepted. */
static void put_damage(const struct converter *c, const struct result *r)
{
	const struct shard_field *f = recipe_damage(&c->plan->recipe, &c->schema);

	if (f)
		r->meta[f->offset] = (uint8_t)r->verdict.reason;
}

/* The input's bytes are at hand: make the record. */
static void convert(struct converter *c, struct result *r)
{
	const uint8_t *data = c->file.data;
	uint64_t bytes = r->input.source_bytes;
	struct picture made = {0};
	struct record_image image = {.is_held = c->file.capacity_bytes > BUDGET_SMALL_BYTES};

	if (!text_is_name(r->path, r->path_bytes, SHARD_KEY_BYTES_MAX)) {
		verdict_set(&r->verdict, OUTCOME_BAD, SHARD_MISS_KEY,
			    "the path becomes the record's key, so it must be UTF-8 of at most %d bytes; it has %zu",
			    SHARD_KEY_BYTES_MAX, r->path_bytes);
		return;
	}
	if (!pictures_make(&c->pictures, PICTURES_IMAGE, 1, data, bytes, r->record, &made, &r->verdict))
		return;
	image.width = made.width;
	image.height = made.height;
	image.orientation = made.orientation;
	image.stated = made.stated;
	fit_count_image(&r->fit, &c->plan->recipe.transform, made.width, made.height);
	if (!record_fields_put(c->fields, &image, r))
		return;
	fit_count_dropped(&r->fit, r->verdict.dropped, r->ordinal);
	put_damage(c, r);
	r->verdict.outcome = OUTCOME_RECORD;
}

/* A bad input, with all that belongs to it. */
static void keep(struct converter *c, struct result *r)
{
	struct verdict *v = &r->verdict;

	char path[PLAN_PATH_BYTES_MAX]; /* rows of one file share its copy */

	plan_input_file(&r->input, path);
	if (quarantine_keep(c->quarantine, path, c->file.data, r->input.source_bytes, v->message, sizeof(v->message)))
		record_fields_keep(c->fields, c->quarantine, r);
	else
		v->outcome = OUTCOME_STOP;
}

/*
 * The plan knows that it is bad, so it is not read for a verdict.  Quarantine gets what there is of
 * it; a file that has gone meanwhile leaves nothing to keep.
 */
static void take_known(struct converter *c, const struct input_bytes *in, struct result *r)
{
	struct verdict reading = {.message = ""};

	verdict_set(&r->verdict, OUTCOME_BAD, r->input.bad_reason, "%s", "");
	plan_bad_message(&r->input, r->verdict.message);
	if (!c->quarantine || !in->bytes)
		return;
	pictures_claim_file(&c->pictures, in->bytes);
	if (!input_bytes_read(in, c->source_fd, c->stored, &c->file, &reading)) {
		if (reading.outcome == OUTCOME_FAILED || reading.outcome == OUTCOME_STOP)
			r->verdict = reading;
	} else if (!quarantine_keep(c->quarantine, r->path, c->file.data, in->bytes, r->verdict.message,
				    sizeof(r->verdict.message))) {
		r->verdict.outcome = OUTCOME_STOP;
	}
}

/* What is kept from input to input is small. */
static void shrink(struct converter *c)
{
	if (c->file.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&c->file);
	record_fields_shrink(c->fields);
	pictures_give_back(&c->pictures);
}

/* A look has no use for an image that states nothing. */
static void run(struct converter *c, struct result *r, bool look)
{
	char path[PLAN_PATH_BYTES_MAX];
	struct input_bytes in;
	bool have_bytes;

	r->verdict.message[0] = r->verdict.first[0] = '\0';
	r->verdict.reason = r->verdict.dropped = 0;
	r->fit = (struct fit_count){0};
	r->undecided = 0;
	r->meta = r->record + meta_offset(&c->schema);
	plan_input(c->plan, plan_input_at(c->plan, r->ordinal), &r->input);
	r->path_bytes = plan_input_path(c->plan, &r->input, r->path);
	plan_input_file(&r->input, path);
	in = (struct input_bytes){path, r->input.file, r->input.offset, r->input.source_bytes,
				  c->times ? source_time_of_input(c->times, r->input.input_idx, 0) : SOURCE_NO_TIME};
	if (r->input.bad_reason) {
		take_known(c, &in, r);
		shrink(c);
		return;
	}
	pictures_claim_file(&c->pictures, in.bytes);
	have_bytes = input_bytes_read(&in, c->source_fd, c->stored, &c->file, &r->verdict) &&
		     input_bytes_same_build(c->plan, c->file.data, in.bytes, &r->verdict);
	if (have_bytes && (!look || pictures_may_state(&c->pictures, c->file.data, in.bytes)))
		convert(c, r);
	if (r->verdict.outcome == OUTCOME_BAD && have_bytes && c->quarantine)
		keep(c, r);
	shrink(c);
}

void converter_run(struct converter *c, struct result *r)
{
	run(c, r, false);
}

bool converter_is_undecided(struct converter *c, struct result *r)
{
	run(c, r, true);
	return r->undecided;
}
