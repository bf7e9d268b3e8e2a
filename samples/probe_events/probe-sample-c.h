/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PROBE_SAMPLE_C_H
#define PROBE_SAMPLE_C_H

struct sample_point {
	int x;
	int y;
};

void sample_twice_other(void);
void sample_float_other(void);

#endif /* PROBE_SAMPLE_C_H */
