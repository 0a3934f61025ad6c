// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Linked statically: nothing can be preloaded into it.
int main(void) { return 0; }
