/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_value.c - one value of the command line: text to number, size, choice
 *
 * Pure.  A parser either takes the whole text or says what it must be; the caller names the option
 * and quotes the text.  Numbers are decimal digits only: no sign, no blanks, no 0x, nothing that
 * strtoull would forgive.
 */
#include "tools/common/cli_private.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "libshard/base/words.h"

#define WORD_MAX  40 /* longer words are not guessed at */
#define WHY_BYTES 160

/* ---- which name was probably meant ---- */

static unsigned min_u(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap neighbours) between two words of at most WORD_MAX. */
static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][WORD_MAX + 1]; /* row i is about the first i letters of `a`; three are enough */
	size_t a_length = strlen(a), b_length = strlen(b);

	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_length; i++) {
		unsigned *row = rows[i % 3], *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = min_u(min_u(up[j], row[j - 1]) + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min_u(row[j], up2[j - 2] + 1);
		}
	}
	return rows[a_length % 3][b_length];
}

/*
 * A name that the typed word begins wins ("res" for "resize"); else the one that is the fewest edits
 * away, where swapping two neighbours is one edit, and only if those are few for the length of the
 * word: a wrong guess is worse than none.
 */
int cli_nearest(const char *typed, const char *const *candidates, size_t candidate_count)
{
	size_t length = strlen(typed);
	unsigned least = (unsigned)(length + 1) / 3 + 1; /* one more than is allowed */
	int found = -1;

	if (length < 2 || length > WORD_MAX)
		return -1;
	for (size_t i = 0; i < candidate_count; i++)
		if (!strncmp(candidates[i], typed, length))
			return (int)i;
	for (size_t i = 0; i < candidate_count; i++) {
		unsigned edits;

		if (strlen(candidates[i]) > WORD_MAX)
			continue;
		edits = distance(typed, candidates[i]);
		if (edits < least && edits < length) {
			least = edits;
			found = (int)i;
		}
	}
	return found;
}

/* ---- values ---- */

/*
 * Digits at *text into *value; moves *text past them.  False if there is none, and *value
 * is 0; or if they overflow, and *value is the maximum.
 */
static bool take_digits(const char **text, uint64_t *value)
{
	const char *start = *text;

	*value = 0;
	for (; **text >= '0' && **text <= '9'; (*text)++) {
		unsigned digit = (unsigned)(**text - '0');

		if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, digit, value)) {
			*value = UINT64_MAX;
			return false;
		}
	}
	return *text > start;
}

/* A size as short as it can be written exactly: 64M, 1536. */
static void size_text(uint64_t bytes, char *out, size_t out_bytes)
{
	static const char units[] = "TGMK";

	for (unsigned i = 0; i < 4; i++) {
		unsigned shift = 40 - 10 * i;

		if (bytes && bytes % (UINT64_C(1) << shift) == 0) {
			snprintf(out, out_bytes, "%" PRIu64 "%c", bytes >> shift, units[i]);
			return;
		}
	}
	snprintf(out, out_bytes, "%" PRIu64, bytes);
}

void cli_range_text(const struct cli_option *option, char *out, size_t out_bytes)
{
	char min[32], max[32];

	out[0] = 0;
	if (option->kind == CLI_SIZE) {
		size_text(option->min, min, sizeof(min));
		size_text(option->max, max, sizeof(max));
	} else if (option->kind == CLI_U64 || option->kind == CLI_COUNT_OR_PERCENT) {
		snprintf(min, sizeof(min), "%" PRIu64, option->min);
		snprintf(max, sizeof(max), "%" PRIu64, option->max);
	} else {
		return;
	}
	if (option->max && option->max == option->min)
		snprintf(out, out_bytes, "%s", min);
	else if (option->max)
		snprintf(out, out_bytes, "%s to %s", min, max);
	else if (option->min)
		snprintf(out, out_bytes, "%s or more", min);
}

static bool in_range(const struct cli_option *option, uint64_t value)
{
	return value >= option->min && (!option->max || value <= option->max);
}

static bool set_u64(const struct cli_option *option, const char *text, uint64_t *out, char *why, size_t why_bytes)
{
	char range[80];
	uint64_t value;
	const char *rest = text;
	bool overflow = !take_digits(&rest, &value) && value;

	if (!overflow && rest > text && !*rest && in_range(option, value)) {
		*out = value;
		return true;
	}
	cli_range_text(option, range, sizeof(range));
	if (!range[0])
		snprintf(range, sizeof(range), "0 to %" PRIu64, UINT64_MAX);
	snprintf(why, why_bytes, "%s %s", rest > text && (overflow || !*rest) ? "must be" : "must be a whole number,",
		 range);
	return false;
}

/* The power of 1024 that a suffix means, or -1. */
static int suffix_shift(const char *suffix)
{
	static const char units[] = "KMGT";
	const char *unit;

	if (!*suffix || !strcmp(suffix, "B"))
		return 0;
	unit = strchr(units, *suffix >= 'a' ? *suffix - 'a' + 'A' : *suffix);
	if (!unit || (suffix[1] && strcmp(suffix + 1, "iB")))
		return -1;
	return 10 * (int)(unit - units + 1);
}

