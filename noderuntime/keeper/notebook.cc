// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/keeper/notebook.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice::keeper {
namespace {

constexpr uint64_t kMagic = 0x314b4f4f42544f4eu;  // "NOTBOOK1"
constexpr size_t kHeaderBytes = 4096;
constexpr size_t kFileBytes = kHeaderBytes + 2 * Notebook::kMaxBytes;

/// Not against an enemy: the file is the daemon's own. Against a page that is not whole.
uint64_t Checksum(const std::byte* bytes, size_t count) {
  uint64_t sum = 0x9e3779b97f4a7c15u ^ count;
  for (; count >= 8; bytes += 8, count -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    sum = (sum ^ word) * 0x100000001b3u;
    sum ^= sum >> 32;
  }
  for (; count > 0; ++bytes, --count) sum = (sum ^ static_cast<uint64_t>(*bytes)) * 0x100000001b3u;
  return sum;
}

}  // namespace

struct Notebook::Page {
  uint64_t number;  // 0: never written, or being written
  uint64_t bytes;
  uint64_t checksum;
};

struct Notebook::Header {
  uint64_t magic;
  Page page[2];
};

Notebook::Header* Notebook::header() const { return reinterpret_cast<Header*>(memory_); }

std::byte* Notebook::contents(size_t page) const {
  return memory_ + kHeaderBytes + page * kMaxBytes;
}

Result<Notebook> Notebook::Create() {
  UniqueFd file(::memfd_create("sluice-state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return Status::FromErrno(errno, "memfd");
  // Only what is written takes memory.
  if (::ftruncate(file.get(), kFileBytes) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Status::FromErrno(errno, "state file");
  }
  void* at = ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return Status::FromErrno(errno, "state file");
  Notebook made(std::move(file), static_cast<std::byte*>(at));
  made.header()->magic = kMagic;
  return made;
}

Result<Notebook> Notebook::Open(UniqueFd file) {
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return Status::FromErrno(errno, "state file");
  if (static_cast<uint64_t>(info.st_size) != kFileBytes) {
    return Status(StatusCode::kInvalidArgument, "the kept state is of another version");
  }
  void* at = ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return Status::FromErrno(errno, "state file");
  Notebook opened(std::move(file), static_cast<std::byte*>(at));
  if (opened.header()->magic != kMagic) {
    return Status(StatusCode::kInvalidArgument, "the kept state is of another version");
  }
  return opened;
}

Notebook::Notebook(Notebook&& other) noexcept
    : file_(std::move(other.file_)), memory_(std::exchange(other.memory_, nullptr)) {}

Notebook::~Notebook() {
  if (memory_ != nullptr) ::munmap(memory_, kFileBytes);
}

bool Notebook::Valid(size_t page) const {
  const Page& entry = header()->page[page];
  return entry.number != 0 && entry.bytes <= kMaxBytes &&
         Checksum(contents(page), entry.bytes) == entry.checksum;
}

bool Notebook::Write(std::span<const std::byte> bytes) {
  Page* pages = header()->page;
  if (bytes.size() > kMaxBytes) {
    // What stands there is not true any more, and somebody would lend memory by it.
    for (size_t i = 0; i < 2; ++i) __atomic_store_n(&pages[i].number, 0, __ATOMIC_RELEASE);
    return false;
  }
  const uint64_t first = __atomic_load_n(&pages[0].number, __ATOMIC_RELAXED);
  const uint64_t second = __atomic_load_n(&pages[1].number, __ATOMIC_RELAXED);
  const size_t older = first <= second ? 0 : 1;
  Page& page = pages[older];
  // An exchange, so that nothing below comes before it (a fence is nothing to ThreadSanitizer).
  __atomic_exchange_n(&page.number, 0, __ATOMIC_SEQ_CST);
  std::memcpy(contents(older), bytes.data(), bytes.size());
  page.bytes = bytes.size();
  page.checksum = Checksum(bytes.data(), bytes.size());
  __atomic_store_n(&page.number, std::max(first, second) + 1, __ATOMIC_RELEASE);
  return true;
}

std::optional<std::vector<std::byte>> Notebook::Read() const {
  const Page* pages = header()->page;
  const size_t newer = pages[0].number >= pages[1].number ? 0 : 1;
  for (const size_t page : {newer, 1 - newer}) {
    if (!Valid(page)) continue;
    const std::byte* at = contents(page);
    return std::vector<std::byte>(at, at + pages[page].bytes);
  }
  return std::nullopt;
}

}  // namespace sluice::keeper
