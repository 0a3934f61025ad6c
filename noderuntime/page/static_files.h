// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <span>
#include <string_view>

namespace sluice::page {

/// A file of static/, compiled into the program.
struct StaticFile {
  std::string_view path;  // as it is asked for: "/page.css"; "/" is index.html
  std::string_view type;  // of the content
  std::string_view etag;  // quoted
  std::string_view text;
};

/// All of them, by path.
std::span<const StaticFile> StaticFiles();

}  // namespace sluice::page
