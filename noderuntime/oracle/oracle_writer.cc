// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/oracle/oracle_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/unique_fd.h"

namespace sluice::oracle {

Result<OracleWriter> OracleWriter::Create(const std::string& path, const OracleLayout& layout) {
  const uint64_t units = layout.handles.size() * (layout.handle_bytes / layout.unit_bytes);
  if (layout.handles.size() > kOracleMaxHandles || units > kOracleMaxUnits) {
    return Status(StatusCode::kInvalidArgument,
                  "oracle: the pool has " + std::to_string(layout.handles.size()) +
                      " handles and " + std::to_string(units) +
                      " lease units; allowed: " + std::to_string(kOracleMaxHandles) + " and " +
                      std::to_string(kOracleMaxUnits));
  }
  ::unlink(path.c_str());
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return Status::FromErrno(errno, "oracle " + path);
  if (::ftruncate(file.get(), sizeof(OraclePage)) != 0) {
    return Status::FromErrno(errno, "oracle " + path);
  }
  void* at = ::mmap(nullptr, sizeof(OraclePage), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return Status::FromErrno(errno, "oracle " + path);
  OracleWriter writer(static_cast<OraclePage*>(at));
  OraclePage* page = writer.page_;
  page->unit_bytes = layout.unit_bytes;
  page->handle_bytes = layout.handle_bytes;
  page->handle_count = static_cast<uint32_t>(layout.handles.size());
  page->unit_count = static_cast<uint32_t>(units);
  for (size_t i = 0; i < layout.handles.size(); ++i) {
    struct stat info = {};
    if (::fstat(layout.handles[i], &info) != 0) return Status::FromErrno(errno, "oracle: handle");
    page->handle_inode[i] = info.st_ino;
  }
  // Last: a reader that sees it sees the rest.
  __atomic_store_n(&page->magic, kOracleMagic, __ATOMIC_RELEASE);
  return writer;
}

Result<OracleWriter> OracleWriter::Reopen(const std::string& path, const OracleLayout& layout) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat info = {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) {
    return Status::FromErrno(errno, "oracle " + path);
  }
  const Status other(StatusCode::kInvalidArgument, "oracle " + path + ": it is of another pool");
  if (info.st_size != static_cast<off_t>(sizeof(OraclePage))) return other;
  void* at = ::mmap(nullptr, sizeof(OraclePage), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return Status::FromErrno(errno, "oracle " + path);
  OracleWriter writer(static_cast<OraclePage*>(at));
  const OraclePage& page = *writer.page_;
  bool same = page.magic == kOracleMagic && page.unit_bytes == layout.unit_bytes &&
              page.handle_bytes == layout.handle_bytes &&
              page.handle_count == layout.handles.size() && page.handle_count <= kOracleMaxHandles;
  for (size_t i = 0; same && i < layout.handles.size(); ++i) {
    same = ::fstat(layout.handles[i], &info) == 0 && page.handle_inode[i] == info.st_ino;
  }
  if (!same) return other;
  return writer;
}

OracleWriter::OracleWriter(OracleWriter&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)) {}

OracleWriter::~OracleWriter() {
  if (page_ != nullptr) ::munmap(page_, sizeof(OraclePage));
}

void OracleWriter::SetHolder(uint32_t first_unit, uint32_t count, pid_t pid) {
  for (uint32_t i = first_unit; i < first_unit + count && i < page_->unit_count; ++i) {
    if (page_->unit[i].holder.load(std::memory_order_relaxed) == static_cast<uint32_t>(pid)) {
      continue;
    }
    page_->unit[i].holder.store(static_cast<uint32_t>(pid), std::memory_order_release);
    page_->unit[i].epoch.fetch_add(1, std::memory_order_release);
  }
}

void OracleWriter::Publish() { page_->changes.fetch_add(1, std::memory_order_release); }

}  // namespace sluice::oracle
