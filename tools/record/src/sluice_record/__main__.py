# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
import sys

from .cli import main

sys.exit(main())
