/* SPDX-License-Identifier: Apache-2.0 */
/*
 * human.c - numbers as people read them
 *
 * Pure.  Sizes and durations round to the nearest shown digit, and a value that rounds up
 * to the next unit is shown in that unit: never "1024.0 KiB", never "60 s".
 */
#include "tools/common/human.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_SECOND UINT64_C(1000000000)

const char *human_bytes(char out[HUMAN_CHARS], uint64_t bytes)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	uint64_t unit = 1, whole, tenth;
	unsigned name_idx = 0;

	if (bytes < 1024) {
		snprintf(out, HUMAN_CHARS, "%" PRIu64 " B", bytes);
		return out;
	}
	while (name_idx < 6 && bytes / unit >= 1024) {
		unit *= 1024;
		name_idx++;
	}
	whole = bytes / unit;
	tenth = (bytes % unit * 10 + unit / 2) / unit; /* unit is at most 2^60: times 10 fits */
	if (tenth == 10) {
		whole++;
		tenth = 0;
	}
	if (whole == 1024 && name_idx < 6) {
		whole = 1;
		name_idx++;
	}
	snprintf(out, HUMAN_CHARS, "%" PRIu64 ".%" PRIu64 " %s", whole, tenth, names[name_idx]);
	return out;
}

const char *human_count(char out[HUMAN_CHARS], uint64_t count)
{
	char digits[24];
	int digit_count = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *to = out;

	for (int i = 0; i < digit_count; i++) {
		if (i && (digit_count - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = 0;
	return out;
}

const char *human_duration(char out[HUMAN_CHARS], uint64_t duration_ns)
{
	uint64_t tenths =
		duration_ns / (NS_PER_SECOND / 10) + (duration_ns % (NS_PER_SECOND / 10) >= NS_PER_SECOND / 20);
	uint64_t seconds = (tenths + 5) / 10;
	uint64_t minutes = (seconds + 30) / 60;

	if (tenths < 100)
		snprintf(out, HUMAN_CHARS, "%" PRIu64 ".%" PRIu64 " s", tenths / 10, tenths % 10);
	else if (seconds < 60)
		snprintf(out, HUMAN_CHARS, "%" PRIu64 " s", seconds);
	else if (seconds < 3600)
		snprintf(out, HUMAN_CHARS, "%" PRIu64 "m %02" PRIu64 "s", seconds / 60, seconds % 60);
	else if (minutes < 100 * 60)
		snprintf(out, HUMAN_CHARS, "%" PRIu64 "h %02" PRIu64 "m", minutes / 60, minutes % 60);
	else
		snprintf(out, HUMAN_CHARS, "%" PRIu64 "d %02" PRIu64 "h", minutes / 1440, minutes % 1440 / 60);
	return out;
}

/* Rates come from divisions: what is not a positive number is shown as 0. */
static uint64_t rounded(double value)
{
	if (!(value > 0))
		return 0;
	return value < 1.8e19 ? (uint64_t)(value + 0.5) : UINT64_MAX;
}

const char *human_rate(char out[HUMAN_CHARS], double per_second)
{
	if (per_second > 0 && per_second < 9.95) {
		snprintf(out, HUMAN_CHARS, "%.1f/s", per_second);
	} else {
		human_count(out, rounded(per_second));
		strcat(out, "/s");
	}
	return out;
}

const char *human_byte_rate(char out[HUMAN_CHARS], double bytes_per_second)
{
	human_bytes(out, rounded(bytes_per_second));
	strcat(out, "/s");
	return out;
}
