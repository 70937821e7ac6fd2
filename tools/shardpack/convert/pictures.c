/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pictures.c - pictures from bytes to records, within a share of the memory for large ones
 */
#include "tools/shardpack/convert/pictures.h"
#include "shard_pack.h"

#include <inttypes.h>

#include "tools/shardpack/convert/budget.h"
#include "tools/shardpack/convert/verdict.h"
#include "tools/shardpack/decode/decode.h"
#include "tools/shardpack/image/mask.h"
#include "tools/shardpack/image/transform_image.h"
#include "tools/shardpack/plan/recipe.h"

/* The picture at hand needs this much; the first claim holds to its end. */
static void claim(void *context, uint64_t bytes)
{
	struct pictures *p = context;

	if (!p->budget || p->claimed_bytes || bytes <= BUDGET_SMALL_BYTES)
		return;
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
	if (p->claimed_bytes)
		budget_give(p->budget, p->claimed_bytes);
	p->claimed_bytes = 0;
}

bool pictures_open(struct pictures *p, const struct recipe *r, struct budget *budget)
{
	const struct limits *l = &r->limits;

	*p = (struct pictures){.budget = budget,
			       .applies_exif = r->exif == EXIF_APPLY,
			       .rules = r->transform.pixels == RESIZE_PILLOW_13 ? EXIF_RULES_PILLOW_13
										: EXIF_RULES_PILLOW_12,
			       .turn = {.claim = claim, .context = p}};
	p->decoder = decoder_open(&(struct decode_options){.max_pixels = limits_most(l, LIMIT_PIXELS),
							   .max_side = (uint32_t)limits_most(l, LIMIT_SIDE),
							   .max_scans = (uint32_t)limits_most(l, LIMIT_SCANS),
							   .max_memory_bytes = limits_most(l, LIMIT_MEMORY),
							   .accept = (enum decode_accept)r->accept,
							   .claim = claim_decoder,
							   .context = p});
	return p->decoder != NULL;
}

void pictures_close(struct pictures *p)
{
	decoder_close(p->decoder);
	turn_free(&p->turn);
}

/* 0 if the file states none, or the recipe does not ask. */
static bool find_stated(const struct pictures *p, const uint8_t *data, uint64_t bytes, uint32_t *stated,
			struct verdict *v)
{
	*stated = 0;
	if (!p->applies_exif || exif_stated(data, bytes, p->rules, stated))
		return true;
	return verdict_set(v, OUTCOME_STOP, 0, "out of memory while its orientation was looked for");
}

bool pictures_orientation(const struct pictures *p, const uint8_t *data, uint64_t bytes, uint32_t *orientation,
			  struct verdict *v)
{
	bool ok = find_stated(p, data, bytes, orientation, v);

	if (!*orientation)
		*orientation = 1;
	return ok;
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
				   "has no orientation in EXIF or XMP, and its image has %" PRIu32 "; say turn=image "
				   "if it lies as that file does, or turn=none if it is upright",
				   of);
	if (!*orientation)
		*orientation = 1;
	return true;
}

bool pictures_image(struct pictures *p, struct transform *t, const uint8_t *data, uint64_t bytes, uint32_t orientation,
		    uint8_t *dst, struct verdict *v)
{
	const struct image_sink *sink = transform_sink(t, dst);
	struct decode_verdict said;
	enum decode_status status;

	p->turning = orientation != 1;
	if (p->turning)
		sink = turn_sink(&p->turn, orientation, sink);
	status = decoder_stream(p->decoder, data, bytes, sink, &said);
	if (status == DECODE_OK && p->turning && !turn_finish(&p->turn))
		status = DECODE_NO_MEMORY;
	if (status == DECODE_OK)
		transform_finish(t);
	p->turning = false;
	return verdict_of_decoder(v, status, &said);
}

bool pictures_mask(struct pictures *p, struct mask *m, const uint8_t *data, uint64_t bytes, uint32_t orientation,
		   uint8_t *dst, struct verdict *v)
{
	struct decode_verdict said;
	const struct image_sink *sink = mask_sink(m, orientation, dst);

	return verdict_of_decoder(v, decoder_mask(p->decoder, data, bytes, sink, &said), &said);
}
