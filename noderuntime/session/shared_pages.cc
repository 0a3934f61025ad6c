// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/session/shared_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

// Linux 5.1; glibc's header of Debian 12 does not have it.
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace sluice::session {
namespace {

constexpr size_t kWordBytes = 4096;  // holds ClientPage::resume_wanted

/// Whole pages: the client registers the mark page with the driver, which wants them.
template <typename T>
constexpr size_t MappedBytes() {
  return (sizeof(T) + 4095) / 4096 * 4096;
}

template <typename T>
Status MakePage(const char* name, int protection, int more_seals, UniqueFd* fd, T** page) {
  fd->reset(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd->valid()) return Status::FromErrno(errno, "memfd");
  const size_t bytes = MappedBytes<T>();
  if (::ftruncate(fd->get(), static_cast<off_t>(bytes)) != 0) {
    return Status::FromErrno(errno, "page size");
  }
  // Written once before it is sealed: a fresh page is all zero, which is a valid initial state.
  void* at = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd->get(), 0);
  if (at == MAP_FAILED) return Status::FromErrno(errno, "page");
  *page = static_cast<T*>(at);
  // Our own writable mapping stays valid under F_SEAL_FUTURE_WRITE; new ones are refused.
  if (::fcntl(fd->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | more_seals) !=
      0) {
    return Status::FromErrno(errno, "page seals");
  }
  return {};
}

/// A page that another daemon made and sealed.
template <typename T>
Status MapAgain(const UniqueFd& fd, T** page) {
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return Status::FromErrno(errno, "kept page");
  if (static_cast<uint64_t>(info.st_size) < MappedBytes<T>()) {
    return Status(StatusCode::kInvalidArgument, "a kept page is smaller than its contents");
  }
  void* at = ::mmap(nullptr, MappedBytes<T>(), PROT_READ, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return Status::FromErrno(errno, "kept page");
  *page = static_cast<T*>(at);
  return {};
}

template <typename T>
void UnmapPage(T** page) {
  if (*page != nullptr) ::munmap(const_cast<std::remove_const_t<T>*>(*page), MappedBytes<T>());
  *page = nullptr;
}

}  // namespace

Result<SharedPages> SharedPages::Create() {
  SharedPages pages;
  if (Status s = MakePage("sluice-marks", PROT_READ, 0, &pages.mark_fd_, &pages.mark_); !s.ok()) {
    return s;
  }
  if (Status s = MakePage("sluice-client", PROT_READ, 0, &pages.client_fd_, &pages.client_);
      !s.ok()) {
    return s;
  }
  if (Status s = MakePage("sluice-daemon", PROT_READ | PROT_WRITE, F_SEAL_FUTURE_WRITE,
                          &pages.daemon_fd_, &pages.daemon_);
      !s.ok()) {
    return s;
  }
  return pages;
}

Result<SharedPages> SharedPages::Restore(UniqueFd mark, UniqueFd client, UniqueFd old_daemon) {
  SharedPages pages;
  pages.mark_fd_ = std::move(mark);
  pages.client_fd_ = std::move(client);
  if (Status s = MapAgain(pages.mark_fd_, &pages.mark_); !s.ok()) return s;
  if (Status s = MapAgain(pages.client_fd_, &pages.client_); !s.ok()) return s;
  if (Status s = MakePage("sluice-daemon", PROT_READ | PROT_WRITE, F_SEAL_FUTURE_WRITE,
                          &pages.daemon_fd_, &pages.daemon_);
      !s.ok()) {
    return s;
  }
  protocol::DaemonPage* old = nullptr;
  if (Status s = MapAgain(old_daemon, &old); !s.ok()) return s;
  std::memcpy(static_cast<void*>(pages.daemon_), old, sizeof *old);
  UnmapPage(&old);
  void* word =
      ::mmap(nullptr, kWordBytes, PROT_READ | PROT_WRITE, MAP_SHARED, pages.client_fd_.get(), 0);
  if (word == MAP_FAILED) return Status::FromErrno(errno, "page");
  pages.wanted_in_ = static_cast<protocol::ClientPage*>(word);
  return pages;
}

void SharedPages::WantResume(bool wanted) {
  if (wanted_in_ == nullptr) return;
  wanted_in_->resume_wanted.store(wanted ? 1 : 0, std::memory_order_release);
}

SharedPages::SharedPages(SharedPages&& other) noexcept
    : mark_fd_(std::move(other.mark_fd_)),
      client_fd_(std::move(other.client_fd_)),
      daemon_fd_(std::move(other.daemon_fd_)),
      mark_(std::exchange(other.mark_, nullptr)),
      client_(std::exchange(other.client_, nullptr)),
      daemon_(std::exchange(other.daemon_, nullptr)),
      wanted_in_(std::exchange(other.wanted_in_, nullptr)) {}

SharedPages& SharedPages::operator=(SharedPages&& other) noexcept {
  if (this != &other) {
    Unmap();
    mark_fd_ = std::move(other.mark_fd_);
    client_fd_ = std::move(other.client_fd_);
    daemon_fd_ = std::move(other.daemon_fd_);
    mark_ = std::exchange(other.mark_, nullptr);
    client_ = std::exchange(other.client_, nullptr);
    daemon_ = std::exchange(other.daemon_, nullptr);
    wanted_in_ = std::exchange(other.wanted_in_, nullptr);
  }
  return *this;
}

SharedPages::~SharedPages() { Unmap(); }

void SharedPages::Unmap() {
  UnmapPage(&mark_);
  UnmapPage(&client_);
  UnmapPage(&daemon_);
  if (wanted_in_ != nullptr) ::munmap(static_cast<void*>(wanted_in_), kWordBytes);
  wanted_in_ = nullptr;
}

}  // namespace sluice::session
