// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>

#include "intercept/base/lock.h"
#include "intercept/protocol/wire.h"

namespace sluice {

/// What a process of this job is to be told about the GPU's memory. One per process.
class JobReport {
 public:
  constexpr JobReport() = default;

  /// Asks the daemon on a connection of its own: the process need not use the GPU. While the daemon
  /// does not answer (it is gone, and another one may come) it is what was said last, and the
  /// daemon is asked again only every few seconds: each question waits for a second at most. False
  /// when nothing was ever said: there is no daemon behind `path`, or an older one that does not
  /// know the question.
  bool Ask(const char* path, protocol::Told* told);
  /// The same for the first question of a process, on whose answer it depends whether the library
  /// does anything in it: waits while the daemon finds out, and while one daemon follows another.
  /// Where nobody is there it waits for ten seconds, if there was a daemon once.
  bool AskFirst(const char* path, protocol::Told* told);
  void AfterForkInChild() { lock_.ForgetHolder(); }

 private:
  enum class Heard : uint8_t {
    kAnswer,
    kNothing,  // from a daemon that is there, or from nobody
    kWait,     // the daemon has yet to find out, and then it was silent or gone
    kNobody,   // its socket is there, and nobody behind it
    kNoSocket,
  };
  static Heard AskDaemon(const char* path, protocol::Told* told, uint64_t patience_ms);
  bool IsTooSoon(protocol::Told* told);
  bool Keep(Heard heard, protocol::Told* told);

  Lock lock_;  // over what follows; not while asking
  protocol::Told last_ = {};
  std::atomic<bool> known_{false};
  uint64_t ask_again_ns_ = 0;
};

}  // namespace sluice
