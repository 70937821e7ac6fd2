/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.c - what became of an input
 */
#include "tools/shardpack/make/make.h"

#include <stdarg.h>
#include <stdio.h>

bool verdict_set(struct verdict *v, enum outcome outcome, uint32_t reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->message, sizeof(v->message), fmt, ap);
	va_end(ap);
	v->outcome = outcome;
	v->reason = reason;
	return false;
}

bool verdict_of_decoder(struct verdict *v, enum decode_status status, const struct decode_verdict *said)
{
	if (status == DECODE_BAD_INPUT)
		return verdict_set(v, OUTCOME_BAD, (uint32_t)said->reason, "%s", said->message);
	if (status != DECODE_OK)
		return verdict_set(
			v, OUTCOME_STOP, 0,
			"out of memory while it was decoded; use fewer workers with -j, or refuse large images with "
			"--limit pixels=N");
	if (said->reason && !v->reason)
		verdict_set(v, OUTCOME_RECORD, (uint32_t)said->reason, "%s", said->message);
	v->dropped |= said->dropped;
	if (!v->first[0])
		snprintf(v->first, sizeof(v->first), "%s", said->first);
	return true;
}
