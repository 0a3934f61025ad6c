// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/store.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>

#include "common/grant/fields.h"
#include "common/read_whole.h"
#include "common/unique_fd.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

/// Not to be guessed: with a folder that several containers see, an id would be a password.
Result<std::string> NewId() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return Status::FromErrno(errno, "getrandom");
  }
  std::string id;
  for (const unsigned char byte : bytes) {
    id += "0123456789abcdef"[byte >> 4];
    id += "0123456789abcdef"[byte & 15];
  }
  return id;
}

Status MakeFolder(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, path);
  }
  // Whatever the umask is.
  return ::chmod(path.c_str(), mode) == 0 ? Status() : Status::FromErrno(errno, path);
}

Status WriteWhole(const std::string& path, const std::string& text) {
  const std::string unfinished = path + ".new";
  const UniqueFd file(
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return Status::FromErrno(errno, unfinished);
  const bool written =
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file.get()) == 0 && ::rename(unfinished.c_str(), path.c_str()) == 0;
  if (written) return {};
  const Status failed = Status::FromErrno(errno == 0 ? ENOSPC : errno, path);
  ::unlink(unfinished.c_str());
  return failed;
}

Status WriteIfOther(const std::string& path, const std::string& text) {
  return ReadWhole(path) == text ? Status() : WriteWhole(path, text);
}

}  // namespace

Result<GrantStore> GrantStore::Open(const std::string& root) {
  for (const auto& [path, mode] :
       {std::pair(root, mode_t{0755}), std::pair(root + "/g", mode_t{0700}),
        std::pair(root + "/a", mode_t{0711}), std::pair(root + "/t", mode_t{0700}),
        std::pair(root + "/l", mode_t{0700}), std::pair(root + "/b", mode_t{0700}),
        std::pair(root + "/d", mode_t{0700}), std::pair(root + "/e", mode_t{0700}),
        std::pair(root + "/r", mode_t{0700}), std::pair(root + "/u", mode_t{0700}),
        std::pair(root + "/x", mode_t{0700}), std::pair(root + "/f", mode_t{0700}),
        std::pair(root + "/n", mode_t{0700})}) {
    if (Status s = MakeFolder(path, mode); !s.ok()) return s;
  }
  return GrantStore(root);
}

Result<GrantRecord> GrantStore::Make(GrantRecord wanted) const {
  Result<std::string> id = NewId();
  if (!id.ok()) return id.status();
  wanted.id = std::move(*id);
  // Users of any number in the container may look for the socket there.
  if (Status s = MakeFolder(FolderOf(wanted.id), 0755); !s.ok()) return s;
  if (Status s = WriteWhole(RecordOf(wanted.id), GrantText(wanted)); !s.ok()) {
    ::rmdir(FolderOf(wanted.id).c_str());
    return s;
  }
  return wanted;
}

Status GrantStore::Remove(const std::string& id) const {
  if (!IsGrantId(id)) {
    return Status(StatusCode::kInvalidArgument,
                  "grant '" + id + "': allowed: 32 hexadecimal digits");
  }
  if (::unlink(RecordOf(id).c_str()) != 0 && errno != ENOENT) {
    return Status::FromErrno(errno, RecordOf(id));
  }
  ::unlink(FirstPodFileOf(id).c_str());
  ::unlink(TermsFileOf(id).c_str());
  ::unlink(InForceFileOf(id).c_str());
  ::unlink(AnswerFileOf(id).c_str());
  ::unlink(LimitFileOf(id).c_str());
  ::unlink(BypassFileOf(id).c_str());
  for (const std::string_view word : kHappeningWords) {
    ::unlink(HappeningFileOf(id, word).c_str());
  }
  ::unlink(ReportFileOf(id).c_str());
  std::error_code error;
  fs::remove_all(FolderOf(id), error);
  return error ? Status::FromErrno(error.value(), FolderOf(id)) : Status();
}

Status GrantStore::SetFirstPod(const std::string& id, const std::string& uid) const {
  return FirstPodOf(id).empty() ? WriteWhole(FirstPodFileOf(id), uid) : Status();
}

std::string GrantStore::FirstPodOf(const std::string& id) const {
  return ReadWhole(FirstPodFileOf(id));
}

Status GrantStore::SetTerms(const std::string& id, const GrantTerms& terms) const {
  return WriteIfOther(TermsFileOf(id), TermsText(terms));
}

Result<GrantTerms> GrantStore::TermsOf(const std::string& id) const {
  const std::string text = ReadWhole(TermsFileOf(id));
  if (text.empty()) return Status(StatusCode::kNotFound, "no terms of grant " + id + " yet");
  return ParseTerms(text);
}

Status GrantStore::SetReport(const std::string& id, const std::string& text) const {
  if (!text.empty()) return WriteIfOther(ReportFileOf(id), text);
  ::unlink(ReportFileOf(id).c_str());
  return {};
}

std::string GrantStore::ReportOf(const std::string& id) const {
  return ReadWhole(ReportFileOf(id));
}

Status GrantStore::SetBypass(const std::string& id, const std::string& text) const {
  return WriteIfOther(BypassFileOf(id), text);
}

std::string GrantStore::BypassOf(const std::string& id) const {
  return ReadWhole(BypassFileOf(id));
}

