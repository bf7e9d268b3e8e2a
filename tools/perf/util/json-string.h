/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_JSON_STRING_H
#define __PERF_JSON_STRING_H

#include <stdio.h>

void fprintf_json_string(FILE *fp, const char *s);

#endif /* __PERF_JSON_STRING_H */
