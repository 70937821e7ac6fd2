/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_boxes.c - boxes as stdin asks for them, numbers to stdout
 *
 * Not a test but a test's tool, see tests/twin/boxes.py.  One box per line, of an image whose file
 * is WIDTH x HEIGHT:
 *
 *     RESIZE CROP FIT ORIENTATION WIDTH HEIGHT FORMAT A B C D
 *
 * (FIT as in dump_transform.c; FORMAT: 0 corners, 1 sizes)
 *
 * answered by four numbers without loss, or "bad MESSAGE".  CROP 0 stops after the turn.
 */
#include <inttypes.h>

#include "tests/pack/dump.h"
#include "tools/shardpack/images/images.h"

int main(void)
{
	struct transform_options opt = {0};
	uint32_t orientation, width, height;
	unsigned fit, format;
	float box[4];

	while (scanf("%" SCNu32 " %" SCNu32 " %u %" SCNu32 " %" SCNu32 " %" SCNu32 " %u %f %f %f %f", &opt.resize,
		     &opt.crop, &fit, &orientation, &width, &height, &format, &box[0], &box[1], &box[2],
		     &box[3]) == 11) {
		bool lies = turn_axes(orientation).lies;
		struct decode_verdict v;

		opt.fit = (enum transform_fit)fit;
		if (boxes_read((enum boxes_format)format, false, box, 1, box, &v) != DECODE_OK) {
			printf("bad %s\n", v.message);
			continue;
		}
		boxes_turn(orientation, width, height, box, 1);
		if (opt.crop)
			boxes_move(&opt, lies ? height : width, lies ? width : height, box, 1);
		printf("%.9g %.9g %.9g %.9g\n", (double)box[0], (double)box[1], (double)box[2], (double)box[3]);
	}
	return flushed();
}
