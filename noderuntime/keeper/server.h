// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

#include "common/unique_fd.h"
#include "noderuntime/keeper/table.h"

namespace sluice::keeper {

/// The monotonic clock, for RunOnce.
int64_t NowMs();

/// The keeper: one thread, one daemon at a time, no allocation. It ends when a daemon says goodbye,
/// or when none has been there for `linger_ms` and nobody lives who could use what is kept.
class Server {
 public:
  Server(UniqueFd listener, int64_t linger_ms)
      : listener_(std::move(listener)), linger_ms_(linger_ms) {}

  /// One turn; waits at most `longest_wait_ms`. False: it is over.
  bool RunOnce(int64_t now_ms, int longest_wait_ms);
  const Table& table() const { return table_; }

 private:
  void Accept();
  /// False: the daemon hung up, or spoke nonsense.
  bool Serve();
  Outcome Do(const Request& request, int* fds, size_t fd_count);
  bool Answer(const Request& request, Outcome outcome);
  bool over(int64_t now_ms);

  UniqueFd listener_;
  UniqueFd daemon_;
  int64_t linger_ms_;
  int64_t alone_since_ms_ = -1;
  bool had_daemon_ = false;
  bool said_goodbye_ = false;
  Table table_;
  Reply reply_;
};

}  // namespace sluice::keeper
