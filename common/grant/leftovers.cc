// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/leftovers.h"

#include <system_error>

namespace sluice {
namespace {

namespace fs = std::filesystem;

/// Of "ID.WORD" and of a file that was never finished, too.
std::string IdOf(const std::string& name) { return name.substr(0, name.find('.')); }

/// Of what goes while it is looked at there is no trace.
void Look(const fs::path& folder, std::vector<GrantTrace>* traces) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string id = IdOf(entry.path().filename());
    std::error_code gone;
    const fs::file_time_type changed = fs::last_write_time(entry.path(), gone);
    if (IsGrantId(id) && !gone) traces->push_back({entry.path(), id, changed});
  }
}

}  // namespace

std::vector<std::string> Leftovers(const std::vector<GrantTrace>& traces,
                                   const std::set<std::string>& records, fs::file_time_type now) {
  std::vector<std::string> paths;
  for (const GrantTrace& trace : traces) {
    if (records.contains(trace.id) || now - trace.changed < kLeftoverAge) continue;
    paths.push_back(trace.path);
  }
  return paths;
}

Result<size_t> SweepLeftovers(const GrantStore& store, fs::file_time_type now) {
  std::vector<GrantTrace> traces;
  for (const std::string& folder :
       {store.FolderOf(""), store.record_folder(), store.first_pod_folder(), store.terms_folder(),
        store.in_force_folder(), store.limit_folder(), store.bypass_folder(),
        store.happening_folder(), store.report_folder(), store.answer_folder()}) {
    Look(folder, &traces);
  }
  // After the rest: what is made in between has its record then. By name, because one that cannot
  // be read is a record all the same.
  std::set<std::string> records;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(store.record_folder(), error)) {
    records.insert(entry.path().filename());
  }
  if (error) return Status::FromErrno(error.value(), store.record_folder());
  size_t removed = 0;
  Status failed;
  for (const std::string& path : Leftovers(traces, records, now)) {
    std::error_code stays;
    fs::remove_all(path, stays);
    if (stays) {
      failed = Status::FromErrno(stays.value(), path);
    } else {
      ++removed;
    }
  }
  return failed.ok() ? Result<size_t>(removed) : Result<size_t>(failed);
}

}  // namespace sluice
