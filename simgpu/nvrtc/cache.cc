// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/nvrtc/cache.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sluice::simgpu::nvrtc {
namespace {

constexpr size_t kHashDigits = 32;

}  // namespace

std::string HashParts(const std::vector<std::string_view>& parts) {
  using Wide = unsigned __int128;
  const Wide prime = (Wide{1} << 88) + 0x13b;
  Wide hash = (Wide{0x6c62272e07bb0142} << 64) + 0x62b821756295c58d;
  const auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * prime; };
  for (std::string_view part : parts) {
    for (char c : part) mix(static_cast<unsigned char>(c));
    for (size_t size = part.size(), i = 0; i < sizeof size; ++i, size >>= 8) {
      mix(static_cast<unsigned char>(size));
    }
  }
  std::string text;
  for (int shift = 124; shift >= 0; shift -= 4) text += "0123456789abcdef"[hash >> shift & 15];
  return text;
}

std::string Cache::DefaultFolder() {
  const auto get = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (std::string folder = get("SLUICE_SIMGPU_CACHE"); !folder.empty()) return folder;
  if (std::string folder = get("XDG_CACHE_HOME"); !folder.empty()) return folder + "/sluice-simgpu";
  if (std::string folder = get("HOME"); !folder.empty()) return folder + "/.cache/sluice-simgpu";
  return "";
}

std::optional<std::string> Cache::Get(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream stream(FileOf(key), std::ios::binary);
  if (!stream) return std::nullopt;
  std::ostringstream content;
  content << stream.rdbuf();
  // The object's hash follows it: a file cut short by a crash must not reach the executor.
  std::string object = std::move(content).str();
  if (object.size() < kHashDigits) return std::nullopt;
  const std::string expected = object.substr(object.size() - kHashDigits);
  object.resize(object.size() - kHashDigits);
  if (HashParts({object}) != expected) return std::nullopt;
  return object;
}

void Cache::Put(const std::string& key, std::string_view object) const {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  static std::atomic<int> counter = 0;  // two threads may compile the same source
  const std::string partial = FileOf(key) + "." + std::to_string(getpid()) + "." +
                              std::to_string(counter.fetch_add(1)) + ".partial";
  {
    std::ofstream stream(partial, std::ios::binary);
    stream.write(object.data(), static_cast<std::streamsize>(object.size()));
    stream << HashParts({object});
    if (!stream.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(partial, FileOf(key), error);
  if (error) std::filesystem::remove(partial, error);
}

}  // namespace sluice::simgpu::nvrtc
