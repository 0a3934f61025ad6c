// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/event_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <stdexcept>

#include "noderuntime/eventlog/record_json.h"

namespace sluice::testing {

using scheduler::EventKind;
using scheduler::JobId;
using scheduler::Record;

EventLog::EventLog(std::string path)
    : path_(std::move(path)), watch_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  // The daemon may not have made it yet; an empty file is what it appends to.
  const UniqueFd made(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!made.valid() || ::inotify_add_watch(watch_.get(), path_.c_str(), IN_MODIFY) < 0) {
    throw std::runtime_error("cannot watch " + path_);
  }
}

const std::vector<Record>& EventLog::Read() {
  std::ifstream file(path_);
  file.seekg(static_cast<std::streamoff>(read_bytes_));
  std::string line;
  while (std::getline(file, line)) {
    if (file.eof()) break;  // no newline yet: the rest of the line is still to come
    read_bytes_ += line.size() + 1;
    Result<Record> record = eventlog::FromJson(line);
    if (!record.ok()) throw std::runtime_error(path_ + ": " + record.status().message());
    records_.push_back(std::move(*record));
  }
  return records_;
}

bool EventLog::Await(const Condition& found, int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    // The pending changes are taken before the file is read, so that none is missed in between.
    char changes[4096];
    while (::read(watch_.get(), changes, sizeof changes) > 0) {
    }
    if (found(Read())) return true;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd changed = {watch_.get(), POLLIN, 0};
    ::poll(&changed, 1, static_cast<int>(left));
  }
}

std::optional<JobId> EventLog::FindJob(const std::string& name) {
  std::optional<JobId> job;
  for (const Record& record : Read()) {
    if (record.event == EventKind::kAdmit && record.name.starts_with(name)) job = record.job;
  }
  return job;
}

size_t EventLog::Count(EventKind event, JobId job) {
  size_t count = 0;
  for (const Record& record : Read()) count += record.event == event && record.job == job;
  return count;
}

std::optional<size_t> EventLog::Find(EventKind event, JobId job, size_t from) {
  const std::vector<Record>& records = Read();
  for (size_t i = from; i < records.size(); ++i) {
    if (records[i].event == event && records[i].job == job) return i;
  }
  return std::nullopt;
}

std::vector<bool> UnitsHeld(const std::vector<Record>& records, JobId job, size_t end) {
  std::vector<bool> held;
  std::map<scheduler::ReleaseId, scheduler::Extents> unfenced;
  const auto mark = [&](const scheduler::Extents& extents, bool value) {
    for (const scheduler::Extent& extent : extents) {
      for (scheduler::Units unit = extent.offset; unit < extent.end(); ++unit)
        held.at(unit) = value;
    }
  };
  for (size_t i = 0; i < end; ++i) {
    const Record& record = records[i];
    if (record.event == EventKind::kPool) held.resize(record.units);
    if (record.job != job) continue;
    if (record.event == EventKind::kGrant || record.event == EventKind::kGate) {
      mark(record.extents, true);
    } else if (record.event == EventKind::kRelease) {
      unfenced[record.release] = record.extents;
    } else if (record.event == EventKind::kFenced) {
      mark(unfenced[record.release], false);
      unfenced.erase(record.release);
    }
  }
  return held;
}

std::string Violations(const scheduler::AuditReport& report) {
  std::string text;
  for (const scheduler::AuditViolation& violation : report.violations) {
    text += violation.rule + " (record " + std::to_string(violation.record) +
            "): " + violation.text + "\n";
  }
  return text;
}

}  // namespace sluice::testing
