/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finding.c - see finding.h
 */
#include "libshard/doctor/finding.h"
#include "shard_gpu.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void finding_set(char text[FINDING_TEXT_BYTES], const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, FINDING_TEXT_BYTES, fmt, args);
	va_end(args);
}

void finding_add(char text[FINDING_TEXT_BYTES], const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + used, FINDING_TEXT_BYTES - used, fmt, args);
	va_end(args);
}

void finding_number(struct finding *f, const char *name, uint64_t value)
{
	if (value != UINT64_MAX && f->fact_count < FINDING_FACTS)
		f->fact[f->fact_count++] = (struct shard_fact){name, NULL, value};
}

void finding_text(struct finding *f, const char *name, const char *text)
{
	if (text[0] && f->fact_count < FINDING_FACTS)
		f->fact[f->fact_count++] = (struct shard_fact){name, text, 0};
}

void finding_quote(struct finding *f, const char *message)
{
	const char *end = strstr(message, "; ");

	finding_set(f->found, "%.*s", end ? (int)(end - message) : (int)strlen(message), message);
	if (end)
		finding_set(f->advice, "%.*s", (int)(strcspn(end + 2, ";")), end + 2);
}

void finding_tell(const struct shard_doctor_options *o, const struct finding *f)
{
	const struct shard_finding out = {
		.name = f->name,
		.found = f->found,
		.so = f->so,
		.advice = f->advice,
		.fact = f->fact,
		.fact_count = f->fact_count,
		.verdict = f->verdict,
	};

	o->finding(o->context, &out);
}

const char *size_text(char out[SIZE_CHARS], uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	size_t i = 0;

	while (value >= 1023.95 && i < 5) {
		value /= 1024;
		i++;
	}
	if (bytes < 1024)
		snprintf(out, SIZE_CHARS, "%" PRIu64 " B", bytes);
	else
		snprintf(out, SIZE_CHARS, "%.1f %s", value, units[i]);
	return out;
}
