/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin.c - what is known of each file of the source, as the plan found it
 */
#include "tools/shardpack/input/origin.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/plan.h"

#define HEAD_BYTES 64
#define MAGIC	   "shardpack-sources 2\n"

struct head {
	char magic[32];
	uint64_t input_count, per_input, file_count, print_count;
};

static_assert(sizeof(struct head) == HEAD_BYTES, "the head has 64 bytes");

const char *origin_time_text(uint64_t ns, char out[ORIGIN_TIME_CHARS])
{
	time_t seconds = (time_t)(ns / UINT64_C(1000000000));
	struct tm tm;
	size_t at = gmtime_r(&seconds, &tm) ? strftime(out, ORIGIN_TIME_CHARS, "%Y-%m-%d %H:%M:%S", &tm) : 0;

	snprintf(out + at, ORIGIN_TIME_CHARS - at, ".%09" PRIu64 " UTC", ns % UINT64_C(1000000000));
	return out;
}

/* Fields that may have a file. */
static uint64_t parts_of(const struct recipe *r)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < r->field_count; i++)
		count += field_has_part(&r->from[i]);
	return count;
}

/* The part with that number, from 0, of an input. */
static void find_part(const struct plan *p, const struct plan_input *in, uint64_t number, struct field_part *out)
{
	uint64_t column_bytes = recipe_column_bytes(&p->recipe);
	const char *at = in->parts + (column_bytes ? strlen("= ") + 2 * column_bytes : 0);
	size_t bytes = strcspn(at, " \n");

	for (; number; number--) {
		at += bytes + (at[bytes] == ' ');
		bytes = strcspn(at, " \n");
	}
	field_part_read(at, bytes, out); /* written or checked before */
}

/* The path and size of an entry of an input; false if it has no file. */
static bool path_of(const struct plan *p, const struct plan_input *in, uint64_t entry, char *out, uint64_t *bytes)
{
	struct field_part part;

	*bytes = in->source_bytes;
	if (in->bad_reason || (!entry && in->file != PLAN_NO_FILE))
		return false;
	if (!entry)
		return plan_input_file(in, out) > 0;
	find_part(p, in, entry - 1, &part);
	*bytes = part.bytes;
	return part.kind == FIELD_PART_FILE && text_decode(part.text, part.text_bytes, true, out) > 0;
}

static void note_time(struct origin *o, uint64_t slot, uint64_t ns)
{
	if (ns > o->name_ns) {
		o->name_ns = ns;
		o->name_slot = slot;
	}
}

/*
 * A name on the way to a file.  A link may have led elsewhere before.  A folder may have had
 * another name: to rename it changes its ctime alone, while a file that comes or goes changes its
 * mtime too.  Folders above the source are renamed for other reasons.
 */