static bool set_size(const struct cli_option *option, const char *text, uint64_t *out, char *why, size_t why_bytes)
{
	char range[80];
	const char *rest = text;
	uint64_t value;
	bool taken = take_digits(&rest, &value);
	int shift = suffix_shift(rest);

	if (!taken && !value) {
		shift = -1;
	} else if (taken && shift >= 0 && value <= UINT64_MAX >> shift && in_range(option, value << shift)) {
		*out = value << shift;
		return true;
	}
	cli_range_text(option, range, sizeof(range));
	if (taken && shift < 0 && strchr("KMGTkmgt", rest[0]) && !strcmp(rest + 1, "B"))
		snprintf(why, why_bytes, "%s may mean a power of 1000 or of 1024; for 1024, write %c or %ciB", rest,
			 rest[0], rest[0]);
	else if (shift < 0 && taken)
		snprintf(why, why_bytes, "must be a number of bytes, which may end in K, M, G or T, such as 64M%s%s",
			 range[0] ? "; " : "", range);
	else if (shift < 0)
		snprintf(why, why_bytes, "must be a size such as 64M%s%s", range[0] ? ", " : "", range);
	else
		snprintf(why, why_bytes, "must be %s", range[0] ? range : "less than 2^64 bytes");
	return false;
}

bool cli_size(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	const struct cli_option option = {.kind = CLI_SIZE, .min = min, .max = max};
	char why[WHY_BYTES];

	return set_size(&option, text, out, why, sizeof(why));
}

static bool set_choice(const struct cli_option *option, const char *text, int *out, char *why, size_t why_bytes)
{
	const char *candidates[CLI_OPTIONS_MAX], *choice;
	char copies[CLI_OPTIONS_MAX][32], list[WHY_BYTES];
	unsigned count = 0;
	size_t length;
	int nearest;

	for (; count < CLI_OPTIONS_MAX && (length = cli_choice(option->choices, count, &choice)); count++) {
		snprintf(copies[count], sizeof(copies[count]), "%.*s", (int)length, choice);
		candidates[count] = copies[count];
		if (!strcmp(copies[count], text)) {
			*out = (int)count;
			return true;
		}
	}
	nearest = cli_nearest(text, candidates, count);
	cli_choices_text(option->choices, "or ", list, sizeof(list));
	if (nearest >= 0)
		snprintf(why, why_bytes, "must be %s; did you mean '%s'?", list, candidates[nearest]);
	else
		snprintf(why, why_bytes, "must be %s", list);
	return false;
}

/*
 * "2%", "0.5%", "0.0001%": at most four digits after the point, which parts per million hold
 * exactly.
 */
static bool take_percent(const char *text, uint32_t *parts_per_million)
{
	uint64_t whole, parts = 0;
	uint32_t weight = 1000;

	if (!take_digits(&text, &whole) || whole > 100)
		return false;
	if (*text == '.') {
		text++;
		if (*text == '%')
			return false;
		for (; *text >= '0' && *text <= '9' && weight; text++, weight /= 10)
			parts += (uint64_t)(*text - '0') * weight;
	}
	parts += whole * 10000;
	if (strcmp(text, "%") || parts > 1000000)
		return false;
	*parts_per_million = (uint32_t)parts;
	return true;
}

static bool set_amount(const struct cli_option *option, const char *text, struct cli_amount *out, char *why,
		       size_t why_bytes)
{
	struct cli_amount amount = {0};

	if (strchr(text, '%')) {
		amount.is_percent = true;
		if (!take_percent(text, &amount.parts_per_million)) {
			snprintf(why, why_bytes, "must be 0%% to 100%%, with at most 4 decimals, or a count");
			return false;
		}
	} else if (!set_u64(option, text, &amount.count, why, why_bytes)) {
		size_t used = strlen(why);

		snprintf(why + used, why_bytes - used, ", or a percentage such as 2%%");
		return false;
	}
	*out = amount;
	return true;
}

static bool set_part(const char *text, struct cli_part *out, char *why, size_t why_bytes)
{
	struct cli_part part;

	if (take_digits(&text, &part.idx) && *text++ == '/' && take_digits(&text, &part.count) && !*text &&
	    part.idx < part.count) {
		*out = part;
		return true;
	}
	snprintf(why, why_bytes, "must be k/n with k from 0 to n-1, such as 0/4");
	return false;
}

bool cli_value_is_here(const struct cli_option *option, const char *text, char *why, size_t why_bytes)
{
	if (option->kind == CLI_DIR && !strcmp(text, "-")) {
		snprintf(why, why_bytes, "must be a folder, not a stream; for a folder of that name type ./-");
		return false;
	}
	if ((option->kind != CLI_FILE && option->kind != CLI_DIR) || !text_is_url(text))
		return true;
	snprintf(why, why_bytes,
		 URL_REMEDY
		 ".  Download or upload it with another program; for a local path of that name type ./%.40s%s",
		 text, strlen(text) > 40 ? "..." : "");
	return false;
}

bool cli_value_set(const struct cli_option *option, const char *text, void *options, char *why, size_t why_bytes)
{
	char *member = (char *)options + option->offset;

	if (!text[0]) {
		snprintf(why, why_bytes, "must not be empty");
		return false;
	}
	switch (option->kind) {
	case CLI_FLAG:
	case CLI_HELP:
		break; /* never has a value: see cli.c */
	case CLI_FILE:
	case CLI_DIR:
		if (!cli_value_is_here(option, text, why, why_bytes))
			return false;
		*(const char **)(void *)member = text;
		return true;
	case CLI_STRING:
		*(const char **)(void *)member = text;
		return true;
	case CLI_U64:
		return set_u64(option, text, (uint64_t *)(void *)member, why, why_bytes);
	case CLI_SIZE:
		return set_size(option, text, (uint64_t *)(void *)member, why, why_bytes);
	case CLI_CHOICE:
		return set_choice(option, text, (int *)(void *)member, why, why_bytes);
	case CLI_COUNT_OR_PERCENT:
		return set_amount(option, text, (struct cli_amount *)(void *)member, why, why_bytes);
	case CLI_PART:
		return set_part(text, (struct cli_part *)(void *)member, why, why_bytes);
	}
	assert(!"an option's kind is one of enum cli_kind");
	return false;
}
