/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c - what the verbs of shardpack have in common
 */
#include "tools/shardpack/shardpack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshard/base/thread.h"
#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/make/make.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/report/report.h"
#include "tools/shardpack/sandbox/sandbox.h"
#include "tools/shardpack/scan/scan.h"

int command_keep_apart(const char *option, const char *path, const char *dir_name, const char *dir)
{
	if (files_is_below(path, dir))
		return fail(EXIT_USAGE, "%s: lies in %s (%s); give a place outside of it", option, dir_name, dir);
	return EXIT_DONE;
}

int command_keep_from_sources(const struct source_root *p, const char *option, const char *path)
{
	char folder[FILES_PATH_BYTES];
	int rc = EXIT_DONE;

	for (uint64_t i = 0; rc == EXIT_DONE && i < p->item_count; i++) {
		const struct source_item *item = &p->item[i];
		bool whole = !item->path[0];

		rc = whole ? EXIT_DONE : files_path(folder, p->absolute, item->path);
		if (rc != EXIT_DONE)
			return rc;
		if (item->is_dir)
			rc = command_keep_apart(option, path, "the source", whole ? p->absolute : folder);
		if (rc == EXIT_DONE && strcmp(option, "--report"))
			rc = command_keep_apart("the source", whole ? p->absolute : folder, option, path);
		else if (rc == EXIT_DONE && !item->is_dir && !strcmp(folder, path))
			rc = fail(EXIT_USAGE, "%s: is the source (%s); give another path", option, folder);
	}
	return rc;
}

