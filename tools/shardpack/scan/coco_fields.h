/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_fields.h - which keys of COCO's annotations become fields
 */
#ifndef SHARD_COCO_COCO_FIELDS_H
#define SHARD_COCO_COCO_FIELDS_H

struct coco_list;
struct request;

/*
 * Make from= of each field what a plan says, "coco:KEY", and boxes those of COCO.  Says what cannot
 * be, and returns the exit code.
 */
int coco_fields_settle(const struct request *r);

/* Has the file what these fields come from, and have its classes room in them?  The same. */
int coco_fields_check(const struct request *r, const struct coco_list *l);

#endif
