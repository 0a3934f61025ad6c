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
  if (file_.valid()) pending_.push_back(record);
}

Status EventLog::Flush() {
  std::string text;
  for (const scheduler::Record& record : pending_) {
    text += ToJson(record);
    text += '\n';
  }
  pending_.clear();
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(file_.get(), text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const Status status = Status::FromErrno(errno, "event log");
      file_.reset();
      return status;
    }
    written += static_cast<size_t>(count);
  }
  return {};
}

}  // namespace sluice::eventlog
