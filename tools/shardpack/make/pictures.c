/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pictures.c - pictures from bytes to records, within a share of the memory for large ones
 */
#include "tools/shardpack/make/make.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tools/shardpack/sandbox/sandbox.h"

/* ---- memory for large images, shared by all workers ---- */

void budget_init(struct budget *b)
{
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->given, NULL);
	b->used = 0;
}

void budget_destroy(struct budget *b)
{
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->given);
}

void budget_take(struct budget *b, uint64_t bytes)
{
	pthread_mutex_lock(&b->lock);
	while (b->used && (b->used > BUDGET_BYTES || bytes > BUDGET_BYTES - b->used))
		pthread_cond_wait(&b->given, &b->lock);
	b->used += bytes;
	pthread_mutex_unlock(&b->lock);
}

void budget_give(struct budget *b, uint64_t bytes)
{
	pthread_mutex_lock(&b->lock);
	b->used -= bytes;
	pthread_cond_broadcast(&b->given);
	pthread_mutex_unlock(&b->lock);
}

/* ---- the pictures of one thread ---- */

/* The picture at hand needs this much; the first claim holds to its end. */
static void claim(void *context, uint64_t bytes)
{
	struct pictures *p = context;

	if ((!p->budget && !p->is_inside) || p->claimed_bytes || bytes <= BUDGET_SMALL_BYTES)
		return;
	if (p->is_inside)
		sandbox_ask(bytes);
	else
		budget_take(p->budget, bytes);
	p->claimed_bytes = bytes;
}

void pictures_claim_file(struct pictures *p, uint64_t bytes)
{
	if (bytes > BUDGET_SMALL_BYTES)
		claim(p, bytes > BUDGET_BYTES ? bytes : BUDGET_BYTES);
}

/*
 * What the decoder asks for itself, which it does before the size of the image is known to others:
 * at least 2 bytes for each of its pixels, and the turned image has 3.  The first claim must do for
 * both.
 */
static void claim_decoder(void *context, uint64_t bytes)
{
	struct pictures *p = context;

	claim(p, p->turning ? bytes * 5 / 2 : bytes);
}

void pictures_give_back(struct pictures *p)
{
	if (p->turn.pixels.capacity_bytes > BUDGET_SMALL_BYTES)
		turn_free(&p->turn);
	if (p->claimed_bytes && p->budget)
		budget_give(p->budget, p->claimed_bytes);
	p->claimed_bytes = 0;
}

bool pictures_open(struct pictures *p, const struct recipe *r, struct budget *budget, struct sandbox *sandbox)
{
	const struct limits *l = &r->limits;
	struct shard_error err;
	bool ok;

	*p = (struct pictures){.budget = budget,
			       .recipe = r,
			       .applies_exif = r->exif == EXIF_APPLY,
			       .rules = r->transform.pixels == RESIZE_PILLOW_13 ? EXIF_RULES_PILLOW_13
										: EXIF_RULES_PILLOW_12,
			       .turn = {.claim = claim, .context = p}};
	recipe_schema(r, &p->schema, &err); /* it has one, or there was no plan */
	p->image = transform_open(&r->transform);
	ok = p->image != NULL;
	for (uint32_t i = 0; ok && i < r->field_count; i++) {
		const struct field_source *s = &r->from[i];

		if (s->kind == FIELD_IMAGE) {
			p->transform[i] = transform_open(&s->transform);
			ok = p->transform[i] != NULL;
		} else if (s->kind == FIELD_MASK) {
			p->mask[i] = mask_open(&r->transform, (uint32_t)shard_dtype_bytes(r->field[i].dtype), s->fill);
			ok = p->mask[i] != NULL;
		}
	}
	if (!ok)
		return false;
	if (sandbox) {
		p->worker = sandbox_worker_open(sandbox);
		return p->worker != NULL;
	}
	p->decoder = decoder_open(&(struct decode_options){.max_pixels = limits_most(l, LIMIT_PIXELS),
							   .max_side = (uint32_t)limits_most(l, LIMIT_SIDE),
							   .max_scans = (uint32_t)limits_most(l, LIMIT_SCANS),
							   .max_frames = (uint32_t)limits_most(l, LIMIT_FRAMES),
							   .max_memory_bytes = limits_most(l, LIMIT_MEMORY),
							   .accept = (enum decode_accept)r->accept,
							   .claim = claim_decoder,
							   .context = p});
	return p->decoder != NULL;
}

