// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/status.h"
#include "common/unique_fd.h"
#include "intercept/protocol/pages.h"

namespace sluice::session {

/// The three pages of one session, mapped here. Sizes are sealed, so that no client can truncate
/// one under us; the daemon page cannot be mapped for writing by anybody else.
class SharedPages {
 public:
  static Result<SharedPages> Create();
  /// The pages of a session whose daemon died. The client's page and the marks are mapped again;
  /// the daemon's page, to which only its maker could write, is copied into a new one.
  static Result<SharedPages> Restore(UniqueFd mark, UniqueFd client, UniqueFd old_daemon);
  SharedPages(SharedPages&& other) noexcept;
  SharedPages& operator=(SharedPages&& other) noexcept;
  ~SharedPages();

  const protocol::MarkPage& mark() const { return *mark_; }
  const protocol::ClientPage& client() const { return *client_; }
  protocol::DaemonPage& daemon() const { return *daemon_; }

  /// The daemon lives (DaemonPage::beats).
  void Beat() { daemon_->beats.fetch_add(1, std::memory_order_relaxed); }
  /// After Restore: whether the client should say what it holds (ClientPage::resume_wanted).
  void WantResume(bool wanted);

  /// To be handed to the client, and kept: a daemon that follows this one needs them.
  int mark_fd() const { return mark_fd_.get(); }
  int client_fd() const { return client_fd_.get(); }
  int daemon_fd() const { return daemon_fd_.get(); }

 private:
  SharedPages() = default;
  void Unmap();

  UniqueFd mark_fd_;
  UniqueFd client_fd_;
  UniqueFd daemon_fd_;
  protocol::MarkPage* mark_ = nullptr;
  protocol::ClientPage* client_ = nullptr;
  protocol::DaemonPage* daemon_ = nullptr;
  protocol::ClientPage* wanted_in_ = nullptr;  // the writable first page of the client's, or null
};

}  // namespace sluice::session
