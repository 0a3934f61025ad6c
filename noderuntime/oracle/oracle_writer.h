// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/oracle_page.h"
#include "common/status.h"

namespace sluice::oracle {

struct OracleLayout {
  uint64_t unit_bytes = 0;
  uint64_t handle_bytes = 0;
  std::vector<int> handles;  // the pool's descriptors, in order
};

/// Publishes who holds which unit, for the simulated GPU to enforce (test runs).
class OracleWriter {
 public:
  /// A new file at `path`; one that is there is replaced, since executors map it by name.
  static Result<OracleWriter> Create(const std::string& path, const OracleLayout& layout);
  /// The file of a daemon that died, whose readers go on: only if it is of this very pool.
  static Result<OracleWriter> Reopen(const std::string& path, const OracleLayout& layout);
  OracleWriter(OracleWriter&& other) noexcept;
  OracleWriter& operator=(OracleWriter&&) = delete;
  ~OracleWriter();

  /// `pid` 0: nobody. Units that are theirs already do not change.
  void SetHolder(uint32_t first_unit, uint32_t count, pid_t pid);
  /// To be called once after a group of SetHolder calls.
  void Publish();

 private:
  explicit OracleWriter(OraclePage* page) : page_(page) {}
  OraclePage* page_;
};

}  // namespace sluice::oracle
