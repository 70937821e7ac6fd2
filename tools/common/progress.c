/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - how far the work is, on stderr
 *
 * Counting (atomics), arithmetic (progress_state_at, progress_line: pure, time is an
 * argument) and drawing (through message.c, which owns the terminal) are kept apart.
 */
#include "tools/common/progress.h"

#include <stdio.h>
#include <string.h>

#include "libshard/base/clock.h"
#include "tools/common/human.h"
#include "tools/common/message.h"

#define NS_PER_SECOND  1e9
#define MARK_EVERY_NS  UINT64_C(500000000) /* times PROGRESS_MARKS is the 16 s that rates look back */
#define PLAIN_EVERY_NS UINT64_C(10000000000)
#define RATE_LEAST_NS  UINT64_C(200000000) /* a rate over less time than this is noise */
#define LINE_BYTES     512

enum { /* the parts of a line that may be left out, least important first */
       PART_BYTE_RATE = 1,
       PART_RATE = 2,
       PART_UNIT = 4,
       PART_ETA = 8,
       PART_BAD = 16,
       PART_ALL = 31,
};

void progress_start(struct progress *p, const char *label, const char *unit, uint64_t total_count)
{
	memset(p, 0, sizeof(*p));
	p->label = label;
	p->unit = unit;
	p->total_count = total_count;
	p->start_ns = clock_now_ns();
}

void progress_resume(struct progress *p, uint64_t count, uint64_t bytes)
{
	p->resumed_count = count;
	p->resumed_bytes = bytes;
	progress_add(p, count, bytes, 0);
}

void progress_add(struct progress *p, uint64_t count, uint64_t bytes, uint64_t bad)
{
	/* The sums publish nothing else, so they need no order between them. */
	atomic_fetch_add_explicit(&p->count, count, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->bytes, bytes, memory_order_relaxed);
	if (bad)
		atomic_fetch_add_explicit(&p->bad, bad, memory_order_relaxed);
}

void progress_state_at(struct progress *p, uint64_t now_ns, struct progress_state *state)
{
	struct progress_mark now = {now_ns, atomic_load_explicit(&p->count, memory_order_relaxed),
				    atomic_load_explicit(&p->bytes, memory_order_relaxed)};
	struct progress_mark old;

	if (!p->mark_count) { /* the start is the first mark */
		p->marks[0] = (struct progress_mark){p->start_ns, p->resumed_count, p->resumed_bytes};
		p->mark_count = 1;
	}
	if (now_ns - p->marks[(p->mark_count - 1) % PROGRESS_MARKS].now_ns >= MARK_EVERY_NS) {
		p->marks[p->mark_count % PROGRESS_MARKS] = now;
		p->mark_count++;
	}
	old = p->marks[p->mark_count < PROGRESS_MARKS ? 0 : p->mark_count % PROGRESS_MARKS]; /* the oldest */
	*state = (struct progress_state){
		.label = p->label,
		.unit = p->unit,
		.count = now.count,
		.total_count = p->total_count,
		.bytes = now.bytes,
		.bad = atomic_load_explicit(&p->bad, memory_order_relaxed),
	};
	if (now_ns - old.now_ns >= RATE_LEAST_NS) {
		double seconds = (double)(now_ns - old.now_ns) / NS_PER_SECOND;

		state->count_per_second = (double)(now.count - old.count) / seconds;
		state->bytes_per_second = (double)(now.bytes - old.bytes) / seconds;
	}
}

/* Append to a string; what does not fit is cut, and the caller sees that by the length. */
static void append(char *out, size_t out_bytes, const char *before, const char *text, const char *after)
{
	size_t used = strlen(out);

	snprintf(out + used, out_bytes - used, "%s%s%s", before, text, after);
}

static void append_eta(char *out, size_t out_bytes, const struct progress_state *state)
{
	char text[HUMAN_CHARS];
	double seconds;

	if (!(state->count_per_second > 0) || state->count >= state->total_count)
		return;
	seconds = (double)(state->total_count - state->count) / state->count_per_second;
	if (seconds > 1e9) /* 30 years: there is no honest answer */
		return;
	seconds = seconds < 1 ? 1 : (double)(uint64_t)(seconds + 0.5); /* tenths would only flicker */
	if (seconds < 10)
		snprintf(text, sizeof(text), "%d s", (int)seconds);
	else
		human_duration(text, (uint64_t)(seconds * NS_PER_SECOND));
	append(out, out_bytes, "  ETA ", text, "");
}

static const char *quantity(char out[HUMAN_CHARS], const struct progress_state *state, uint64_t count)
{
	return state->unit ? human_count(out, count) : human_bytes(out, count);
}

