// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::cli {

/// What a launcher asks for. 0 means "not given".
struct JobRequest {
  uint64_t limit_bytes = 0;
  uint64_t request_bytes = 0;
  uint32_t gpu = 0;
  std::string name;      // for people; cut to what a frame carries
  bool observe = false;  // have an iteration of it recorded
};

struct JobGrant {
  uint32_t job = 0;
  std::string socket;  // the job's own
};

/// How long a person waits for a daemon.
inline constexpr std::chrono::milliseconds kPatience{10'000};
/// For who looks at several daemons, of which one may hang, or looks again soon.
inline constexpr std::chrono::milliseconds kLookPatience{2'000};

/// The command line's end of the daemon's own socket.
class DaemonClient {
 public:
  /// kNotFound or kUnavailable when no daemon listens there, kPermissionDenied when it is not one
  /// that this user speaks with (docs/adr/0038). `patience`: how long it may take to accept
  /// (kInternal: it hangs), and to answer each question (kUnavailable).
  static Result<DaemonClient> Connect(const std::string& socket_path,
                                      std::chrono::milliseconds patience = kPatience);

  /// A refusal by the daemon is kResourceExhausted with its reason; anything else means that the
  /// daemon could not be talked to.
  Result<JobGrant> Register(const JobRequest& request);

  /// The daemon's state as JSON text. Without `events`: what happened to each job lately may be
  /// missing.
  Result<std::string> FetchStatus(bool events = true);

  /// What moves at the moment, as JSON text: small enough to be asked for ten times a second. Steps
  /// of what each job held from `since` on, which is "seq" of the answer before; 0: all that is
  /// kept. kUnavailable also for a daemon of an earlier version.
  Result<std::string> FetchLive(uint64_t since);

  /// Has the daemon decide by another policy. 0 lanes: as many as now. kInvalidArgument: it does
  /// not know that one; returns the lanes that hold now.
  Result<uint32_t> SetPolicy(const std::string& policy, uint32_t lanes);

  struct Budget {
    uint64_t bytes = 0;     // as it was taken, in whole units
    uint64_t in_force = 0;  // more than that while jobs still hold too much
  };
  /// Has the daemon lend so much of its pool; 0: all of it. kResourceExhausted: what the jobs need
  /// does not fit, and nothing has changed.
  Result<Budget> SetBudget(uint64_t bytes);

  /// Another limit for a job, also while it runs; 0: what its pod asks for. Returns the limit that
  /// holds now. kFailedPrecondition: it stays as it was, for this reason.
  Result<uint64_t> SetLimit(uint32_t job, uint64_t bytes);

  struct Drained {
    bool on = false;
    uint32_t jobs = 0;  // that are there
  };
  /// Has the daemon take no new jobs, or take them again. kFailedPrecondition: nothing has changed,
  /// for this reason.
  Result<Drained> Drain(bool on);

  /// What was recorded of the job that was registered here to be observed, while it runs or
  /// afterwards: a trace as text. kFailedPrecondition: there is none, for this reason.
  Result<std::string> FetchRecording();

  /// A second descriptor of the same connection: the job lives until both are closed.
  Result<UniqueFd> Share() const;
  /// Hands the connection over; the job lives as long as it stays open.
  UniqueFd Release() && { return std::move(socket_); }

 private:
  DaemonClient(UniqueFd socket, std::chrono::milliseconds patience)
      : socket_(std::move(socket)), patience_(patience) {}
  Status Send(const void* frame, size_t bytes);
  /// One frame, and the descriptor beside it if any.
  Result<UniqueFd> Receive(uint16_t type, void* frame, size_t bytes);

  UniqueFd socket_;
  std::chrono::milliseconds patience_;
};

/// "train --model small-a": what people recognise a job by.
std::string JobName(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace sluice::cli
