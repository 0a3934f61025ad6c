// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

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
  void AfterForkInChild() { lock_.ForgetHolder(); }

 private:
  static bool AskDaemon(const char* path, protocol::Told* told);

  Lock lock_;  // over what follows; not while asking
  protocol::Told last_ = {};
  bool known_ = false;
  uint64_t ask_again_ns_ = 0;
};

}  // namespace sluice
