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
  SharedPages(SharedPages&& other) noexcept;
  SharedPages& operator=(SharedPages&& other) noexcept;
  ~SharedPages();

  const protocol::MarkPage& mark() const { return *mark_; }
  const protocol::ClientPage& client() const { return *client_; }
  protocol::DaemonPage& daemon() const { return *daemon_; }

  /// To be handed to the client; ours stay open until the handshake is over.
  int mark_fd() const { return mark_fd_.get(); }
  int client_fd() const { return client_fd_.get(); }
  int daemon_fd() const { return daemon_fd_.get(); }
  void CloseFds();

 private:
  SharedPages() = default;
  void Unmap();

  UniqueFd mark_fd_;
  UniqueFd client_fd_;
  UniqueFd daemon_fd_;
  protocol::MarkPage* mark_ = nullptr;
  protocol::ClientPage* client_ = nullptr;
  protocol::DaemonPage* daemon_ = nullptr;
};

}  // namespace sluice::session
