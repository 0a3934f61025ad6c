// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/eventlog/event_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "noderuntime/eventlog/record_json.h"

namespace sluice::eventlog {

Result<EventLog> EventLog::Create(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!file.valid()) return Status::FromErrno(errno, "event-log " + path);
  return EventLog(std::move(file));
}

void EventLog::Write(const scheduler::Record& record) {
  if (!file_.valid()) return;
  pending_ += ToJson(record);
  pending_ += '\n';
}

Status EventLog::Flush() {
  size_t written = 0;
  while (written < pending_.size() && file_.valid()) {
    const ssize_t count = ::write(file_.get(), pending_.data() + written, pending_.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const Status status = Status::FromErrno(errno, "event log");
      file_.reset();
      pending_.clear();
      return status;
    }
    written += static_cast<size_t>(count);
  }
  pending_.clear();
  return {};
}

}  // namespace sluice::eventlog
