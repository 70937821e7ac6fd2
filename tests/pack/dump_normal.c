/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_normal.c - normalised numbers of all samples, to stdout
 *
 * Not a test but a test's tool, see tests/twin/normal.py.  One job per line:
 *
 *     TYPE M M M S S S                   TYPE: 1 f16, 2 bf16, 3 f32; mean and std of three channels
 *
 * answered by 3 x 256 numbers of that type, made from pixels (x, x, x) in planes, and again from
 * interleaved ones; or by the byte 'n' and zeros, as many, if there are none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shardpack/images/images.h"

int main(void)
{
	static struct normal_table table;
	uint8_t src[3 * 256], out[3 * 256 * 4];
	struct normal n;
	unsigned samples;
	uint32_t channel;

	while (scanf("%u %lf %lf %lf %lf %lf %lf", &samples, &n.mean[0], &n.mean[1], &n.mean[2], &n.std[0], &n.std[1],
		     &n.std[2]) == 7) {
		size_t bytes = sizeof(src) * normal_sample_bytes((enum image_samples)samples);
		bool good = normal_fill(&table, (enum image_samples)samples, &n, &channel);

		for (int layout = IMAGE_CHW; layout >= IMAGE_HWC; layout--) {
			for (int i = 0; i < 3 * 256; i++)
				src[i] = (uint8_t)(layout == IMAGE_CHW ? i % 256 : i / 3);
			memset(out, 0, sizeof(out));
			out[0] = 'n';
			if (good)
				normal_apply(&table, src, 256, (enum image_layout)layout, out);
			fwrite(out, 1, bytes, stdout);
		}
	}
	return fflush(stdout) || ferror(stdout);
}