/* A report, or empty?  An image or a table that a slip of --report would replace is neither. */
static bool is_report_or_empty(const char *path)
{
	static const char *const begins[] = {"{\n  \"outcome\": ", "<!DOCTYPE html>\n", NULL};
	char head[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t bytes = fd < 0 ? 0 : read(fd, head, sizeof(head) - 1);

	if (fd >= 0)
		close(fd);
	for (const char *const *b = begins; *b; b++)
		if (!strncmp(head, *b, strlen(*b)))
			return true;
	return bytes <= 0;
}

int command_check_report(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[FILES_PATH_BYTES];
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return fail(EXIT_USAGE, "--report %s: is a folder; --report must name a file", path);
	if (files_is_device_or_pipe(path)) /* it will be written into, so its folder does not matter */
		return EXIT_DONE;
	if (snprintf(folder, sizeof(folder), "%.*s", slash > path ? (int)(slash - path) : 1, path) >=
	    (int)sizeof(folder))
		return fail(EXIT_USAGE, "--report %s: this path is too long", path);
	if (!is_report_or_empty(path))
		return fail(EXIT_USAGE, "--report %s: is there already, and is not a report; give another path", path);
	if (access(folder, W_OK | X_OK) != 0)
		return fail(EXIT_IO, "--report %s: cannot write into %s: %s", path, folder, strerror(errno));
	return EXIT_DONE;
}

void command_open_shelf(struct plan *p, const char *dir)
{
	char *there = xstrdup(dir);

	/* if no folder above is there, the first file on the shelf says why */
	p->text.shelf = shelf_open(files_nearest(there) ? there : dir);
	free(there);
}

char *command_plan_again(const char *dir)
{
	struct text out = {0};

	text_add(&out, "remove ", 7);
	text_shell_word(&out, dir);
	text_format(&out, " and begin again with `shardpack plan`");
	return out.data;
}

void command_tell_plan(const struct job *job, const struct scan *scan)
{
	struct text words = {0}, digest = {0};

	text_hex(&digest, job->plan->digest, sizeof(job->plan->digest));
	text_shell_word(&words, job->out_dir);
	report_ignored(scan);
	note("plan %s: %" PRIu64 " input%s in %" PRIu64 " shard%s", digest.data, job->plan->input_count,
	     job->plan->input_count == 1 ? "" : "s", job->plan->shard_count, job->plan->shard_count == 1 ? "" : "s");
	note("next: shardpack build %s --part 0/N to N-1/N, on any machines; then shardpack seal %s", words.data,
	     words.data);
	text_free(&words);
	text_free(&digest);
}

/* The command that is running, as a shell reads it. */
static bool this_command(struct text *out)
{
	struct text words = {0};
	bool found = false;
	/* The kernel keeps what main() was given; there is no other way to it from here. */
	if (files_read("/proc/self/cmdline", &words, &found) == EXIT_DONE && found)
		for (size_t at = 0; at < words.bytes; at += strlen(words.data + at) + 1) {
			if (at)
				text_add(out, " ", 1);
			text_shell_word(out, words.data + at);
		}
	text_free(&words);
	return found && out->bytes;
}

/* Files are gone, and nothing else is wrong. */
static void say_how_to_do_without(const struct report *r)
{
	struct text out = {0};

	text_format(&out, "`shardpack build ");
	text_shell_word(&out, r->job->out_dir);
	text_format(&out, " --on-error skip`");
	if (r->scan) {
		text_format(&out, ", then `shardpack seal ");
		text_shell_word(&out, r->job->out_dir);
		text_format(&out, "`");
	}
	hint("complete shards are kept; bring the files back and run the same command again, or leave them out: %s",
	     out.data);
	text_free(&out);
}

static void say_how_to_go_on(const struct report *r)
{
	struct text command = {0};
	const char *why = r->exit_code == EXIT_STOPPED ? "stopped as asked" : "interrupted";
	bool stopped = r->exit_code == EXIT_STOPPED || r->exit_code == EXIT_INTERRUPTED;

	if (stopped && this_command(&command))
		hint("%s; to continue: %s", why, command.data);
	else if (stopped)
		hint("%s; run the same command again to continue", why);
	else if (r->exit_code == EXIT_IO && r->job->account->gone == r->job->account->unreadable &&
		 r->job->account->gone)
		say_how_to_do_without(r);
	else if (r->exit_code == EXIT_IO)
		hint("complete shards are kept; remove the cause, then run the same command again to continue");
	else if (r->exit_code == EXIT_BAD && r->job->plan->recipe.on_error == ON_ERROR_FAIL && r->job->account->bad)
		/* that makes another dataset; where nothing was written, only `shardpack plan` left something */
		hint("to leave bad inputs out, add --on-error skip, or --on-error quarantine --quarantine DIR%s%s",
		     r->job->account->written || !r->scan ? "; that makes another dataset, so " : "",
		     r->job->account->written || !r->scan ? r->job->remedy : "");
	text_free(&command);
}

int command_finish(const struct report *r, const char *report_path)
{
	int rc = r->exit_code, written;

	account_sort(r->job->account);
	if (report_path) {
		written = report_file_write(r, report_path);
		if (rc == EXIT_DONE)
			rc = written;
	}
	say_how_to_go_on(r);
	report_tell(r);
	return rc;
}

int command_build(struct job *job, bool sandbox)
{
	int rc = EXIT_DONE;

	if (sandbox && !plan_names_inputs(job->plan))
		return fail(EXIT_USAGE, "--sandbox is for images: nothing of this source is decoded");
	if (sandbox) /* before there are threads */
		rc = pictures_sandbox(&job->sandbox, &job->plan->recipe);
	return rc == EXIT_DONE ? build_run(job) : rc;
}

void command_begin_build(struct job *job, struct account *account, struct receipt_files *receipts)
{
	job->source_fd = -1;
	job->worker_count = thread_cpus_allowed() ? thread_cpus_allowed() : 1;
	job->account = account;
	job->receipts = receipts;
	receipt_files_open(receipts);
}

void command_end_build(struct job *job)
{
	receipt_files_close(job->receipts);
	sandbox_close(job->sandbox);
	job->sandbox = NULL;
}
