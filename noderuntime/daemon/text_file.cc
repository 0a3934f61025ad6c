// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/text_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace sluice::noded {

Result<UniqueFd> TextFile(const std::string& text) {
  UniqueFd file(::memfd_create("sluice-answer", MFD_CLOEXEC));
  const bool written = file.valid() && ::write(file.get(), text.data(), text.size()) ==
                                           static_cast<ssize_t>(text.size());
  if (!written) return Status::FromErrno(errno, "memfd");
  return file;
}

}  // namespace sluice::noded
