// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/page_service.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace sluice::gateway {
namespace {

// Who asked within this time still looks: a page that is loaded anew has no viewer for a moment.
constexpr std::chrono::seconds kLooking{5};

uint64_t NowSeconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

}  // namespace

PageService::PageService(const std::string& runtime_dir, page::PageFile file, uint32_t idle_exit_s)
    : file_(std::move(file)), source_(runtime_dir), idle_(idle_exit_s, NowSeconds()) {}

Result<std::unique_ptr<PageService>> PageService::Start(const std::string& runtime_dir,
                                                        const std::string& address,
                                                        uint32_t idle_exit_s) {
  const Result<page::Listen> listen = page::ParseListen(address);
  if (!listen.ok()) return listen.status();
  Result<page::PageFile> file = page::PageFile::Claim(runtime_dir);
  if (!file.ok()) return file.status();
  const Result<std::string> token = page::MakeToken();
  if (!token.ok()) return token.status();
  std::unique_ptr<PageService> made(new PageService(runtime_dir, std::move(*file), idle_exit_s));
  page::ServerOptions options;
  options.listen = *listen;
  options.token = *token;
  Result<std::unique_ptr<page::Server>> server = page::Server::Start(options, &made->source_);
  if (!server.ok()) return server.status();
  made->server_ = std::move(*server);
  if (Status written = made->file_.Write({made->authority(), *token}); !written.ok()) {
    return written;
  }
  return made;
}

bool PageService::Over() {
  const std::vector<uint32_t> gpus = source_.Gpus();
  const bool answers = std::any_of(gpus.begin(), gpus.end(),
                                   [&](uint32_t gpu) { return source_.Connect(gpu).ok(); });
  return idle_.Over(NowSeconds(), answers, server_->quiet_for() < kLooking);
}

}  // namespace sluice::gateway
