/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yolo.h - the text files in which YOLO has boxes
 *
 *   0 0.5 0.25 0.1 0.2     class; middle x and y, width, height, as parts of the image
 *
 * One line for each box; a file without lines is an image without boxes.  No I/O.
 */
#ifndef SHARD_FORMAT_YOLO_H
#define SHARD_FORMAT_YOLO_H

#include <stddef.h>
#include <stdint.h>

#define YOLO_WHY_BYTES 200

struct yolo { /* set the first two, zero the rest */
	const char *at, *end;
	uint64_t line; /* of the last box, from 1 */
};

struct yolo_box {
	int64_t class_idx; /* 0 or more */
	float number[4];
};

enum yolo_status { YOLO_BOX, YOLO_END, YOLO_BAD };

/* The next box.  After BAD, with `why` of YOLO_WHY_BYTES, there is none. */
enum yolo_status yolo_next(struct yolo *y, struct yolo_box *out, char *why);

#endif
