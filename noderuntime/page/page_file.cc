// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/page_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace sluice::page {
namespace {

std::string LockPath(const std::string& dir) { return dir + "/page.lock"; }
std::string FilePath(const std::string& dir) { return dir + "/page.json"; }

}  // namespace

Result<std::string> MakeToken() {
  std::array<unsigned char, 16> bits = {};
  if (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size())) {
    return Status::FromErrno(errno, "random numbers");
  }
  std::string token;
  for (const unsigned char byte : bits) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  return token;
}

Result<PageFile> PageFile::Claim(const std::string& runtime_dir) {
  const std::string path = LockPath(runtime_dir);
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return Status::FromErrno(errno, path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status(StatusCode::kFailedPrecondition, "another sluice-gateway serves the page of " +
                                                       runtime_dir + " already (" + path +
                                                       " is locked)");
  }
  return PageFile(runtime_dir, std::move(lock));
}

PageFile::~PageFile() {
  if (lock_.valid()) ::unlink(FilePath(runtime_dir_).c_str());
}

Status PageFile::Write(const PageAddress& address) const {
  const nlohmann::json json = {
      {"address", address.authority}, {"token", address.token}, {"pid", ::getpid()}};
  const std::string text = json.dump() + "\n";
  const std::string path = FilePath(runtime_dir_);
  const std::string made = path + ".new";
  ::unlink(made.c_str());
  const UniqueFd file(
      ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return Status::FromErrno(errno, made);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Status::FromErrno(errno, made);
  }
  if (::rename(made.c_str(), path.c_str()) != 0) return Status::FromErrno(errno, path);
  return {};
}

bool IsClaimed(const std::string& runtime_dir) {
  // Opened for reading, and let go of at once: whoever starts one only tries for a moment.
  const UniqueFd lock(::open(LockPath(runtime_dir).c_str(), O_RDONLY | O_CLOEXEC));
  return lock.valid() && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0;
}

Result<PageAddress> FindPage(const std::string& runtime_dir) {
  const Status none(StatusCode::kNotFound,
                    runtime_dir + ": no sluice-gateway serves a page of this folder");
  if (!IsClaimed(runtime_dir)) return none;
  std::ifstream file(FilePath(runtime_dir));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return none;
  PageAddress address = {json.value("address", ""), json.value("token", "")};
  if (address.authority.empty()) return none;
  return address;
}

std::string PageUrl(const PageAddress& address, int gpu) {
  const std::string query = gpu < 0 ? "" : "?gpu=" + std::to_string(gpu);
  const std::string fragment = address.token.empty() ? "" : "#token=" + address.token;
  return "http://" + address.authority + "/" + query + fragment;
}

}  // namespace sluice::page
