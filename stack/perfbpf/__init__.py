# SPDX-License-Identifier: GPL-2.0
"""The repository's own tooling; the commands in stack/ are its front ends.

It runs on the distribution's Python (3.11 or later) with nothing but Debian's
packages. The commands find it beside them; elsewhere set PYTHONPATH=stack.
"""
