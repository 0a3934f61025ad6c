// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::page {

/// Where the page of a runtime folder is served, and what changes need. Kept in the folder, mode
/// 0600: whoever may read it may order the daemon anyway.
struct PageAddress {
  std::string authority;  // 127.0.0.1:PORT
  std::string token;
};

/// 128 random bits, as hexadecimal digits.
Result<std::string> MakeToken();

/// The one gateway that serves the page of a runtime folder, by a lock in it.
class PageFile {
 public:
  /// kFailedPrecondition: another one does, and lives.
  static Result<PageFile> Claim(const std::string& runtime_dir);
  PageFile(PageFile&&) = default;
  /// Removes what was written, and leaves the folder to others.
  ~PageFile();

  /// Replaces the file as a whole. It also has this process's number ("pid").
  Status Write(const PageAddress& address) const;

 private:
  PageFile(std::string runtime_dir, UniqueFd lock)
      : runtime_dir_(std::move(runtime_dir)), lock_(std::move(lock)) {}
  std::string runtime_dir_;
  UniqueFd lock_;
};

/// Whether a gateway serves the folder's page, or is about to begin or to end.
bool IsClaimed(const std::string& runtime_dir);

/// Where the folder's page is. kNotFound: nobody serves it; a file that a killed gateway left does
/// not count.
Result<PageAddress> FindPage(const std::string& runtime_dir);

/// What to open: the token stands behind the #, which no browser sends or logs. gpu < 0: none said.
std::string PageUrl(const PageAddress& address, int gpu);

}  // namespace sluice::page
