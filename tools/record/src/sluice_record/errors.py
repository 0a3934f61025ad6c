# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What a recording can fail with."""


class RecordError(Exception):
    """A step that cannot be recorded, or an argument that is wrong. The text says what, and what to do."""
