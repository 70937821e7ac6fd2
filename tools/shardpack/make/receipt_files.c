/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt_files.c - where receipts are kept: in one file for each process
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"

#define NAME	       "receipts-"
#define LINE	       "\nshard "
#define END	       "\nend "
#define END_LINE_BYTES (strlen(END) - 1 + 64 + 1)

/* ---- read ---- */

struct names {
	char **name;
	uint64_t count, room;
	bool failed;
};

static void note_name(void *context, const char *name)
{
	struct names *n = context;

	if (strncmp(name, NAME, strlen(NAME)) != 0)
		return;
	if (grow(&n->name, &n->room, n->count + 1, sizeof(*n->name)) && (n->name[n->count] = strdup(name)) != NULL)
		n->count++;
	else
		n->failed = true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_shard(const void *a, const void *b)
{
	const struct receipt_place *x = a, *y = b;

	if (x->shard_idx != y->shard_idx)
		return x->shard_idx < y->shard_idx ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Whatever has that line may be a receipt; receipt_find() looks closer. */
static bool find_places(struct receipt_texts *t)
{
	const char *at = t->all.data, *end = at + t->all.bytes;

	while (at && (at = memmem(at, (size_t)(end - at), LINE, strlen(LINE))) != NULL) {
		if (!grow(&t->place, &t->room, t->count + 1, sizeof(*t->place)))
			return false;
		at += strlen(LINE);
		t->place[t->count++] = (struct receipt_place){strtoull(at, NULL, 10), (size_t)(at - t->all.data)};
	}
	if (t->count)
		qsort(t->place, t->count, sizeof(*t->place), by_shard);
	return true;
}

int receipt_texts_read(struct receipt_texts *t, const char *state_dir)
{
	struct names n = {.count = 0};
	char path[FILES_PATH_BYTES];
	bool found;
	int code = files_list(state_dir, note_name, &n, &found);

	if (n.count)
		qsort(n.name, n.count, sizeof(*n.name), by_name);
	for (uint64_t i = 0; code == EXIT_DONE && i < n.count; i++) {
		code = files_path(path, state_dir, n.name[i]);
		if (code == EXIT_DONE)
			code = files_read(path, &t->all, &found);
		text_add(&t->all, "\n", 1); /* the last line may be torn */
	}
	t->file_count = n.count;
	if (code == EXIT_DONE && (n.failed || text_failed(&t->all) || !find_places(t)))
		code = fail(EXIT_IO, "%s: out of memory for receipts", state_dir);
	while (n.count)
		free(n.name[--n.count]);
	free(n.name);
	return code;
}

void receipt_texts_free(struct receipt_texts *t)
{
	text_free(&t->all);
	free(t->place);
	*t = (struct receipt_texts){0};
}

/* What begins with that line, up to its digest.  False if that is not there, or not right. */
static bool parse(const char *first, const char *end, uint64_t shard_idx, struct receipt *r)
{
	const char *last = memmem(first, (size_t)(end - first), END, strlen(END));
	struct text text = {0};
	bool sound;

	if (!last || (size_t)(end - last) < 1 + END_LINE_BYTES)
		return false;
	text_add(&text, first, (size_t)(last - first) + 1 + END_LINE_BYTES);
	sound = !text_failed(&text) && receipt_parse(r, shard_idx, &text);
	text_free(&text);
	return sound;
}

static bool is_of_other_version(const char *first)
{
	return !strncmp(first, "receipt ", 8) && strncmp(first, RECEIPT_FIRST_LINE, strlen(RECEIPT_FIRST_LINE)) != 0;
}

/* One that spares reading the shard is best, and then one that knows all that was counted. */
static int worth(const struct receipt *r, const struct receipt *is)
{
	return 2 * (r->mtime_ns == is->mtime_ns) + (!r->fit.unknown && !r->not_finite.unknown);
}

bool receipt_find(const struct receipt_texts *t, uint64_t shard_idx, const struct receipt *is, struct receipt *r,
		  const char **spoilt)
{
	const char *all = t->all.data, *first;
	bool found = false, other = false;
	uint64_t low = 0, high = t->count;

	if (spoilt)
		*spoilt = NULL;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (t->place[middle].shard_idx < shard_idx)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < t->count && t->place[low].shard_idx == shard_idx && !other; low++) {
		struct receipt one = {0};

		first = memrchr(all, '\n', t->place[low].at - strlen(LINE));
		first = first ? first + 1 : all;
		if (parse(first, all + t->all.bytes, shard_idx, &one)) {
			other = !receipt_is_same(&one, is);
			if (!found || other || worth(&one, is) >= worth(r, is)) {
				receipt_free(r);
				*r = one;
			} else {
				receipt_free(&one);
			}
			found = true;
		} else {
			receipt_free(&one);
			if (spoilt)
				*spoilt = is_of_other_version(first) ? "of another version" : "damaged";
		}
	}
	return found;
}

/* ---- add ---- */

void receipt_files_open(struct receipt_files *f)
{
	*f = (struct receipt_files){.fd = -1};
	pthread_mutex_init(&f->lock, NULL);
}

static void forget(struct receipt_files *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

void receipt_files_let_go(struct receipt_files *f)
{
	pthread_mutex_lock(&f->lock);
	forget(f);
	pthread_mutex_unlock(&f->lock);
}

void receipt_files_close(struct receipt_files *f)
{
	forget(f);
	receipt_texts_free(&f->before);
	pthread_mutex_destroy(&f->lock);
}

int receipt_files_read(struct receipt_files *f, const char *state_dir)
{
	if (strcmp(f->state_dir, state_dir) != 0)
		forget(f);
	snprintf(f->state_dir, sizeof(f->state_dir), "%s", state_dir);
	receipt_texts_free(&f->before);
	return receipt_texts_read(&f->before, state_dir);
}

/* Why this file cannot be used, by errno. */
static int refuse(const struct receipt_files *f, struct shard_error *err)
{
	*err = (struct shard_error){.status = SHARD_E_IO, .os_code = errno};
	snprintf(err->message, sizeof(err->message), "%.900s/" NAME "%05" PRIu64 ": cannot write a receipt: %s",
		 f->state_dir, f->number, strerror(err->os_code));
	return err->status;
}

/* Make a file of our own: the first that nobody has. */
static int make_file(struct receipt_files *f, struct shard_error *err)
{
	char path[FILES_PATH_BYTES];

	for (f->number = f->before.file_count;; f->number++) {
		if (files_numbered(path, f->state_dir, NAME, f->number, "") != EXIT_DONE) {
			errno = ENAMETOOLONG;
			return refuse(f, err);
		}
		f->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (f->fd >= 0)
			break;
		if (errno != EEXIST)
			return refuse(f, err);
	}
	return files_sync_names(f->state_dir) ? SHARD_OK : refuse(f, err);
}

static bool append(int fd, const struct text *text)
{
	size_t done = 0;

	while (done < text->bytes) {
		ssize_t n = write(fd, text->data + done, text->bytes - done);

		if (n < 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return fdatasync(fd) == 0;
}

/* With the lock. */
static int add(struct receipt_files *f, const struct text *text, struct shard_error *err)
{
	int rc = f->fd < 0 ? make_file(f, err) : SHARD_OK;

	if (rc == SHARD_OK && !append(f->fd, text))
		rc = refuse(f, err);
	if (rc != SHARD_OK)
		forget(f); /* what is torn ends its file */
	return rc;
}

int receipt_files_add(struct receipt_files *f, uint64_t shard_idx, const struct receipt *r, struct shard_error *err)
{
	struct text text = {0};
	int rc;

	receipt_write(r, shard_idx, &text);
	if (text_failed(&text) || text_failed(&r->lines)) {
		*err = (struct shard_error){.status = SHARD_E_MEMORY, .message = "out of memory for a receipt"};
		rc = err->status;
	} else {
		pthread_mutex_lock(&f->lock);
		rc = add(f, &text, err);
		if (rc != SHARD_OK && err->os_code == ESTALE) /* another machine has removed the file */
			rc = add(f, &text, err);
		pthread_mutex_unlock(&f->lock);
	}
	text_free(&text);
	if (rc == SHARD_OK || err->os_code != ENOENT)
		return rc;
	detail("%s", err->message);
	return SHARD_OK;
}
