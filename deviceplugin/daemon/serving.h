// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/folder_watch.h"
#include "common/status.h"
#include "deviceplugin/metrics/figures.h"
#include "deviceplugin/registrar/registrar.h"
#include "deviceplugin/server/plugin_server.h"

namespace sluice::deviceplugin {

/// The plugin's socket in kubelet's folder.
inline constexpr char kEndpoint[] = "sluice.sock";

/// Keeps the plugin known to kubelet: does what the Registrar says, and tells it what happened in
/// kubelet's folder. For one thread; the figures outlive it.
class Serving {
 public:
  struct Names {
    std::string folder;    // kubelet's
    std::string resource;  // that is offered
    /// A file that is there while kubelet knows the plugin; empty: none.
    std::string ready_file;
    std::string endpoint = kEndpoint;
  };
  using StartServer = std::function<Result<std::unique_ptr<PluginServer>>(const std::string& path)>;

  Serving(Names names, StartServer start, Figures* figures)
      : names_(std::move(names)), start_(std::move(start)), figures_(figures) {}

  /// Until `stop_fd` is readable. Returns sooner only where the folder cannot be watched.
  Status Run(int stop_fd);

 private:
  Status Look();
  void TakeEvents();
  void Act(uint64_t now_ns);
  void Serve(uint64_t now_ns);
  void Register(uint64_t now_ns);
  void ShowReady() const;
  std::string PathOf(const std::string& name) const { return names_.folder + "/" + name; }

  const Names names_;
  const StartServer start_;
  Figures* const figures_;
  std::unique_ptr<FolderWatch> watch_;
  std::unique_ptr<PluginServer> server_;
  Registrar registrar_;
  std::string last_failure_;  // said once
};

}  // namespace sluice::deviceplugin
