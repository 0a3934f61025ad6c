// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/noded.h"

int main(int argc, char** argv) { return sluice::noded::RunNoded({argv + 1, argv + argc}, {}); }