static void note_name(struct origin *o, uint64_t slot, int root_fd, const char *name)
{
	struct stat st;

	if (fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return; /* it was there a moment ago; to read it says why */
	if (S_ISLNK(st.st_mode)) {
		note_time(o, slot, files_ns(&st.st_mtim));
		note_time(o, slot, files_ns(&st.st_ctim));
	}
	if (S_ISLNK(st.st_mode) && fstatat(root_fd, name, &st, 0) != 0)
		return;
	if (S_ISDIR(st.st_mode) && files_ns(&st.st_ctim) > files_ns(&st.st_mtim) && root_fd != AT_FDCWD)
		note_time(o, slot, files_ns(&st.st_ctim));
}

/* The file's name and those of the folders above it, unless the file `before` was in the same. */
static void note_names(struct origin *o, uint64_t slot, int root_fd, const char *path, const char *before)
{
	size_t folder_bytes = files_folder_bytes(path);
	char name[3 * PLAN_PATH_BYTES_MAX];

	note_name(o, slot, root_fd, path);
	if (folder_bytes == files_folder_bytes(before) && !memcmp(path, before, folder_bytes))
		return;
	for (size_t n = strcspn(path, "/"); path[n]; n += 1 + strcspn(path + n + 1, "/")) {
		memcpy(name, path, n);
		name[n] = '\0';
		if (n)
			note_name(o, slot, root_fd, name);
	}
}

/* Where entries and fingerprints lie in `data`, and how many bytes it has. */
static void lay_out(struct origin *o)
{
	uint64_t own = origin_own_slots(o);

	o->own_print_count = own < ORIGIN_OWN_PRINTS_MAX ? own : ORIGIN_OWN_PRINTS_MAX;
	o->entry = (struct origin_entry *)((char *)o->data + HEAD_BYTES);
	o->file_entry = o->entry + own;
	o->print = (uint8_t(*)[FINGERPRINT_BYTES])(o->file_entry + o->file_count);
	o->bytes = HEAD_BYTES + (size_t)(own + o->file_count) * sizeof(*o->entry) +
		   (size_t)(o->own_print_count + o->file_count) * sizeof(*o->print);
}

static void clear_prints(struct origin *o)
{
	memset(o->print, 0, (size_t)(o->own_print_count + o->file_count) * sizeof(*o->print));
}

static bool start(struct origin *o, const struct plan *p)
{
	uint64_t count;
	size_t room = 0;

	o->input_count = plan_names_inputs(p) ? p->input_count : 0;
	o->per_input = o->input_count ? 1 + parts_of(&p->recipe) : 0;
	o->file_count = p->file_count;
	count = origin_own_slots(o) + o->file_count;
	o->shelf = p->text.shelf;
	o->data = shelf_grow(o->shelf, NULL, &room,
			     HEAD_BYTES + (size_t)count * sizeof(*o->entry) +
				     (size_t)(ORIGIN_OWN_PRINTS_MAX + o->file_count) * sizeof(*o->print));
	if (!o->data)
		return false;
	lay_out(o);
	memset(o->entry, 0xff, (size_t)count * sizeof(*o->entry));
	return true;
}

struct origin_entry origin_entry_of(const struct stat *st)
{
	return (struct origin_entry){files_ns(&st->st_mtim), files_ns(&st->st_ctim)};
}

static int look_at_inputs(struct origin *o, const struct plan *p, const struct source_place *place, uint64_t *own)
{
	char path[3 * PLAN_PATH_BYTES_MAX], before[3 * PLAN_PATH_BYTES_MAX] = "";
	struct plan_input in;
	struct stat st;
	uint64_t bytes;
	int code = EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && i < o->input_count; i++) {
		plan_input(p, i, &in);
		code = interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
		for (uint64_t k = 0; code == EXIT_DONE && k < o->per_input; k++) {
			uint64_t slot = i * o->per_input + k;

			if (!path_of(p, &in, k, path, &bytes))
				continue;
			code = place_look_at_entry(place, path, &st, NULL);
			if (code != EXIT_DONE)
				break;
			++*own;
			o->entry[slot] = origin_entry_of(&st);
			note_names(o, slot, place->root_fd, path, before);
			strcpy(before, path);
		}
	}
	return code;
}

int origin_collect(struct origin *o, const struct plan *p, const struct source_place *place, const struct stored *s)
{
	uint64_t own = 0, first;
	struct head head = {.magic = MAGIC};
	int code;

	if (!start(o, p))
		return shelf_refuse(p->text.shelf, "the times of %" PRIu64 " inputs", p->input_count);
	code = look_at_inputs(o, p, place, &own);
	if (!own)
		o->per_input = 0;
	lay_out(o);
	clear_prints(o);
	first = origin_own_slots(o);
	for (uint64_t i = 0; code == EXIT_DONE && i < o->file_count; i++) {
		if (p->file[i].how)
			continue;
		o->file_entry[i] = origin_entry_of(stored_stat(s, (uint32_t)i));
		note_names(o, first + i, place->root_fd, p->file[i].path, "");
	}
	note_names(o, own ? 0 : first, AT_FDCWD, place->root, "");
	if (place->item_count == 1 && place->item[0].is_dir)
		note_name(o, own ? 0 : first, place->root_fd, ".");
	head.input_count = o->input_count;
	head.per_input = o->per_input;
	head.file_count = o->file_count;
	head.print_count = o->own_print_count + o->file_count;
	memcpy(o->data, &head, sizeof(head));
	return code;
}

