// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/log/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "common/printable.h"

namespace sluice::logging {

namespace {

spdlog::level::level_enum LevelOf(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void SetUp() {
  auto logger =
      std::make_shared<spdlog::logger>("sluice", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%H:%M:%S.%e %l %v");
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

void Silence() { spdlog::set_level(spdlog::level::off); }

bool Writes(Level level) { return spdlog::should_log(LevelOf(level)); }

void Write(Level level, std::string_view text) {
  if (!Writes(level)) return;
  const std::string line = Printable(text);
  spdlog::log(LevelOf(level), spdlog::string_view_t(line.data(), line.size()));
}

void WriteFormatted(Level level, fmt::string_view format, fmt::format_args values) {
  if (Writes(level)) Write(level, fmt::vformat(format, values));
}

}  // namespace sluice::logging
