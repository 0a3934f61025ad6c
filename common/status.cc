// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/status.h"

#include <cerrno>
#include <cstring>

namespace sluice {

Status Status::Annotate(const std::string& context) const {
  return ok() ? *this : Status(code_, context + ": " + message_);
}

Status Status::FromErrno(int error_number, const std::string& what) {
  StatusCode code = StatusCode::kInternal;
  if (error_number == ENOENT) code = StatusCode::kNotFound;
  if (error_number == EACCES || error_number == EPERM) code = StatusCode::kPermissionDenied;
  if (error_number == ENOSPC || error_number == ENOMEM) code = StatusCode::kResourceExhausted;
  if (error_number == ECONNREFUSED || error_number == EAGAIN) code = StatusCode::kUnavailable;
  return Status(code, what + ": " + std::strerror(error_number));
}

}  // namespace sluice
