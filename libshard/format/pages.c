/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.c - the contents of a shard's header and footer page, as a host struct
 */
#include "libshard/format/pages.h"

#include "libshard/base/bytes.h"

const struct section *pages_find(const struct pages *p, uint32_t type, uint32_t group)
{
	for (uint32_t i = 0; i < p->section_count; i++)
		if (p->section[i].type == type && p->section[i].group == group)
			return &p->section[i];
	return NULL;
}

uint64_t pages_section_start(uint32_t section_align_log2, uint64_t end)
{
	return align_up(end, UINT64_C(1) << section_align_log2);
}
