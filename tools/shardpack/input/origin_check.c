/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_check.c - are the files of the source still those that the plan found?
 */
#include "tools/shardpack/input/origin_check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/plan.h"

enum change { SAME, WRITTEN, BYTES, ENTRY };

static uint64_t print_count(const struct origin *o)
{
	return o->own_print_count + o->file_count;
}

/* How fingerprints of these sources are taken. */
static struct fingerprint_rule origin_rule(const struct origin *o)
{
	return fingerprint_rule(print_count(o));
}

/* The slot whose file has fingerprint `i`. */
static uint64_t slot_of_print(const struct origin *o, uint64_t i)
{
	if (i >= o->own_print_count)
		return origin_own_slots(o) + i - o->own_print_count;
	return (uint64_t)((__uint128_t)i * origin_own_slots(o) / o->own_print_count);
}

/* The fingerprint of the file in a slot; false if it has none. */
static bool print_of_slot(const struct origin *o, uint64_t slot, uint64_t *i)
{
	uint64_t own = origin_own_slots(o);

	if (slot >= own)
		*i = o->own_print_count + slot - own;
	else
		*i = (uint64_t)(((__uint128_t)slot * o->own_print_count + own - 1) / own);
	return *i < print_count(o) && slot_of_print(o, *i) == slot;
}

static bool has_print(const struct origin *o, uint64_t i)
{
	static const uint8_t none[FINGERPRINT_BYTES];

	return memcmp(o->print[i], none, sizeof(none)) != 0;
}

/* ---- taking them ---- */

/* No fingerprint.  If it is gone, or must not be read, the converter says so. */
static int go_without(const struct source_place *place, const char *path)
{
	if (errno && errno != ENOENT && errno != EACCES)
		return fail(EXIT_IO, "%s/%s: %s", place->root, path, strerror(errno));
	detail("%s/%s: no fingerprint: %s", place->root, path, errno ? strerror(errno) : "it became shorter");
	return EXIT_DONE;
}

static int take_own(struct origin *o, const struct plan *p, const struct source_place *place, uint64_t i,
		    const struct fingerprint_rule *rule, bool trust_names)
{
	char path[3 * PLAN_PATH_BYTES_MAX];
	uint64_t slot = slot_of_print(o, i), bytes;
	struct stat st;
	int fd, code = EXIT_DONE;

	if (!origin_own_file(o, p, slot, path, &bytes))
		return EXIT_DONE;
	/* First look, then open: to open a FIFO waits, and to open a device may do something. */
	if (fstatat(place->root_fd, path, &st, 0) != 0)
		return go_without(place, path);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != bytes ||
	    (!trust_names && o->entry[slot].written_ns != files_ns(&st.st_mtim)))
		return EXIT_DONE;
	fd = openat(place->root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return go_without(place, path);
	if (!fingerprint_take(fd, bytes, rule, o->print[i]))
		code = go_without(place, path);
	close(fd);
	return code;
}

int origin_take_prints(struct origin *now, const struct plan *p, const struct source_place *place, struct stored *s,
		       bool trust_names)
{
	struct fingerprint_rule rule = origin_rule(now);
	int code = EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && i < now->own_print_count; i++)
		code = interrupted() ? EXIT_INTERRUPTED : take_own(now, p, place, i, &rule, trust_names);
	for (uint64_t i = 0; code == EXIT_DONE && i < now->file_count; i++) {
		code = interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
		if (code == EXIT_DONE && !p->file[i].how)
			code = stored_take_print(s, (uint32_t)i, &rule, now->print[now->own_print_count + i]);
	}
	return code;
}

/* ---- comparing them ---- */

static bool is_written_then(const struct origin *then, const struct origin *now, uint64_t slot)
{
	return origin_at(then, slot)->written_ns == origin_at(now, slot)->written_ns;
}

/* If a fingerprint is missing, its file could not be read.  The converter reports that. */
static bool is_same_print(const struct origin *then, const struct origin *now, uint64_t i)
{
	if (!has_print(then, i) || !has_print(now, i))
		return true;
	return !memcmp(then->print[i], now->print[i], FINGERPRINT_BYTES);
}