void pictures_close(struct pictures *p)
{
	sandbox_worker_close(p->worker);
	decoder_close(p->decoder);
	turn_free(&p->turn);
	transform_close(p->image);
	for (uint32_t i = 0; i < SHARD_FIELDS_MAX; i++) {
		transform_close(p->transform[i]);
		mask_close(p->mask[i]);
	}
}

/* ---- in this process ---- */

/* 0 if the file states none, or the recipe does not ask; of a TIFF Pillow asks. */
static bool find_stated(const struct pictures *p, const uint8_t *data, uint64_t bytes, uint32_t *stated,
			struct verdict *v)
{
	*stated = 0;
	if ((!p->applies_exif && !image_is_always_turned(data, bytes)) || image_stated(data, bytes, p->rules, stated))
		return true;
	return verdict_set(v, OUTCOME_STOP, 0, "out of memory while its orientation was looked for");
}

/* The file of an image, which is not to be turned, states that it lies otherwise. */
static bool note_stated(const struct pictures *p, const uint8_t *data, uint64_t bytes, uint32_t *stated,
			struct verdict *v)
{
	*stated = 0;
	if (p->applies_exif || image_is_always_turned(data, bytes))
		return true;
	if (!image_stated(data, bytes, p->rules, stated))
		return verdict_set(v, OUTCOME_STOP, 0, "out of memory while its orientation was looked for");
	if (*stated > 1)
		v->dropped |= 1u << DROPPED_ORIENTATION;
	else
		*stated = 0;
	return true;
}

bool pictures_may_state(const struct pictures *p, const uint8_t *data, uint64_t bytes)
{
	struct verdict v = {.dropped = 0};
	uint32_t stated;

	return p->worker || !note_stated(p, data, bytes, &stated, &v) || stated;
}

bool pictures_orientation_of(const struct pictures *p, uint32_t turn, uint32_t of, const uint8_t *data, uint64_t bytes,
			     uint32_t *orientation, struct verdict *v)
{
	*orientation = turn == TURN_IMAGE ? of : 1;
	if (turn == TURN_IMAGE || turn == TURN_NONE)
		return true;
	if (!find_stated(p, data, bytes, orientation, v))
		return false;
	if (!*orientation && turn == TURN_UNSAID && of != 1)
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_UNSUPPORTED,
				   "has no orientation %s, and its image has %" PRIu32 "; with --exif apply, say "
				   "turn=image if it lies as that file does, or turn=none if it is upright",
				   p->applies_exif ? "in EXIF or XMP" : "that is read without --exif apply", of);
	if (!*orientation)
		*orientation = 1;
	return true;
}

