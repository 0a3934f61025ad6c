// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/unique_fd.h"

namespace sluice::cli {

Result<std::string> ReadWholeFile(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Status::FromErrno(errno, path);
  std::string text;
  for (char part[65536];;) {
    const ssize_t got = ::read(file.get(), part, sizeof(part));
    if (got == 0) return text;
    if (got > 0) text.append(part, static_cast<size_t>(got));
    if (got < 0 && errno != EINTR) return Status::FromErrno(errno, path);
  }
}

Status WriteWholeFile(const std::string& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) return Status::FromErrno(errno, path);
  for (size_t done = 0; done < text.size();) {
    const ssize_t put = ::write(file.get(), text.data() + done, text.size() - done);
    if (put > 0) done += static_cast<size_t>(put);
    if (put < 0 && errno != EINTR) return Status::FromErrno(errno, path);
  }
  return {};
}

}  // namespace sluice::cli