bool origin_same_prints(const struct origin *then, const struct origin *now, uint64_t *slot)
{
	for (uint64_t i = 0; i < print_count(now); i++) {
		*slot = slot_of_print(now, i);
		if (!is_same_print(then, now, i))
			return false;
	}
	return true;
}

/* Fingerprints are the same: is every byte? */
static bool is_proven(const struct origin *then, const struct origin *now, const struct plan *p, uint64_t slot)
{
	char path[3 * PLAN_PATH_BYTES_MAX];
	uint64_t i, bytes;

	if (!print_of_slot(now, slot, &i) || !has_print(then, i) || !has_print(now, i))
		return false;
	if (slot >= origin_own_slots(now))
		bytes = p->file[slot - origin_own_slots(now)].bytes;
	else if (!origin_own_file(now, p, slot, path, &bytes))
		return false;
	return bytes <= origin_rule(now).whole_bytes;
}

static bool is_entry_then(const struct origin *then, const struct origin *now, const struct plan *p, uint64_t slot)
{
	return origin_at(then, slot)->changed_ns == origin_at(now, slot)->changed_ns || is_proven(then, now, p, slot);
}

/* The first file that is not as it was.  Times of change count from slot `entries_from` on. */
static enum change find_change(const struct origin *then, const struct origin *now, const struct plan *p,
			       bool trust_names, uint64_t entries_from, uint64_t *slot)
{
	uint64_t end = origin_own_slots(now) + now->file_count;

	for (*slot = 0; !trust_names && *slot < end; ++*slot)
		if (!is_written_then(then, now, *slot))
			return WRITTEN;
	if (!origin_same_prints(then, now, slot))
		return BYTES;
	for (*slot = entries_from; !trust_names && *slot < end; ++*slot)
		if (!is_entry_then(then, now, p, *slot))
			return ENTRY;
	return SAME;
}

static int refuse(const struct origin *then, const struct origin *now, const struct plan *p,
		  const struct origin_words *words, enum change change, uint64_t slot)
{
	char path[3 * PLAN_PATH_BYTES_MAX], before[ORIGIN_TIME_CHARS], after[ORIGIN_TIME_CHARS];
	const struct origin_entry *a = origin_at(then, slot), *b = origin_at(now, slot);

	origin_path(now, p, slot, path);
	if (change == WRITTEN)
		return fail(EXIT_MISMATCH,
			    "%s/%s: changed since the plan was made: written %s then, %s now; to pack it as it is, "
			    "%s; if only its time differs, as in a copy, add --trust-names",
			    words->root, path, origin_time_text(a->written_ns, before),
			    origin_time_text(b->written_ns, after), words->anew);
	if (change == BYTES)
		return fail(EXIT_MISMATCH,
			    "%s/%s: changed since the plan was made: it has other bytes of the same size; bring back "
			    "the file of then, or %s",
			    words->root, path, words->anew);
	return fail(EXIT_MISMATCH,
		    "%s/%s: touched since the plan was made: its time of change was %s then, and is %s now, so it may "
		    "have other bytes; to pack it as it is, %s; if its bytes are the same, as after chmod or in a "
		    "copy, add --trust-names",
		    words->root, path, origin_time_text(a->changed_ns, before), origin_time_text(b->changed_ns, after),
		    words->anew);
}

bool origin_is_same(const struct origin *then, const struct origin *now, const struct plan *p, bool trust_names)
{
	uint64_t slot;

	return then->per_input == now->per_input && find_change(then, now, p, trust_names, 0, &slot) == SAME;
}

int origin_compare(const struct origin *then, const struct origin *now, const struct plan *p,
		   const struct origin_words *words, bool trust_names)
{
	uint64_t slot;
	enum change change;

	if (then->per_input != now->per_input)
		return fail(EXIT_BAD, "the times of the sources in .shardpack/sources are damaged, or of another plan");
	change = find_change(then, now, p, trust_names, origin_own_slots(now), &slot);
	return change == SAME ? EXIT_DONE : refuse(then, now, p, words, change, slot);
}

