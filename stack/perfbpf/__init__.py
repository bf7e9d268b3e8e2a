# SPDX-License-Identifier: GPL-2.0
"""What is behind the commands in stack/: see stack/README.md."""
