/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_file.c - the report that --report asks for
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/make/job.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/report/report.h"

static bool is_html(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (!strcmp(dot, ".html") || !strcmp(dot, ".htm"));
}

int report_file_write(const struct report *r, const char *path)
{
	const struct plan *plan = r->job->plan;
	uint64_t *inputs = calloc(plan->class_count + 1, sizeof(*inputs));
	struct shard_dataset *ds = NULL;
	struct shard_error err;
	struct memory_file out;
	bool ok = memory_file_open(&out) && inputs;
	int code = EXIT_DONE, written = EXIT_DONE;

	if (ok && plan_has_labels(plan))
		plan_count_classes(plan, inputs);
	if (r->sealed && shard_dataset_open(&ds, r->job->out_dir, NULL, &err) != SHARD_OK)
		code = fail_of_library(&err);
	if (ok && is_html(path) && code == EXIT_DONE)
		code = report_html(r, out.stream, ds, inputs);
	else if (ok && is_html(path))
		report_html(r, out.stream, NULL, inputs);
	else if (ok)
		report_json(r, out.stream, ds, inputs);
	if (!memory_file_close(&out) || !ok)
		written = fail(EXIT_IO, "--report %s: out of memory", path);
	else if (files_is_device_or_pipe(path))
		written = files_write_in_place(path, out.data, out.bytes);
	else if (files_publish(path, out.data, out.bytes, &err) != SHARD_OK)
		written = fail(exit_code_of_status(err.status), "--report %s", err.message);
	if (code == EXIT_DONE) /* the first failure counts */
		code = written;
	shard_dataset_close(ds);
	free(out.data);
	free(inputs);
	return code;
}
