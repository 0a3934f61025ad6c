// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string_view>

/// What a daemon says of itself, in lines of `fmt`'s format strings, which are checked when they
/// are compiled. Thread-safe, but for SetUp and Silence: before any thread is started.
namespace sluice::logging {

enum class Level : uint8_t { kDebug, kInfo, kWarn, kError };

/// From now on to standard error, each line with its time of day and level, and at once.
void SetUp();
/// From now on nothing is written.
void Silence();

/// Whether a line of this level would be written; kDebug is not.
bool Writes(Level level);
/// One line, whatever is in it: clients can cause most of them (Printable).
void Write(Level level, std::string_view text);

/// For the functions below.
void WriteFormatted(Level level, fmt::string_view format, fmt::format_args values);

template <class... Values>
void Debug(fmt::format_string<Values...> format, Values&&... values) {
  WriteFormatted(Level::kDebug, format, fmt::make_format_args(values...));
}
template <class... Values>
void Info(fmt::format_string<Values...> format, Values&&... values) {
  WriteFormatted(Level::kInfo, format, fmt::make_format_args(values...));
}
template <class... Values>
void Warn(fmt::format_string<Values...> format, Values&&... values) {
  WriteFormatted(Level::kWarn, format, fmt::make_format_args(values...));
}
template <class... Values>
void Error(fmt::format_string<Values...> format, Values&&... values) {
  WriteFormatted(Level::kError, format, fmt::make_format_args(values...));
}

}  // namespace sluice::logging