/* " images", or " image" of one. */
static void append_unit(char *out, size_t out_bytes, const char *unit, uint64_t count)
{
	size_t bytes = strlen(unit), used = strlen(out);

	if (count == 1 && bytes && unit[bytes - 1] == 's')
		bytes--;
	snprintf(out + used, out_bytes - used, " %.*s", (int)bytes, unit);
}

static void compose(char *out, size_t out_bytes, const struct progress_state *state, unsigned parts)
{
	char text[HUMAN_CHARS];

	out[0] = 0;
	append(out, out_bytes, state->label, " ", quantity(text, state, state->count));
	if (state->total_count)
		append(out, out_bytes, "/", quantity(text, state, state->total_count), "");
	if (parts & PART_UNIT && state->unit)
		append_unit(out, out_bytes, state->unit, state->total_count ? state->total_count : state->count);
	if (state->total_count) {
		/* Rounded down: 100% is when all is done, and not before. */
		double share = (double)state->count * 100 / (double)state->total_count;
		int percent = state->count >= state->total_count ? 100 : share >= 99 ? 99 : (int)share;

		snprintf(text, sizeof(text), "%3d%%", percent);
		append(out, out_bytes, "  ", text, "");
	}
	if (parts & PART_RATE && state->unit && state->count_per_second > 0)
		append(out, out_bytes, "  ", human_rate(text, state->count_per_second), "");
	if (parts & PART_BYTE_RATE && state->bytes_per_second > 0)
		append(out, out_bytes, "  ", human_byte_rate(text, state->bytes_per_second), "");
	if (parts & PART_ETA)
		append_eta(out, out_bytes, state);
	if (parts & PART_BAD && state->bad)
		append(out, out_bytes, "  ", human_count(text, state->bad), " bad");
}

void progress_line(char *out, size_t out_bytes, const struct progress_state *state, unsigned columns)
{
	unsigned parts = PART_ALL;

	compose(out, out_bytes, state, parts);
	for (unsigned part = PART_BYTE_RATE; strlen(out) > columns && part <= PART_BAD; part <<= 1) {
		parts &= ~part;
		compose(out, out_bytes, state, parts);
	}
	if (columns < out_bytes)
		out[columns] = 0; /* narrower than the counts: cut, so that the line never wraps */
}

void progress_tick(struct progress *p)
{
	struct progress_state state;
	char line[LINE_BYTES];
	uint64_t now_ns = clock_now_ns();
	uint64_t since_ns = now_ns - (p->drawn_ns ? p->drawn_ns : p->start_ns);
	unsigned columns = message_columns();

	if (!message_shows(MESSAGE_NORMAL))
		return;
	progress_state_at(p, now_ns, &state); /* each time: it keeps the marks that rates need */
	if (since_ns < (columns ? PROGRESS_TICK_NS : PLAIN_EVERY_NS))
		return;
	p->drawn_ns = now_ns;
	if (columns) {
		progress_line(line, sizeof(line), &state, columns - 1); /* the last column wraps on some */
		message_status(line);
	} else {
		progress_line(line, sizeof(line), &state, LINE_BYTES);
		note("%s", line);
	}
}

void progress_abandon(struct progress *p)
{
	p->drawn_ns = 0;
	if (message_columns())
		message_status(NULL);
}

void progress_finish(struct progress *p)
{
	char count[HUMAN_CHARS], bytes[HUMAN_CHARS], time[HUMAN_CHARS], rate[HUMAN_CHARS], byte_rate[HUMAN_CHARS];
	char line[LINE_BYTES] = "";
	uint64_t elapsed_ns = clock_now_ns() - p->start_ns;
	double seconds = (double)(elapsed_ns ? elapsed_ns : 1) / NS_PER_SECOND;

	progress_abandon(p);
	append(line, sizeof(line), p->label, " ", human_count(count, p->count));
	append_unit(line, sizeof(line), p->unit, p->count);
	if (p->bytes)
		append(line, sizeof(line), ", ", human_bytes(bytes, p->bytes), "");
	append(line, sizeof(line), " in ", human_duration(time, elapsed_ns), "");
	append(line, sizeof(line), " (", human_rate(rate, (double)(p->count - p->resumed_count) / seconds), "");
	if (p->bytes)
		append(line, sizeof(line), ", ",
		       human_byte_rate(byte_rate, (double)(p->bytes - p->resumed_bytes) / seconds), "");
	append(line, sizeof(line), ")", "", "");
	if (p->resumed_count)
		append(line, sizeof(line), ", ", human_count(count, p->resumed_count), " of them done before");
	if (p->bad)
		append(line, sizeof(line), ", ", human_count(count, p->bad), " bad");
	note("%s", line);
}
