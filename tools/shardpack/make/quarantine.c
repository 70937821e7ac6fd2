/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quarantine.c - inputs that were left out, kept for a person to look at
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/json_out.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/plan/plan.h"

int quarantine_open(struct quarantine *q, const char *dir)
{
	q->dir = NULL;
	if (!files_make_dir(dir))
		return fail(EXIT_IO, "--quarantine %s: %s%s", dir, strerror(errno),
			    errno == ENOENT ? " (the folder above it must exist)" : "");
	q->dir = realpath(dir, NULL);
	if (!q->dir)
		return fail(EXIT_IO, "--quarantine %s: %s", dir, strerror(errno));
	return EXIT_DONE;
}

void quarantine_close(struct quarantine *q)
{
	free(q->dir);
	q->dir = NULL;
}

bool quarantine_keep(const struct quarantine *q, const char *path, const void *bytes, size_t size, char *message,
		     size_t message_bytes)
{
	size_t dir_bytes = strlen(q->dir), room = dir_bytes + strlen(path) + 2;
	char *target = malloc(room);
	struct shard_error err;
	bool ok = false;

	if (!target) {
		snprintf(message, message_bytes, "out of memory for its copy in quarantine");
		return false;
	}
	snprintf(target, room, "%s/%s", q->dir, path);
	if (!files_make_parents(target, dir_bytes + 1))
		snprintf(message, message_bytes, "cannot copy it to quarantine: %s", strerror(errno));
	else if (shard_publish(target, bytes, size, 0, &err) == SHARD_OK ||
		 (err.status == SHARD_E_EXISTS && files_has_bytes(target, bytes, size)))
		ok = true;
	else if (err.status != SHARD_E_EXISTS)
		snprintf(message, message_bytes, "cannot copy it to quarantine: %s", err.message);
	else
		snprintf(message, message_bytes, "the quarantine %s has another file of that name", q->dir);
	free(target);
	return ok;
}

static void write_line(FILE *out, const struct plan *plan, const struct problem *problem)
{
	char class_name[PLAN_CLASS_NAMES_BYTES], path[PLAN_PATH_BYTES_MAX];
	struct plan_input input;
	struct json_out j;

	plan_input(plan, plan_input_at(plan, problem->ordinal), &input);
	plan_input_path(plan, &input, path);
	json_out_start(&j, out);
	json_out_object_line(&j, NULL);
	json_out_string(&j, "input", path);
	if (plan_class_names(plan, &input, class_name))
		json_out_string(&j, "class", class_name);
	else
		json_out_null(&j, "class");
	json_out_u64(&j, "bytes", input.source_bytes);
	json_out_u64(&j, "ordinal", problem->ordinal);
	json_out_string(&j, "reason", shard_miss_reason_name(problem->reason));
	json_out_string(&j, "message", problem->message);
	json_out_end(&j);
	json_out_finish(&j); /* a memory stream: its one failure shows when it is closed */
}

/* For nftw(): what a killed run left in a folder.  What cannot be removed is in nobody's way. */
static int tidy(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)where;
	if (type == FTW_D)
		shard_remove_temps(path, NULL, NULL);
	return 0;
}

int quarantine_list(const struct quarantine *q, const struct plan *plan, const struct account *account)
{
	char *path = NULL;
	struct memory_file out;
	struct shard_error err;
	int code = EXIT_DONE;
	bool ok = memory_file_open(&out);

	for (uint64_t i = 0; ok && i < account->problems.count; i++)
		if (account->problems.item[i].how == PROBLEM_QUARANTINED)
			write_line(out.stream, plan, &account->problems.item[i]);
	ok = memory_file_close(&out);
	if (!ok || asprintf(&path, "%s/quarantine.jsonl", q->dir) < 0) {
		path = NULL;
		code = fail(EXIT_IO, "%s/quarantine.jsonl: out of memory", q->dir);
	} else if (files_publish(path, out.data, out.bytes, &err) != SHARD_OK) {
		code = fail_of_library(&err);
	}
	if (code == EXIT_DONE)
		nftw(q->dir, tidy, 16, FTW_PHYS);
	free(path);
	free(out.data);
	return code;
}