static bool make_here(struct pictures *p, uint32_t field, uint32_t of, const uint8_t *data, uint64_t bytes,
		      uint8_t *dst, struct picture *made, struct verdict *v)
{
	const struct field_source *s = &p->recipe->from[field == PICTURES_IMAGE ? 0 : field];
	struct transform *t = field == PICTURES_IMAGE ? p->image : p->transform[field];
	bool wide = field == PICTURES_IMAGE ? p->recipe->transform.wide : s->transform.wide;
	const struct image_sink *sink;
	const struct shard_field *f;
	struct mask_codes codes;
	struct decode_verdict said;
	enum decode_status status;

	if (field == PICTURES_IMAGE ? !find_stated(p, data, bytes, &made->orientation, v)
				    : !pictures_orientation_of(p, s->turn, of, data, bytes, &made->orientation, v))
		return false;
	if (!made->orientation) /* the file states none, or the recipe does not ask */
		made->orientation = 1;
	if (!t) { /* a mask */
		f = &p->schema.field[recipe_first(p->recipe) + field];
		codes = (struct mask_codes){(uint32_t)shard_dtype_bytes(f->dtype), s->map.count ? &s->map : NULL};
		sink = mask_sink(p->mask[field], made->orientation, dst);
		status = decoder_stream(p->decoder, DECODE_MASK, field_is_coded(f, s) ? &codes : NULL, data, bytes,
					sink, &said);
		if (!verdict_of_decoder(v, status, &said))
			return false;
		mask_source_size(p->mask[field], &made->width, &made->height);
		return true;
	}
	sink = transform_sink(t, dst);
	p->turning = made->orientation != 1;
	if (p->turning)
		sink = turn_sink(&p->turn, made->orientation, wide, sink);
	status = decoder_stream(p->decoder, wide ? DECODE_WIDE : DECODE_RGB, NULL, data, bytes, sink, &said);
	if (status == DECODE_OK && p->turning && !turn_finish(&p->turn))
		status = DECODE_NO_MEMORY;
	if (status == DECODE_OK)
		transform_finish(t);
	p->turning = false;
	if (!verdict_of_decoder(v, status, &said))
		return false;
	transform_source_size(t, &made->width, &made->height);
	return note_stated(p, data, bytes, &made->stated, v);
}

/* ---- in a sandbox ---- */

/* What is asked of its process, and what it answers. */
struct picture_job {
	uint32_t field, of;
	struct picture made;
	struct verdict verdict;
	bool ok;
};

/* Beside the image: what decoders of large images hold, several times over. */
#define SANDBOX_BYTES	    (UINT64_C(256) << 20)
#define SANDBOX_PIXEL_BYTES 24

/* The slowest that is legitimate has all scans of all pixels: 240 s for the limits by default. */
#define SANDBOX_SECONDS		  60
#define SANDBOX_PIXELS_PER_SECOND 50000000

static uint64_t sandbox_bytes(const struct recipe *r)
{
	uint64_t pixels = limits_most(&r->limits, LIMIT_PIXELS), memory = limits_most(&r->limits, LIMIT_MEMORY);

	if (memory > (uint64_t)INT64_MAX / 2)
		memory = (uint64_t)INT64_MAX / 2;
	return SANDBOX_BYTES + memory + pixels * SANDBOX_PIXEL_BYTES;
}

static void *begin_inside(void *context)
{
	struct pictures *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	if (!pictures_open(p, context, NULL, NULL))
		return NULL; /* this process ends now */
	p->is_inside = true;
	return p;
}

static void work_inside(void *own, void *message, const uint8_t *in, size_t in_bytes, uint8_t *out)
{
	struct pictures *p = own;
	struct picture_job *job = message;

	job->ok = make_here(p, job->field, job->of, in, in_bytes, out, &job->made, &job->verdict);
	pictures_give_back(p);
}

int pictures_sandbox(struct sandbox **out, const struct recipe *r)
{
	union {
		const struct recipe *given;
		void *taken; /* it is only read */
	} recipe = {r};
	double seconds = (double)limits_most(&r->limits, LIMIT_PIXELS) * (double)limits_most(&r->limits, LIMIT_SCANS) /
			 SANDBOX_PIXELS_PER_SECOND;
	struct sandbox_options opt = {.begin = begin_inside,
				      .work = work_inside,
				      .context = recipe.taken,
				      .message_bytes = sizeof(struct picture_job),
				      .memory_bytes = sandbox_bytes(r),
				      .seconds = SANDBOX_SECONDS + (seconds < 1e6 ? (unsigned)seconds : 1000000)};
	struct shard_schema schema;
	struct shard_error err;

	_Static_assert(sizeof(struct picture_job) <= SANDBOX_MESSAGE_BYTES, "what a message of a sandbox holds");
	recipe_schema(r, &schema, &err);
	for (uint32_t i = 0; i < schema.field_count; i++)
		if (schema.field[i].bytes > opt.out_bytes)
			opt.out_bytes = (size_t)schema.field[i].bytes;
	return sandbox_open(out, &opt);
}

