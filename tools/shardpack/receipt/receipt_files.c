/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt_files.c - where receipts are kept: a file for many shards, to which one process adds
 */
#include "tools/shardpack/receipt/receipt_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/shardpack/receipt/receipt.h"

#define NAME	       "receipts-"
#define LINE	       "\nshard "
#define END	       "\nend "
#define END_LINE_BYTES (strlen(END) - 1 + 64 + 1)

static int path_of(char *out, const char *state_dir, uint64_t file_idx, unsigned number)
{
	char suffix[16];

	snprintf(suffix, sizeof(suffix), ".%u", number);
	return files_numbered(out, state_dir, NAME, file_idx, suffix);
}

/* ---- add ---- */

void receipt_files_open(struct receipt_files *f)
{
	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->lock, NULL);
	for (unsigned i = 0; i < RECEIPT_FILES_OPEN; i++)
		f->file[i].fd = -1;
}

static void forget(struct receipt_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

void receipt_files_let_go(struct receipt_files *f)
{
	pthread_mutex_lock(&f->lock);
	for (unsigned i = 0; i < RECEIPT_FILES_OPEN; i++)
		forget(&f->file[i]);
	pthread_mutex_unlock(&f->lock);
}

void receipt_files_close(struct receipt_files *f)
{
	receipt_files_let_go(f);
	pthread_mutex_destroy(&f->lock);
}

/* Why this file cannot be used, by errno. */
static int refuse(const char *state_dir, const struct receipt_file *file, struct shard_error *err)
{
	*err = (struct shard_error){.status = SHARD_E_IO, .os_code = errno};
	snprintf(err->message, sizeof(err->message), "%s/" NAME "%05" PRIu64 ".%u: cannot write a receipt: %s",
		 state_dir, file->file_idx, file->number, strerror(err->os_code));
	return err->status;
}

/* Make a file of our own: the first that nobody has. */
static int make_file(const char *state_dir, struct receipt_file *file, struct shard_error *err)
{
	char path[FILES_PATH_BYTES];

	for (file->number = 0;; file->number++) {
		if (path_of(path, state_dir, file->file_idx, file->number) != EXIT_DONE) {
			errno = ENAMETOOLONG;
			return refuse(state_dir, file, err);
		}
		file->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (file->fd >= 0)
			break;
		if (errno != EEXIST)
			return refuse(state_dir, file, err);
	}
	return files_sync_names(state_dir) ? SHARD_OK : refuse(state_dir, file, err);
}

/* The open file of these shards, or a place for it. */
static struct receipt_file *find_file(struct receipt_files *f, const char *state_dir, uint64_t file_idx)
{
	struct receipt_file *file;

	for (unsigned i = 0; i < RECEIPT_FILES_OPEN; i++) {
		file = &f->file[i];
		if (strcmp(f->state_dir, state_dir) != 0)
			forget(file);
		if (file->fd >= 0 && file->file_idx == file_idx)
			return file;
	}
	snprintf(f->state_dir, sizeof(f->state_dir), "%s", state_dir);
	file = &f->file[f->next++ % RECEIPT_FILES_OPEN];
	forget(file);
	file->file_idx = file_idx;
	return file;
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
static int add(struct receipt_files *f, const char *state_dir, uint64_t file_idx, const struct text *text,
	       struct shard_error *err)
{
	struct receipt_file *file = find_file(f, state_dir, file_idx);
	int rc = file->fd < 0 ? make_file(state_dir, file, err) : SHARD_OK;

	if (rc == SHARD_OK && !append(file->fd, text))
		rc = refuse(state_dir, file, err);
	if (rc != SHARD_OK)
		forget(file); /* what is torn ends its file */
	return rc;
}

int receipt_files_add(struct receipt_files *f, const char *state_dir, uint64_t shard_idx, const struct receipt *r,
		      struct shard_error *err)
{
	struct text text = {0};
	int rc;

	receipt_write(r, shard_idx, &text);
	if (text_failed(&text) || text_failed(&r->lines)) {
		*err = (struct shard_error){.status = SHARD_E_MEMORY, .message = "out of memory for a receipt"};
		rc = err->status;
	} else {
		pthread_mutex_lock(&f->lock);
		rc = add(f, state_dir, shard_idx / RECEIPT_FILE_SHARDS, &text, err);
		if (rc != SHARD_OK && err->os_code == ESTALE) /* another machine has removed the file */
			rc = add(f, state_dir, shard_idx / RECEIPT_FILE_SHARDS, &text, err);
		pthread_mutex_unlock(&f->lock);
	}
	text_free(&text);
	if (rc == SHARD_OK || err->os_code != ENOENT)
		return rc;
	detail("%s", err->message);
	return SHARD_OK;
}

/* ---- read ---- */

/* Whatever has that line may be a receipt; receipt_find() looks closer. */
static bool find_places(struct receipt_texts *t)
{
	const char *at = t->all.data, *end = at + t->all.bytes;
	size_t room = 0;

	while ((at = memmem(at, (size_t)(end - at), LINE, strlen(LINE))) != NULL) {
		if (t->count == room) {
			struct receipt_place *place;

			room = room ? 2 * room : RECEIPT_FILE_SHARDS;
			place = realloc(t->place, room * sizeof(*place));
			if (!place)
				return false;
			t->place = place;
		}
		at += strlen(LINE);
		t->place[t->count++] = (struct receipt_place){strtoull(at, NULL, 10), (size_t)(at - t->all.data)};
	}
	return true;
}

int receipt_texts_read(struct receipt_texts *t, const char *state_dir, uint64_t file_idx, bool quiet)
{
	char path[FILES_PATH_BYTES];
	bool there = true;
	int code = EXIT_DONE;

	for (unsigned number = 0; code == EXIT_DONE && there; number++) {
		code = path_of(path, state_dir, file_idx, number);
		if (code == EXIT_DONE)
			code = quiet ? files_read_quietly(path, &t->all, &there) : files_read(path, &t->all, &there);
		text_add(&t->all, "\n", 1); /* the last line may be torn */
	}
	if (code == EXIT_DONE && (text_failed(&t->all) || !find_places(t)))
		code = quiet ? EXIT_IO : fail(EXIT_IO, "out of memory for receipts");
	return code;
}

void receipt_texts_free(struct receipt_texts *t)
{
	text_free(&t->all);
	free(t->place);
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

	if (spoilt)
		*spoilt = NULL;
	for (size_t i = 0; i < t->count && !other; i++) {
		struct receipt one = {0};

		if (t->place[i].shard_idx != shard_idx)
			continue;
		first = memrchr(all, '\n', t->place[i].at - strlen(LINE));
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

int receipt_read(const char *state_dir, uint64_t shard_idx, const struct receipt *is, struct receipt *r, bool *found)
{
	uint64_t file_idx = shard_idx / RECEIPT_FILE_SHARDS;
	struct receipt_texts texts = {0};
	const char *spoilt = NULL;
	int code = receipt_texts_read(&texts, state_dir, file_idx, false);

	*found = code == EXIT_DONE && receipt_find(&texts, shard_idx, is, r, &spoilt);
	if (code == EXIT_DONE && !*found && spoilt)
		detail("%s/" NAME "%05" PRIu64 ".*: the receipt of shard %" PRIu64 " is %s; making it again from the "
		       "shard",
		       state_dir, file_idx, shard_idx, spoilt);
	receipt_texts_free(&texts);
	return code;
}
