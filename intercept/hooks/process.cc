// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/hooks/process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/lookup/real_dlsym.h"

namespace sluice {
namespace {

constinit Client g_client;
constinit DriverTable g_driver = {};
constinit Lock g_setup_lock;
constinit std::atomic<bool> g_driver_ready{false};
constinit std::atomic<bool> g_client_ready{false};
constinit thread_local bool t_inside = false;

// The path outlives whatever the program does to its environment. One that is too long for a socket
// stays too long when it is cut here.
constinit char g_socket_path[512] = {};

void AfterForkInChild() {
  g_setup_lock.ForgetHolder();
  g_client.AfterForkInChild();
}

// At most nine digits; 0: none, or anything else.
uint64_t NumberIn(const char* text) {
  uint64_t number = 0;
  for (int digits = 0; text != nullptr && text[digits] != 0; ++digits) {
    if (digits == 9 || text[digits] < '0' || text[digits] > '9') return 0;
    number = 10 * number + static_cast<uint64_t>(text[digits] - '0');
  }
  return number;
}

void SetUpClient() {
  const LockGuard guard(g_setup_lock);
  if (g_client_ready.load(std::memory_order_relaxed)) return;
  const char* path = getenv("SLUICE_SOCKET");
  const char* poison = getenv("SLUICE_DEBUG_POISON");
  const char* early = getenv("SLUICE_DEBUG_EARLY_RELEASE");
  const char* physical = getenv("SLUICE_PHYSICAL");
  const char* silence = getenv("SLUICE_DEBUG_SILENCE_MS");
  // Without a socket nobody has granted anything: the client fails the first allocation. To pass
  // calls through instead would give a program that drops a variable the whole GPU.
  if (path != nullptr) strncpy(g_socket_path, path, sizeof g_socket_path - 1);
  static_cast<void>(pthread_atfork(nullptr, nullptr, AfterForkInChild));
  Client::Settings settings;
  settings.poison = poison != nullptr && strcmp(poison, "1") == 0;
  settings.early_release = early != nullptr && strcmp(early, "1") == 0;
  settings.lease_exportable = physical != nullptr && strcmp(physical, "lease") == 0;
  if (const uint64_t ms = NumberIn(silence); ms != 0) settings.silence_ms = ms;
  g_client.Configure(&g_driver, g_socket_path, settings);
  g_client_ready.store(true, std::memory_order_release);
}

}  // namespace

JobReport& ReportOfJob() { return g_client.report(); }

void CountUnseen(bool new_name) { g_client.CountUnseen(new_name); }

const DriverTable* LoadedDriver(bool may_load) {
  if (g_driver_ready.load(std::memory_order_acquire)) return &g_driver;
  // Outside the lock: loading runs constructors, which may look symbols up.
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | (may_load ? 0 : RTLD_NOLOAD));
  if (library == nullptr) {
    static_cast<void>(dlerror());  // the next dlerror of the program must not speak of our question
    return nullptr;
  }
  // The reference is kept for ever: the addresses below must stay valid.
  const LockGuard guard(g_setup_lock);
  if (g_driver_ready.load(std::memory_order_relaxed)) return &g_driver;
  for (const DriverFunction& function : kDriverFunctions) {
    *EntryOf(g_driver, function.offset) = RealDlsym(library, function.symbol);
  }
  static_cast<void>(dlerror());
  g_driver_ready.store(true, std::memory_order_release);
  return &g_driver;
}

const char* JobSocket() {
  if (!g_client_ready.load(std::memory_order_acquire)) SetUpClient();
  return g_socket_path;
}

HookScope::HookScope() : client_(nullptr), outermost_(!t_inside) {
  t_inside = true;
  driver_ = LoadedDriver(true);
  if (driver_ == nullptr) {
    driver_ = &g_driver;  // all null: the hook answers that there is no such function
    return;
  }
  if (!outermost_) return;
  if (!g_client_ready.load(std::memory_order_acquire)) SetUpClient();
  if (g_client.engaged()) client_ = &g_client;
}

HookScope::~HookScope() {
  if (outermost_) t_inside = false;
}

}  // namespace sluice
