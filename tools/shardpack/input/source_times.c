/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_times.c - when each file of the source was written, and whether it still says so
 */
#include "tools/shardpack/input/input.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"
#include "tools/shardpack/plan/plan.h"

#define MAGIC "shardpack-sources 3\n"

struct head {
	char magic[24];
	uint8_t plan_digest[32];
	uint64_t per_input;
};

static_assert(sizeof(struct head) == 64, "as the header says");

const char *source_time_text(uint64_t ns, char out[SOURCE_TIME_CHARS])
{
	time_t seconds = (time_t)(ns / UINT64_C(1000000000));
	struct tm tm;
	size_t at = gmtime_r(&seconds, &tm) ? strftime(out, SOURCE_TIME_CHARS, "%Y-%m-%d %H:%M:%S", &tm) : 0;

	snprintf(out + at, SOURCE_TIME_CHARS - at, ".%09" PRIu64 " UTC", ns % UINT64_C(1000000000));
	return out;
}

/* ---- files of the plan ---- */

/* Files that an input may have: its own, and one for each field that may be a file. */
static uint64_t files_per_input(const struct recipe *r)
{
	uint64_t count = 1;

	for (uint32_t i = 0; i < r->field_count; i++)
		count += field_has_part(&r->from[i]);
	return count;
}

/* The path of a file of an input; false if it has no such file. */
static bool path_of(const struct plan *p, const struct plan_input *in, uint64_t number, char *out)
{
	const struct recipe *r = &p->recipe;
	struct field_part part;
	const char *at = in->parts;

	if (in->bad_reason || (!number && in->file != PLAN_NO_FILE))
		return false;
	if (!number)
		return plan_input_file(in, out) > 0;
	for (uint32_t i = 0; i < r->field_count; i++)
		if (field_part_next(&r->field[i], &r->from[i], &at, &part) && field_has_part(&r->from[i]) && !--number)
			return part.kind == FIELD_PART_FILE && text_decode(part.text, part.text_bytes, true, out) > 0;
	return false;
}

/* The same of the file at own_ns[slot]. */
static bool path_of_slot(const struct source_times *t, const struct plan *p, uint64_t slot, char *out)
{
	struct plan_input in;

	plan_input(p, slot / t->per_input, &in);
	return path_of(p, &in, slot % t->per_input, out);
}

/* ---- how they are ---- */

/* How many bytes that is, and where times lie in them, if each input has this many files. */
static size_t times_bytes(const struct plan *p, uint64_t per_input)
{
	return sizeof(struct head) + (size_t)(p->input_count * per_input + p->file_count) * sizeof(uint64_t);
}

static void lay_out(struct source_times *t, const struct plan *p, uint64_t per_input)
{
	t->bytes = times_bytes(p, per_input);
	t->per_input = per_input;
	t->own_count = p->input_count * per_input;
	t->file_count = p->file_count;
	t->own_ns = (uint64_t *)((char *)t->data + sizeof(struct head));
	t->file_ns = t->own_ns + t->own_count;
}

int source_times_collect(struct source_times *t, const struct plan *p, const struct source_root *root,
			 const struct source_files *s)
{
	struct head head = {.magic = MAGIC};
	uint64_t per_input = plan_names_inputs(p) ? files_per_input(&p->recipe) : 0;
	char path[3 * PLAN_PATH_BYTES_MAX];
	struct plan_input in;
	struct stat st;
	size_t room = 0;
	bool any = false;
	int rc = EXIT_DONE;

	t->shelf = p->text.shelf;
	t->data = shelf_grow(t->shelf, NULL, &room, times_bytes(p, per_input));
	if (!t->data)
		return shelf_refuse(t->shelf, "the times of %" PRIu64 " inputs", p->input_count);
	lay_out(t, p, per_input);
	memset(t->data, 0xff, t->bytes); /* SOURCE_NO_TIME everywhere */
	for (uint64_t slot = 0; rc == EXIT_DONE && slot < t->own_count; slot++) {
		if (slot % per_input == 0)
			plan_input(p, slot / per_input, &in);
		if (interrupted())
			return EXIT_INTERRUPTED;
		if (!path_of(p, &in, slot % per_input, path))
			continue;
		rc = source_root_stat_entry(root, path, &st, NULL);
		if (rc == EXIT_DONE)
			t->own_ns[slot] = files_ns(&st.st_mtim);
		any = true;
	}
	if (!any)
		lay_out(t, p, 0);
	for (uint64_t i = 0; rc == EXIT_DONE && i < t->file_count; i++)
		if (!p->file[i].how)
			t->file_ns[i] = source_file_written_ns(s, (uint32_t)i);
	memcpy(head.plan_digest, p->digest, sizeof(head.plan_digest));
	head.per_input = t->per_input;
	memcpy(t->data, &head, sizeof(head));
	return rc;
}

/* ---- how they were ---- */

