// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

/// What tells the two drivers apart, and what a test learned from the one it ran on.
namespace sluice::contract {

/// Whether the tests run on a real driver: SLUICE_CONTRACT_DRIVER=real, which tests/gpu/run sets.
bool RealDriver();

/// Ends the running test as skipped on the other driver; `why` names what is missing there. For the
/// thread of the test.
void OnlySimulated(const std::string& why);
void OnlyReal(const std::string& why);

/// An answer that the interface leaves open: written to the results as "answer.`question`" and
/// compared between the drivers by tests/gpu/run. What the header promises is an EXPECT instead.
void Answer(const std::string& question, const std::string& answer);
void AnswerIf(const std::string& question, bool yes);
/// A figure, shown for both drivers and not compared: "measured.`what`".
void Measure(const std::string& what, double value);

}  // namespace sluice::contract
