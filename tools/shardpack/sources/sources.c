/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources.c - the table of sources
 */
#include "tools/shardpack/sources/sources.h"

#include "tools/common/message.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"

const struct source *const source_table[SOURCE_COUNT] = {
	[SOURCE_IMAGES] = &source_images, [SOURCE_ARRAY] = &source_array, [SOURCE_RAW] = &source_raw,
	[SOURCE_TOKENS] = &source_tokens, [SOURCE_CIFAR] = &source_cifar, [SOURCE_MNIST] = &source_mnist,
};

int source_scan(const struct request *r)
{
	int rc;

	r->scan->ignored.keep_names = r->o->report;
	rc = source_table[r->recipe->source]->scan(r);
	if (rc == EXIT_DONE)
		scan_end(r->scan);
	return rc;
}
