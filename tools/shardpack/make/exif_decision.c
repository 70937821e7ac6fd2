/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif_decision.c - an image that lies on its side, and boxes or masks that have their place in it
 */
#include "tools/shardpack/make/make.h"

#include <stdlib.h>

#include "tools/common/exit_code.h"
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

/* How many inputs are looked at. */
static uint64_t count_looks(const struct plan *p)
{
	uint64_t count = p->input_count < LOOK_INPUTS ? p->input_count : LOOK_INPUTS;
	uint64_t most = LOOK_BYTES / (p->source_bytes / p->input_count + 1) + 1;

	return count < most ? count : most;
}

/* What cannot be read or decoded is left to the build, which names it. */
static int look(const struct job *job, struct converter *c, struct result *r)
{
	uint64_t count = count_looks(job->plan);

	for (uint64_t i = 0; i < count; i++) {
		if (interrupted())
			return EXIT_INTERRUPTED;
		r->ordinal = (uint64_t)((__uint128_t)i * job->plan->input_count / count);
		if (converter_is_undecided(c, r))
			return refuse(
				job, r,
				"type --exif ignore if the field was made for the pixels as they lie in the file, "
				"or --exif apply to turn both");
	}
	return EXIT_DONE;
}

int exif_decision_look(const struct job *job, bool in_sandbox)
{
	struct result *r = NULL;
	struct converter *c = NULL;
	struct sandbox *sandbox = NULL;
	int rc = EXIT_DONE;

	if (!plan_names_inputs(job->plan) || !is_asked(job))
		return EXIT_DONE;
	if (in_sandbox)
		rc = pictures_sandbox(&sandbox, &job->plan->recipe);
	if (!rc) {
		r = calloc(1, sizeof(*r));
		c = converter_open(job->plan, job->source_fd, job->stored, NULL, NULL, NULL, sandbox);
		if (r)
			r->record = malloc(converter_record_bytes(&job->schema));
		rc = r && r->record && c ? look(job, c, r) : fail(EXIT_IO, "out of memory for a look at orientations");
	}
	converter_close(c);
	sandbox_close(sandbox);
	if (r)
		free(r->record);
	free(r);
	return rc;
}
