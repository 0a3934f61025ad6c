// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/flush_output.h"

#include <cerrno>
#include <cstring>

namespace sluice {

Status FlushOutput(std::FILE* out) {
  const bool lost = std::ferror(out) != 0;
  errno = 0;
  if (std::fflush(out) == 0) {
    if (!lost) return {};
    // Why an earlier call failed is forgotten; one more byte behind what is cut off fails alike.
    std::clearerr(out);
    if (std::fputc('\n', out) != EOF) std::fflush(out);
  }
  if (errno == EPIPE) return {};
  std::string message = "the output could not be written";
  if (errno != 0) message += std::string(": ") + std::strerror(errno);
  return Status(StatusCode::kUnavailable, message);
}

}  // namespace sluice
