// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Nothing of its own: the headers of all unit tests are precompiled for it
// (cmake/SluiceTargets.cmake).
