// SPDX-License-Identifier: GPL-2.0
#include <bpf/libbpf.h>

int main(void)
{
	return bpf_program__instantiate(NULL, 1, NULL) ? 0 : -1;
}