Status GrantStore::SetHappening(const std::string& id, const Happening& happening) const {
  // It becomes a file's name.
  if (std::find(kHappeningWords.begin(), kHappeningWords.end(), happening.word) ==
      kHappeningWords.end()) {
    return Status(StatusCode::kInvalidArgument, "happening '" + happening.word + "'");
  }
  // Counted, because people set clocks.
  const std::multimap<uint64_t, Happening> before = CountedHappeningsOf(id);
  for (const auto& [count, same] : before) {
    if (same == happening) return {};
  }
  const uint64_t count = before.empty() ? 1 : before.rbegin()->first + 1;
  return WriteWhole(HappeningFileOf(id, happening.word),
                    std::to_string(count) + "\n" + happening.text);
}

std::vector<Happening> GrantStore::HappeningsOf(const std::string& id) const {
  std::vector<Happening> happenings;
  for (const auto& [count, happening] : CountedHappeningsOf(id)) happenings.push_back(happening);
  return happenings;
}

std::multimap<uint64_t, Happening> GrantStore::CountedHappeningsOf(const std::string& id) const {
  std::multimap<uint64_t, Happening> happenings;
  for (const std::string_view word : kHappeningWords) {
    const std::string text = ReadWhole(HappeningFileOf(id, word));
    const size_t end = text.find('\n');
    std::istringstream first(text.substr(0, end));
    uint64_t count = 0;
    if (end == std::string::npos || !(first >> count)) continue;
    happenings.emplace(count, Happening{std::string(word), text.substr(end + 1)});
  }
  return happenings;
}

Status GrantStore::SetDrained(const std::string& gpu, bool drained) const {
  const std::string path = drain_folder() + "/" + gpu;
  if (drained) return WriteIfOther(path, "drained\n");
  return ::unlink(path.c_str()) == 0 || errno == ENOENT ? Status() : Status::FromErrno(errno, path);
}

std::set<std::string> GrantStore::DrainedGpus() const {
  std::set<std::string> gpus;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(drain_folder(), error)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".new")) gpus.insert(name);
  }
  return gpus;
}

Status GrantStore::SetBroken(const std::string& gpu, uint64_t xid, const std::string& boot) const {
  return WriteIfOther(broken_folder() + "/" + gpu, std::to_string(xid) + " " + boot + "\n");
}

std::map<std::string, uint64_t> GrantStore::BrokenGpus(const std::string& boot) const {
  std::map<std::string, uint64_t> gpus;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(broken_folder(), error)) {
    std::istringstream text(ReadWhole(entry.path()));
    uint64_t xid = 0;
    std::string of;
    const std::string name = entry.path().filename();
    if (text >> xid >> of && of == boot && !name.ends_with(".new")) gpus[name] = xid;
  }
  return gpus;
}

Status GrantStore::SetInForce(const std::string& id, uint64_t bytes) const {
  return WriteIfOther(InForceFileOf(id), std::to_string(bytes) + "\n");
}

std::optional<uint64_t> GrantStore::InForceOf(const std::string& id) const {
  std::istringstream text(ReadWhole(InForceFileOf(id)));
  uint64_t bytes = 0;
  return text >> bytes ? std::optional(bytes) : std::nullopt;
}

Status GrantStore::SetAnswer(const std::string& id, const TermsAnswer& answer) const {
  return WriteIfOther(AnswerFileOf(id), std::to_string(answer.limit_bytes) + "\n" + answer.terms);
}

std::optional<TermsAnswer> GrantStore::AnswerOf(const std::string& id) const {
  const std::string text = ReadWhole(AnswerFileOf(id));
  const size_t end = text.find('\n');
  TermsAnswer answer;
  if (end == std::string::npos || !ParseFieldNumber(text.substr(0, end), &answer.limit_bytes)) {
    return std::nullopt;
  }
  answer.terms = text.substr(end + 1);
  return answer;
}

Status GrantStore::SetLimitOrder(const std::string& id,
                                 const std::optional<LimitOrder>& order) const {
  if (order.has_value()) return WriteIfOther(LimitFileOf(id), LimitOrderText(*order));
  ::unlink(LimitFileOf(id).c_str());
  return {};
}

std::optional<LimitOrder> GrantStore::LimitOrderOf(const std::string& id) const {
  const Result<LimitOrder> order = ParseLimitOrder(ReadWhole(LimitFileOf(id)));
  return order.ok() ? std::optional(*order) : std::nullopt;
}

Result<GrantStore::Listed> GrantStore::List() const {
  Listed listed;
  std::error_code error;
  const std::string folder = record_folder();
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    // One that was never finished is nobody's.
    if (!IsGrantId(name)) continue;
    Result<GrantRecord> grant = ParseGrant(ReadWhole(entry.path()));
    if (grant.ok() && grant->id != name) {
      grant = Status(StatusCode::kInvalidArgument, "it is the record of " + grant->id);
    }
    if (grant.ok()) {
      listed.grants.push_back(std::move(*grant));
    } else {
      listed.errors.push_back(entry.path().string() + ": " + grant.status().message());
    }
  }
  if (error) return Status::FromErrno(error.value(), folder);
  std::sort(listed.grants.begin(), listed.grants.end(),
            [](const GrantRecord& a, const GrantRecord& b) { return a.id < b.id; });
  std::sort(listed.errors.begin(), listed.errors.end());
  return listed;
}

}  // namespace sluice
