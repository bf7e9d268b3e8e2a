/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __BTF_FUNC_TEST_H
#define __BTF_FUNC_TEST_H

unsigned long btf_func_test_other(void);

#endif /* __BTF_FUNC_TEST_H */
