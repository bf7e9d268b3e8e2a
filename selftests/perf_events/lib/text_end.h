/* SPDX-License-Identifier: GPL-2.0 */
/* Does the range of a KSYMBOL record end where the code ends? For x86-64. */
#ifndef SELFTESTS_PERF_EVENTS_TEXT_END_H
#define SELFTESTS_PERF_EVENTS_TEXT_END_H

#include "ksym_ring.h"

/* Return: what is wrong with the last bytes of @rec's text, or NULL. */
const char *text_end_wrong(const struct ksym_rec *rec);

#endif
