/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif_decision.c - an image that lies on its side, and boxes or masks that have their place in it
 */
#include "tools/shardpack/make/make.h"

#include <stdlib.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardpack/sandbox/sandbox.h"

#define LOOK_INPUTS 1000
#define LOOK_BYTES  (UINT64_C(256) << 20)

static bool is_asked(const struct job *job)
{
	const struct recipe *recipe = &job->plan->recipe;
	bool lies = false;

	for (uint32_t i = 0; i < recipe->field_count; i++)
		lies |= recipe->from[i].kind == FIELD_BOXES || recipe->from[i].kind == FIELD_MASK;
	return lies && !job->exif_said && recipe->exif != EXIF_APPLY;
}

static int refuse(const struct job *job, const struct result *r, const char *how)
{
	return fail(EXIT_USAGE,
		    "%s/%s: states in EXIF or XMP that it is to be turned, and the field %s belongs to its pixels; %s",
		    job->source, r->path, job->plan->recipe.field[r->undecided - 1].name, how);
}

int exif_decision_check(const struct job *job, const struct result *r)
{
	if (!r->undecided || !is_asked(job))
		return EXIT_DONE;
	return refuse(job, r,
		      "repeat the command that made the plan, with --exif ignore if the field was made for the pixels "
		      "as they lie in the file (finished shards are kept), or with --exif apply to turn both (all "
		      "shards are made again)");
}

int exif_decision_look(const struct job *job, bool in_sandbox)
{
	const struct plan *p = job->plan;
	struct job look = *job; /* it compares no times, and keeps nothing in quarantine */
	struct result *r;
	struct converter *c = NULL;
	uint64_t count = p->input_count < LOOK_INPUTS ? p->input_count : LOOK_INPUTS, most;
	int rc = EXIT_DONE;

	if (!plan_names_inputs(p) || !is_asked(job))
		return EXIT_DONE;
	look.times = NULL;
	look.quarantine = NULL;
	look.sandbox = NULL;
	most = LOOK_BYTES / (p->source_bytes / p->input_count + 1) + 1;
	count = count < most ? count : most;
	r = xcalloc(1, sizeof(*r));
	r->record = xmalloc(converter_record_bytes(&job->schema), 1);
	if (in_sandbox)
		rc = pictures_sandbox(&look.sandbox, &p->recipe);
	if (!rc) {
		c = converter_open(&look, NULL);
		if (!c)
			rc = fail(EXIT_IO, "out of memory for a look at orientations");
	}
	/* What cannot be read or decoded is left to the build, which names it. */
	for (uint64_t i = 0; !rc && i < count; i++) {
		r->ordinal = (uint64_t)((__uint128_t)i * p->input_count / count);
		if (interrupted())
			rc = EXIT_INTERRUPTED;
		else if (converter_is_undecided(c, r))
			rc = refuse(job, r,
				    "type --exif ignore if the field was made for the pixels as they lie in the file, "
				    "or --exif apply to turn both");
	}
	converter_close(c);
	sandbox_close(look.sandbox);
	free(r->record);
	free(r);
	return rc;
}