int source_times_refuse_damage(const char *path)
{
	return fail(EXIT_BAD,
		    "%s: damaged, or of another plan; if the sources are those that were packed, add --trust-names",
		    path);
}

int source_times_open(struct source_times *t, const struct plan *p, const char *path, bool *found)
{
	struct head head = {.magic = ""};
	struct stat st = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc = EXIT_DONE;

	*found = false;
	if (fd < 0)
		return errno == ENOENT ? EXIT_DONE : fail(EXIT_IO, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) != 0 || (files_read_at(fd, &head, sizeof(head), 0) < sizeof(head) && errno))
		rc = fail(EXIT_IO, "%s: %s", path, strerror(errno));
	*found = rc == EXIT_DONE && !memcmp(head.magic, MAGIC, sizeof(MAGIC));
	if (*found && ((head.per_input && head.per_input != files_per_input(&p->recipe)) ||
		       memcmp(head.plan_digest, p->digest, sizeof(head.plan_digest)) != 0 ||
		       times_bytes(p, head.per_input) != (uint64_t)st.st_size))
		rc = source_times_refuse_damage(path);
	if (*found && rc == EXIT_DONE) {
		t->data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		t->is_map = t->data != MAP_FAILED;
		if (t->is_map)
			lay_out(t, p, head.per_input);
		else
			rc = fail(EXIT_IO, "%s: %s", path, strerror(errno));
	}
	close(fd);
	return rc;
}

void source_times_close(struct source_times *t)
{
	if (t->is_map)
		munmap(t->data, t->bytes);
	else if (t->data != MAP_FAILED)
		shelf_free(t->shelf, t->data);
	memset(t, 0, sizeof(*t));
}

uint64_t source_time_of_input(const struct source_times *t, uint64_t input_idx, uint32_t part)
{
	return part < t->per_input ? t->own_ns[input_idx * t->per_input + part] : SOURCE_NO_TIME;
}

/* ---- are they the same? ---- */

static int refuse(const char *path, uint64_t then_ns, uint64_t now_ns, const struct source_words *words)
{
	char then[SOURCE_TIME_CHARS], now[SOURCE_TIME_CHARS];

	return fail(EXIT_MISMATCH,
		    "%s/%s: changed since %s was made: written %s then, %s now; to pack it as it is, %s; if only its "
		    "time differs, as in a copy, add --trust-names",
		    words->root, path, words->what, source_time_text(then_ns, then), source_time_text(now_ns, now),
		    words->repack);
}

int source_times_compare(const struct source_times *then, const struct source_times *now, const struct plan *p,
			 const struct source_words *words)
{
	char path[3 * PLAN_PATH_BYTES_MAX];

	for (uint64_t i = 0; i < now->own_count; i++)
		if (then->own_ns[i] != now->own_ns[i] && path_of_slot(now, p, i, path))
			return refuse(path, then->own_ns[i], now->own_ns[i], words);
	for (uint64_t i = 0; i < now->file_count; i++)
		if (then->file_ns[i] != now->file_ns[i])
			return refuse(p->file[i].path, then->file_ns[i], now->file_ns[i], words);
	return EXIT_DONE;
}

int source_times_compare_files(const struct source_times *then, const struct source_files *s, const struct plan *p,
			       const struct source_words *words)
{
	for (uint64_t i = 0; i < p->file_count; i++) {
		uint64_t now_ns = p->file[i].how ? SOURCE_NO_TIME : source_file_written_ns(s, (uint32_t)i);

		if (then->file_ns[i] != now_ns)
			return refuse(p->file[i].path, then->file_ns[i], now_ns, words);
	}
	return EXIT_DONE;
}

int source_times_check_written(const struct source_times *then, const struct plan *p, int root_fd,
			       const struct source_words *words, uint64_t first, uint64_t count)
{
	char path[3 * PLAN_PATH_BYTES_MAX], before[SOURCE_TIME_CHARS], after[SOURCE_TIME_CHARS];
	uint64_t n = then->per_input, slot, now_ns;
	struct stat st;

	for (uint64_t i = 0; i < count * n; i++) {
		slot = plan_input_at(p, first + i / n) * n + i % n;
		if (!path_of_slot(then, p, slot, path))
			continue;
		if (fstatat(root_fd, path, &st, 0) != 0) {
			if (errno == ENOENT)
				continue;
			return fail(EXIT_IO, "%s/%s: %s", words->root, path, strerror(errno));
		}
		now_ns = files_ns(&st.st_mtim);
		if (now_ns != then->own_ns[slot])
			return fail(EXIT_MISMATCH,
				    "%s/%s: changed while the dataset was built: written %s when it was read, %s now; "
				    "when nothing writes to it any more, %s",
				    words->root, path, source_time_text(then->own_ns[slot], before),
				    source_time_text(now_ns, after), words->repack);
	}
	return EXIT_DONE;
}
