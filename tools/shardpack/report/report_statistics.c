/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_statistics.c - the statistics of a dataset's first image
 */
#include "tools/shardpack/report/report_statistics.h"
#include "shard_pack.h"

#include <math.h>

bool report_statistics(const struct shard_dataset *ds, struct report_statistics *out)
{
	struct shard_moments m;
	struct shard_error err;
	uint32_t field = 0;
	const struct shard_schema *schema = shard_dataset_schema(ds);

	while (field < schema->field_count && !shard_field_channels(&schema->field[field]))
		field++;
	out->channels = field < schema->field_count ? shard_field_channels(&schema->field[field]) : 0;
	for (uint32_t i = 0; i < out->channels; i++) {
		long double mean, square;

		if (shard_dataset_moments(ds, field, i, &m, &err) != SHARD_OK || !m.count)
			return false;
		/* The sums are exact; this is the only rounding. */
		mean = (long double)m.sum / m.count;
		square = ((long double)m.sum_squares_high * 18446744073709551616.0L + m.sum_squares_low) / m.count;
		out->mean[i] = (double)(mean / 255);
		out->deviation[i] = square > mean * mean ? (double)(sqrtl(square - mean * mean) / 255) : 0;
	}
	return out->channels > 0;
}