/* The head is that of this plan, and the size follows from it. */
static bool settle(struct origin *o, const struct plan *p)
{
	uint64_t per_input = 1 + parts_of(&p->recipe);
	size_t bytes = o->bytes;
	struct head head;

	memcpy(&head, o->data, sizeof(head));
	o->input_count = plan_names_inputs(p) ? p->input_count : 0;
	o->per_input = head.per_input;
	o->file_count = p->file_count;
	if (memcmp(head.magic, MAGIC, sizeof(MAGIC)) != 0 || head.input_count != o->input_count ||
	    head.file_count != o->file_count || (head.per_input && head.per_input != per_input))
		return false;
	lay_out(o);
	if (o->bytes == bytes && head.print_count == o->own_print_count + o->file_count)
		return true;
	o->bytes = bytes; /* of the map */
	return false;
}

int origin_open(struct origin *o, const struct plan *p, const char *path, bool *found)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), code = EXIT_DONE;
	struct stat st = {0};

	*found = fd >= 0;
	if (fd < 0)
		return errno == ENOENT ? EXIT_DONE : fail(EXIT_IO, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) != 0)
		code = fail(EXIT_IO, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode) || st.st_size < HEAD_BYTES)
		code = fail(EXIT_BAD, "%s: damaged: it is too short for the times of sources", path);
	if (code == EXIT_DONE) {
		o->bytes = (size_t)st.st_size;
		o->data = mmap(NULL, o->bytes, PROT_READ, MAP_SHARED, fd, 0);
		o->is_map = o->data != MAP_FAILED;
		if (!o->is_map)
			code = fail(EXIT_IO, "%s: %s", path, strerror(errno));
		else if (!settle(o, p))
			code = fail(EXIT_BAD, "%s: damaged, or of another plan", path);
	}
	close(fd);
	return code;
}

int origin_share(struct origin *o, const struct origin *of)
{
	size_t bytes = (size_t)of->file_count * sizeof(*o->file_entry);

	*o = *of;
	o->is_map = false;
	o->shelf = NULL;
	o->data = malloc(bytes + (size_t)(of->own_print_count + of->file_count) * sizeof(*o->print) + 1);
	if (!o->data)
		return fail(EXIT_IO, "out of memory for the times of %" PRIu64 " files", of->file_count);
	o->file_entry = o->data;
	o->print = (uint8_t(*)[FINGERPRINT_BYTES])(o->file_entry + o->file_count);
	memcpy(o->file_entry, of->file_entry, bytes);
	clear_prints(o);
	return EXIT_DONE;
}

const struct origin_entry *origin_at(const struct origin *o, uint64_t slot)
{
	return slot < origin_own_slots(o) ? &o->entry[slot] : &o->file_entry[slot - origin_own_slots(o)];
}

void origin_close(struct origin *o)
{
	if (o->is_map)
		munmap(o->data, o->bytes);
	else if (o->data != MAP_FAILED)
		shelf_free(o->shelf, o->data);
	memset(o, 0, sizeof(*o));
}

uint64_t origin_of_input(const struct origin *o, uint64_t input_idx, uint32_t part)
{
	return part < o->per_input ? o->entry[input_idx * o->per_input + part].written_ns : ORIGIN_NO_TIME;
}

void origin_path(const struct origin *o, const struct plan *p, uint64_t slot, char *out)
{
	struct plan_input in;
	uint64_t bytes;

	if (slot >= origin_own_slots(o)) {
		strcpy(out, p->file[slot - origin_own_slots(o)].path);
		return;
	}
	plan_input(p, slot / o->per_input, &in);
	if (!path_of(p, &in, slot % o->per_input, out, &bytes))
		plan_input_path(p, &in, out);
}

bool origin_own_file(const struct origin *o, const struct plan *p, uint64_t slot, char *out, uint64_t *bytes)
{
	struct plan_input in;

	plan_input(p, slot / o->per_input, &in);
	return path_of(p, &in, slot % o->per_input, out, bytes);
}
