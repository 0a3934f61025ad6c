// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::simgpu::nvrtc {

/// 32 hexadecimal digits that depend on all parts and on where one ends (FNV-1a with 128 bits).
std::string HashParts(const std::vector<std::string_view>& parts);

/// Compiled objects on disk, one file per key. Everything may fail silently: then it compiles
/// again.
class Cache {
 public:
  /// $SLUICE_SIMGPU_CACHE, else $XDG_CACHE_HOME/sluice-simgpu, else ~/.cache/sluice-simgpu.
  static std::string DefaultFolder();

  explicit Cache(std::string folder) : folder_(std::move(folder)) {}

  std::optional<std::string> Get(const std::string& key) const;
  /// Appears under its final name only when it is complete, so that readers never see a part.
  void Put(const std::string& key, std::string_view object) const;

 private:
  std::string FileOf(const std::string& key) const { return folder_ + "/" + key + ".so"; }

  std::string folder_;
};

}  // namespace sluice::simgpu::nvrtc
