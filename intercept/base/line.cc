// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "intercept/base/system.h"

namespace sluice {
namespace {

// Texts printed so far, as hashes. When the table is full a text may be printed again: harmless.
constinit std::atomic<uint64_t> g_printed[64] = {};

bool FirstTime(const char* text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *text != 0; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  if (hash == 0) hash = 1;
  for (auto& entry : g_printed) {
    uint64_t seen = entry.load(std::memory_order_relaxed);
    if (seen == 0 && entry.compare_exchange_strong(seen, hash, std::memory_order_relaxed)) {
      return true;
    }
    if (seen == hash) return false;
  }
  return true;
}

}  // namespace

Line::Line() {
  text_[0] = 0;
  Text("sluice: ");
}

void Line::Put(char c) {
  if (length_ + 2 >= sizeof(text_)) return;
  text_[length_++] = c;
  text_[length_] = 0;
}

Line& Line::Text(const char* text) { return Text(text, sizeof(text_)); }

Line& Line::Text(const char* text, size_t max_bytes) {
  for (size_t i = 0; i < max_bytes && text[i] != 0; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    Put(c < 0x20 || c == 0x7f ? '?' : text[i]);
  }
  return *this;
}

Line& Line::Number(uint64_t value) {
  char digits[20];
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count > 0) Put(digits[--count]);
  return *this;
}

Line& Line::Bytes(uint64_t bytes) {
  static constexpr const char* kNames[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  uint64_t unit = 1;
  size_t name = 0;
  while (bytes / unit >= 1024 && name < 4) {
    unit *= 1024;
    ++name;
  }
  Number(bytes / unit);
  if (name > 0) {
    Put('.');
    Put(static_cast<char>('0' + bytes % unit * 10 / unit));
  }
  return Text(kNames[name]);
}

void Line::Print() {
  const ErrnoKeeper keeper;
  text_[length_] = '\n';
  // One write, so that lines of several processes do not mix. A closed stderr is not our problem.
  syscall(SYS_write, STDERR_FILENO, text_, length_ + 1);
  text_[length_] = 0;
}

void Line::PrintOnce() {
  if (FirstTime(text_)) Print();
}

}  // namespace sluice
