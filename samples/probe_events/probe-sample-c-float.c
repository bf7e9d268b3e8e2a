// SPDX-License-Identifier: GPL-2.0
/* A function with arguments in floating-point registers; only called with these in use. */
#include <linux/compiler.h>

#include "probe-sample-c.h"

struct sample_real {
	double	value;
};

static noinline __noipa int sample_float(int before, float value, struct sample_point *point,
					 struct sample_real real, int after)
{
	return before + (int)value + (int)real.value + after;
}

void sample_float_other(void)
{
	struct sample_point point = { .x = 7, .y = 8 };
	struct sample_real real = { .value = 2.5 };

	sample_float(61, 1.5, &point, real, 62);
}
