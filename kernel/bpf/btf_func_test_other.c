// SPDX-License-Identifier: GPL-2.0
/*
 * For btf_func_test.c: a function of the same name with other arguments
 */
#include <linux/compiler.h>
#include <linux/list.h>

#include "btf_func_test.h"

static noinline __used bool btf_func_same_name(const struct list_head *head)
{
	return list_empty(head);
}

unsigned long btf_func_test_other(void)
{
	return (unsigned long)btf_func_same_name;
}
