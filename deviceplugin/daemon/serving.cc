// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/daemon/serving.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "common/log/log.h"
#include "common/unique_fd.h"
#include "deviceplugin/daemon/clock.h"
#include "deviceplugin/registrar/registration.h"

namespace sluice::deviceplugin {
namespace {

constexpr char kKubeletSocket[] = "kubelet.sock";
/// How often a folder that is not there is looked for.
constexpr int kLookForFolderMs = 500;

int TimeoutMs(const Registrar::Next& next, uint64_t now_ns) {
  if (next.what == Registrar::Do::kWait) return -1;
  return next.at_ns <= now_ns ? 0 : static_cast<int>((next.at_ns - now_ns) / 1'000'000 + 1);
}

}  // namespace

Status Serving::Run(int stop_fd) {
  if (Status s = Look(); !s.ok()) return s;
  while (true) {
    ShowReady();
    const uint64_t now = SteadyNs();
    std::array<pollfd, 2> events = {
        {{stop_fd, POLLIN, 0}, {watch_ == nullptr ? -1 : watch_->fd(), POLLIN, 0}}};
    const int timeout = watch_ == nullptr ? kLookForFolderMs : TimeoutMs(registrar_.next(), now);
    ::poll(events.data(), events.size(), timeout);
    if (events[0].revents != 0) break;
    if (watch_ == nullptr) {
      // A kubelet that is installed anew makes its folder when it likes.
      (void)Look().ok();
    } else if (events[1].revents != 0) {
      TakeEvents();
    }
    if (watch_ != nullptr) Act(SteadyNs());
  }
  registrar_.OnKubelet(false);
  ShowReady();
  server_.reset();
  return {};
}

/// For whoever waits until pods may ask for the resource. The file of a plugin that was killed is
/// there until this one has looked.
void Serving::ShowReady() const {
  figures_->registered = registrar_.registered();
  if (names_.ready_file.empty()) return;
  const char* const path = names_.ready_file.c_str();
  if (!registrar_.registered()) {
    ::unlink(path);
    return;
  }
  const UniqueFd file(::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) logging::Error("--ready-file {}: {}", path, std::strerror(errno));
}

Status Serving::Look() {
  Result<FolderWatch> watch = FolderWatch::Open(names_.folder);
  if (!watch.ok()) return watch.status().Annotate("--kubelet-dir");
  watch_ = std::make_unique<FolderWatch>(std::move(*watch));
  // What is there before it is watched is not told.
  registrar_.OnKubelet(::access(PathOf(kKubeletSocket).c_str(), F_OK) == 0);
  if (server_ != nullptr && ::access(PathOf(names_.endpoint).c_str(), F_OK) != 0) {
    registrar_.OnSocketLost();
  }
  return {};
}

void Serving::TakeEvents() {
  const FolderWatch::Events events = watch_->Read();
  for (const FolderWatch::Event& event : events.list) {
    if (event.name == kKubeletSocket) {
      registrar_.OnKubelet(event.there);
    } else if (event.name == names_.endpoint && !event.there && server_ != nullptr &&
               ::access(PathOf(names_.endpoint).c_str(), F_OK) != 0) {
      // Our own replacing of it is told, too, and is none.
      registrar_.OnSocketLost();
    }
  }
  if (events.folder_gone) {
    logging::Warn("{} is gone: waiting for it", names_.folder);
    watch_.reset();
    registrar_.OnSocketLost();
    registrar_.OnKubelet(false);
  } else if (events.missed) {
    (void)Look().ok();
  }
}

void Serving::Act(uint64_t now_ns) {
  const Registrar::Next next = registrar_.next();
  if (next.at_ns > now_ns) return;
  if (next.what == Registrar::Do::kServe) Serve(now_ns);
  if (next.what == Registrar::Do::kRegister) Register(now_ns);
}

void Serving::Serve(uint64_t now_ns) {
  // The one before it would remove the new one's socket.
  server_.reset();
  Result<std::unique_ptr<PluginServer>> server = start_(PathOf(names_.endpoint));
  registrar_.OnServed(server.ok(), now_ns);
  if (server.ok()) {
    server_ = std::move(*server);
  } else {
    logging::Error("{}", server.status().message());
  }
}

void Serving::Register(uint64_t now_ns) {
  const Status said = RegisterWithKubelet(PathOf(kKubeletSocket), names_.endpoint, names_.resource);
  registrar_.OnRegistered(said.ok(), now_ns);
  ++(said.ok() ? figures_->registrations : figures_->registrations_failed);
  if (said.ok()) {
    logging::Info("registered {} with kubelet", names_.resource);
  } else if (said.message() != last_failure_) {
    logging::Warn("not registered yet: {}", said.message());
  }
  last_failure_ = said.message();
}

}  // namespace sluice::deviceplugin