/* Can it be what a decoder of ours would say? */
static bool is_answer(const struct pictures *p, struct picture_job *job)
{
	const struct picture *m = &job->made;
	struct verdict *v = &job->verdict;

	v->message[sizeof(v->message) - 1] = v->first[sizeof(v->first) - 1] = '\0';
	if (v->reason > SHARD_MISS_KEY || v->dropped >> DROPPED_COUNT)
		return false;
	if (!job->ok)
		return v->outcome == OUTCOME_STOP || (v->outcome == OUTCOME_BAD && v->reason);
	return m->width && m->height && m->width <= DECODE_SIDE_MAX && m->height <= DECODE_SIDE_MAX && m->orientation &&
	       m->orientation <= 8 && m->stated <= 8 && (!v->reason || p->recipe->accept) &&
	       (job->field != PICTURES_IMAGE || transform_has_geometry(&p->recipe->transform, m->width, m->height));
}

/*
 * It had no memory: because of its limit, or because the system has none?  Half of the limit is
 * near it: either what was there or what was asked for in addition is at least that much, or both
 * would have fitted.
 */
static bool judge_memory(const struct pictures *p, struct verdict *v)
{
	uint64_t bytes = sandbox_bytes(p->recipe);
	void *all = MAP_FAILED;

	if (sandbox_took_memory(p->worker))
		all = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return verdict_set(v, OUTCOME_STOP, 0, "out of memory while it was decoded");
	munmap(all, (size_t)bytes);
	return verdict_set(v, OUTCOME_BAD, SHARD_MISS_LIMIT,
			   "needs more than the %" PRIu64 " bytes of memory that --sandbox gives to an image; --limit "
			   "memory=N allows more",
			   bytes);
}

static bool make_inside(struct pictures *p, uint32_t field, uint32_t of, const uint8_t *data, uint64_t bytes,
			uint8_t *dst, struct picture *made, struct verdict *v)
{
	const struct shard_field *f =
		&p->schema.field[field == PICTURES_IMAGE ? RECIPE_IMAGE : recipe_first(p->recipe) + field];
	char why[200] = "";
	struct picture_job job;
	struct sandbox_job run = {.message = &job,
				  .in = data,
				  .in_bytes = (size_t)bytes,
				  .out = dst,
				  .out_bytes = (size_t)f->bytes,
				  .asked = claim,
				  .context = p,
				  .why = why,
				  .why_bytes = sizeof(why)};
	enum sandbox_end end;

	do {
		job = (struct picture_job){.field = field, .of = of, .verdict = *v};
		end = sandbox_run(p->worker, &run);
	} while (end == SANDBOX_DONE && !job.ok && job.verdict.outcome == OUTCOME_STOP && sandbox_renew(p->worker));
	if (end == SANDBOX_STOPPED)
		return verdict_set(v, OUTCOME_STOP, 0, "%s", why);
	if (end == SANDBOX_FAULT)
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_DECODE, "%s", why);
	job.field = field;
	if (!is_answer(p, &job))
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_DECODE,
				   "its decoder gave an answer that no decoder of an image gives");
	if (!job.ok && job.verdict.outcome == OUTCOME_STOP)
		return judge_memory(p, v);
	*v = job.verdict;
	*made = job.made;
	return job.ok;
}

bool pictures_make(struct pictures *p, uint32_t field, uint32_t of, const uint8_t *data, uint64_t bytes, uint8_t *dst,
		   struct picture *made, struct verdict *v)
{
	return p->worker ? make_inside(p, field, of, data, bytes, dst, made, v)
			 : make_here(p, field, of, data, bytes, dst, made, v);
}
