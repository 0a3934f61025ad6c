// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/status.h"
#include "noderuntime/page/daemon_source.h"
#include "noderuntime/page/idle.h"
#include "noderuntime/page/page_file.h"
#include "noderuntime/page/server.h"

namespace sluice::gateway {

/// The live page of a runtime folder: its server, and the file by which `sluice page` finds it.
class PageService {
 public:
  /// Listens afterwards, and has said so in the folder. kFailedPrecondition: another gateway serves
  /// it; kUnavailable: it cannot listen there. `idle_exit_s`: as page::IdleWatch.
  static Result<std::unique_ptr<PageService>> Start(const std::string& runtime_dir,
                                                    const std::string& address,
                                                    uint32_t idle_exit_s);

  std::string authority() const { return page::Authority(server_->listen()); }
  /// Whether nobody needs it any more. To be asked every few seconds.
  bool Over();

 private:
  PageService(const std::string& runtime_dir, page::PageFile file, uint32_t idle_exit_s);

  page::PageFile file_;
  page::DaemonSource source_;
  page::IdleWatch idle_;
  std::unique_ptr<page::Server> server_;  // ends before what it uses
};

}  // namespace sluice::gateway