uint64_t origin_newest(const struct origin *then, const struct origin *now, const struct plan *p, uint64_t *slot)
{
	uint64_t end = origin_own_slots(now) + now->file_count, newest_ns = 0, ns;
	bool all_proven = true;

	*slot = now->name_slot;
	for (uint64_t i = 0; i < end; i++) {
		const struct origin_entry *e = origin_at(now, i);

		if (e->written_ns == ORIGIN_NO_TIME || (then && is_proven(then, now, p, i)))
			continue;
		all_proven = false;
		ns = e->written_ns > e->changed_ns ? e->written_ns : e->changed_ns;
		if (ns > newest_ns) {
			newest_ns = ns;
			*slot = i;
		}
	}
	if (all_proven || now->name_ns <= newest_ns)
		return newest_ns;
	*slot = now->name_slot;
	return now->name_ns;
}

/* ---- those of some ordinals ---- */

struct walk {
	const struct origin *then, *now; /* `now` only for check_entry() */
	const struct plan *plan;
	const struct origin_words *words;
	int root_fd;
};

/* Each slot of the inputs at ordinals [first, first + count). */
static int each_slot(const struct walk *w, uint64_t first, uint64_t count,
		     int (*check)(const struct walk *w, uint64_t slot))
{
	uint64_t per_input = w->then->per_input;
	int code = EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && i < count * per_input; i++)
		code = check(w, plan_input_at(w->plan, first + i / per_input) * per_input + i % per_input);
	return code;
}

static int check_entry(const struct walk *w, uint64_t slot)
{
	return is_entry_then(w->then, w->now, w->plan, slot) ? EXIT_DONE
							     : refuse(w->then, w->now, w->plan, w->words, ENTRY, slot);
}

int origin_check_packed(const struct origin *then, const struct origin *now, const struct plan *p,
			const struct origin_words *words, uint64_t first, uint64_t count)
{
	return each_slot(&(struct walk){then, now, p, words, -1}, first, count, check_entry);
}

/* The file of the slot, if it has one. */
static int check_written(const struct walk *w, uint64_t slot)
{
	char path[3 * PLAN_PATH_BYTES_MAX], before[ORIGIN_TIME_CHARS], after[ORIGIN_TIME_CHARS];
	uint64_t bytes, then_ns = w->then->entry[slot].written_ns;
	const char *root = w->words->root;
	struct stat st;

	if (!origin_own_file(w->then, w->plan, slot, path, &bytes))
		return EXIT_DONE;
	if (fstatat(w->root_fd, path, &st, 0) != 0)
		return errno == ENOENT ? EXIT_DONE : fail(EXIT_IO, "%s/%s: %s", root, path, strerror(errno));
	if (files_ns(&st.st_mtim) == then_ns)
		return EXIT_DONE;
	return fail(EXIT_MISMATCH,
		    "%s/%s: changed while the dataset was built: written %s when it was read, %s now; when nothing "
		    "writes to it any more, %s",
		    root, path, origin_time_text(then_ns, before), origin_time_text(files_ns(&st.st_mtim), after),
		    w->words->anew);
}

int origin_check_written(const struct origin *then, const struct plan *p, int root_fd, const struct origin_words *words,
			 uint64_t first, uint64_t count)
{
	return each_slot(&(struct walk){then, NULL, p, words, root_fd}, first, count, check_written);
}

int origin_look_again(struct origin *now, const struct origin *then, const struct plan *p,
		      const struct source_place *place, struct stored *s, bool trust_names)
{
	int code = origin_share(now, then);

	for (uint64_t i = 0; code == EXIT_DONE && i < now->file_count; i++)
		if (!p->file[i].how)
			now->file_entry[i] = origin_entry_of(stored_stat(s, (uint32_t)i));
	return code == EXIT_DONE ? origin_take_prints(now, p, place, s, trust_names) : code;
}

int origin_add_prints(const struct origin *then, const struct origin *now, const char *path)
{
	int fd = -1, code = EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && i < print_count(then); i++) {
		if (has_print(then, i) || !has_print(now, i))
			continue;
		fd = fd < 0 ? open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW) : fd;
		if (fd < 0 || pwrite(fd, now->print[i], FINGERPRINT_BYTES,
				     (off_t)((uint8_t *)then->print[i] - (uint8_t *)then->data)) != FINGERPRINT_BYTES)
			code = fail(EXIT_IO, "%s: %s", path, strerror(errno));
	}
	if (fd >= 0 && fsync(fd) != 0 && code == EXIT_DONE)
		code = fail(EXIT_IO, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return code;
}
