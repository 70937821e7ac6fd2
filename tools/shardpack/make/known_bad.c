/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known_bad.c - inputs that a plan knows to be bad, before any of them is converted
 */
#include "tools/shardpack/make/make.h"

#include <inttypes.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/make/job.h"
#include "tools/shardpack/plan/bad_input.h"
#include "tools/shardpack/plan/plan.h"

static void show(const struct job *job)
{
	char path[PLAN_PATH_BYTES_MAX], message[BAD_INPUT_MESSAGE_BYTES];
	struct plan_input input;

	for (uint64_t i = 0; i < job->plan->input_count; i++) {
		plan_input(job->plan, i, &input);
		if (!input.bad_reason)
			continue;
		plan_input_path(job->plan, &input, path);
		plan_bad_message(&input, message);
		account_show(job->account, job->source, path, message);
	}
}

static const char *are(const struct plan *p)
{
	return p->bad_count == 1 ? "is" : "are";
}

static int enter(const struct job *job)
{
	uint32_t on_error = job->plan->recipe.on_error;
	char message[BAD_INPUT_MESSAGE_BYTES];
	struct plan_input input;
	int code = EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && i < job->plan->input_count; i++) {
		plan_input(job->plan, plan_input_at(job->plan, i), &input);
		if (!input.bad_reason)
			continue;
		plan_bad_message(&input, message);
		code = account_problem(job->account, i, input.bad_reason, account_how(on_error, input.bad_reason),
				       message);
	}
	return code;
}

int known_bad_look(const struct job *job, const struct source_times *times)
{
	const struct plan *p = job->plan;
	struct job look = *job;
	int code = enter(job);

	show(job);
	look.look_only = true;
	look.times = times;
	job->account->input_count = p->input_count;
	if (code == EXIT_DONE)
		code = account_check_bad(job->account, job->max_bad, p->input_count - 1, p->input_count);
	if (code == EXIT_DONE && p->bad_count < p->input_count)
		note("%" PRIu64 " of %" PRIu64 " inputs %s bad; looking at the others, too; nothing will be written",
		     p->bad_count, p->input_count, are(p));
	return code == EXIT_DONE ? build_run(&look) : code;
}

int known_bad_judge(const struct job *job, bool *told)
{
	const struct plan *p = job->plan;
	int code;

	if (!p->bad_count)
		return EXIT_DONE;
	show(job);
	code = enter(job);
	if (code == EXIT_DONE && p->recipe.on_error != ON_ERROR_FAIL) {
		bool skipped = p->recipe.on_error == ON_ERROR_SKIP;

		account_published(job->account, 0, 0, skipped ? p->bad_count : 0, skipped ? 0 : p->bad_count);
		note("%" PRIu64 " of %" PRIu64 " inputs %s bad; left out", p->bad_count, p->input_count, are(p));
		return EXIT_DONE;
	}
	*told = true;
	return code == EXIT_DONE ? fail(EXIT_BAD, "%" PRIu64 " of %" PRIu64 " inputs %s bad", p->bad_count,
					p->input_count, are(p))
				 : code;
}
