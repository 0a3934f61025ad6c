# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The commands that a page of the documentation names."""

import re

from support.images import REPOSITORY

OPERATIONS = REPOSITORY / "docs/operations"


def shell_lines(page):
    """{command: what stands behind it} of the page's shell blocks."""
    lines = [line for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL) for line in block.splitlines()]
    pairs = [line.partition("  #") for line in lines]
    return {command.strip(): remark.strip() for command, _, remark in pairs if command.strip()}


def in_prose(page, programs):
    """What stands in the page's text as code and begins with one of these programs and a space."""
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    return list(dict.fromkeys(re.findall(rf"`((?:{'|'.join(programs)}) [^`\n]+)`", prose)))
