// SPDX-License-Identifier: GPL-2.0
/* The other function sample_twice() of probe-sample-c */
#include <linux/compiler.h>
#include <linux/types.h>

#include "probe-sample-c.h"

static noinline __noipa u64 sample_twice(const struct sample_point *point, u8 flags, s64 weight)
{
	return point->x + flags + weight;
}

void sample_twice_other(void)
{
	struct sample_point point = { .x = 5, .y = 6 };

	sample_twice(&point, 249, -8);
}
