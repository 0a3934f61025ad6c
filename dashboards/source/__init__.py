# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What the dashboards are made from: a module for each, and what they share."""
