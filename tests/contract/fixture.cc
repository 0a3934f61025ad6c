// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/contract/fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "simgpu/module/image.h"

extern char** environ;

namespace sluice::contract {
namespace {

constexpr int kPatienceMs = 10'000;
constexpr int kRoleIn = 11;
constexpr int kRoleOut = 12;

/// Of the simulated GPU, and how many there are.
const char* g_memory = "64MiB";
const char* g_gpus = "1";

std::map<std::string, int (*)()>& Roles() {
  static auto* roles = new std::map<std::string, int (*)()>;
  return *roles;
}

std::string ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

__attribute__((weak)) const char* MachineFile() { return SLUICE_CONTRACT_MACHINE; }

const std::string& KernelImage() {
  const char* compiled = getenv("SLUICE_CONTRACT_IMAGE");
  static const auto* image =
      new std::string(compiled != nullptr ? ReadFile(compiled)
                                          : simgpu::EncodeImage(ReadFile(SLUICE_CONTRACT_KERNELS)));
  return *image;
}

void LoadKernels(CUmodule module) {
  for (const char* name : {"fill", "append", "wait_flag", "nothing", "slow", "count_up"}) {
    CUfunction function = nullptr;
    EXPECT_CU(cuModuleGetFunction(&function, module, name));
    EXPECT_CU(cuFuncLoad(function)) << name;
  }
}

bool OwnKernels() { return getenv("SLUICE_CONTRACT_IMAGE") == nullptr; }

bool NeedGpuMemory(const char* size) {
  g_memory = size;
  return true;
}

bool NeedGpus(const char* count) {
  g_gpus = count;
  return true;
}

void ContextTest::SetUp() {
  ASSERT_CU(cuInit(0));
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuModuleLoadData(&module_, KernelImage().c_str()));
  if (RealDriver()) {
    LoadKernels(module_);
    // What it allocates for itself at the first use shall not look like a test's memory.
    ASSERT_CU(Launch("nothing", {}));
    const CUdeviceptr memory = Alloc(4096);
    ASSERT_CU(cuMemsetD8_v2(memory, 0, 4096));
    Read32(memory);
    ASSERT_CU(cuMemFree_v2(memory));
    ASSERT_CU(cuCtxSynchronize());
  }
}

void ContextTest::TearDown() {
  cuCtxSetCurrent(nullptr);
  if (context_ != nullptr) {
    EXPECT_CU(cuDevicePrimaryCtxRelease_v2(0));
  }
}

CUfunction ContextTest::Kernel(const char* name) {
  CUfunction function = nullptr;
  EXPECT_CU(cuModuleGetFunction(&function, module_, name));
  return function;
}

CUresult ContextTest::Launch(const char* kernel, std::vector<void*> params, CUstream stream) {
  return cuLaunchKernel(Kernel(kernel), 1, 1, 1, 1, 1, 1, 0, stream, params.data(), nullptr);
}

CUresult ContextTest::Fill(CUdeviceptr target, uint32_t value, uint64_t count, CUstream stream) {
  return Launch("fill", {&target, &value, &count}, stream);
}

CUdeviceptr ContextTest::Alloc(size_t bytes) {
  CUdeviceptr pointer = 0;
  EXPECT_CU(cuMemAlloc_v2(&pointer, bytes));
  return pointer;
}

uint32_t ContextTest::Read32(CUdeviceptr address) {
  uint32_t value = 0;
  EXPECT_CU(cuMemcpyDtoH_v2(&value, address, sizeof value));
  return value;
}

size_t ContextTest::FreeBytes() {
  size_t free_bytes = 0;
  size_t total = 0;
  EXPECT_CU(cuMemGetInfo_v2(&free_bytes, &total));
  return free_bytes;
}

CUmemAllocationProp DeviceMemory() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return prop;
}

CUmemAccessDesc ReadWrite() {
  return {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

size_t Granularity() {
  const CUmemAllocationProp prop = DeviceMemory();
  size_t granularity = 0;
  EXPECT_CU(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return granularity;
}

SharedWord::SharedWord() {
  void* pointer = nullptr;
  EXPECT_CU(cuMemHostAlloc(&pointer, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  word_ = static_cast<uint64_t*>(pointer);
}

SharedWord::~SharedWord() { EXPECT_CU(cuMemFreeHost(word_)); }

OtherProcess::OtherProcess(const char* role, int pass_fd) {
  int to[2];
  int from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Above all numbers that are targets here.
  const int in = fcntl(to[0], F_DUPFD_CLOEXEC, 64);
  const int out = fcntl(from[1], F_DUPFD_CLOEXEC, 64);
  const int passed = pass_fd < 0 ? -1 : fcntl(pass_fd, F_DUPFD_CLOEXEC, 64);
  posix_spawn_file_actions_adddup2(&actions, in, kRoleIn);
  posix_spawn_file_actions_adddup2(&actions, out, kRoleOut);
  if (passed >= 0) posix_spawn_file_actions_adddup2(&actions, passed, kPassedFd);
  const std::string flag = std::string("--role=") + role;
  char self[] = "/proc/self/exe";
  char* argv[] = {self, const_cast<char*>(flag.c_str()), nullptr};
  EXPECT_EQ(posix_spawn(&pid_, self, &actions, nullptr, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  for (const int fd : {to[0], from[1], in, out, passed}) {
    if (fd >= 0) close(fd);
  }
  to_ = to[1];
  from_ = from[0];
}

OtherProcess::~OtherProcess() {
  if (pid_ > 0) {
    Kill();
    waitpid(pid_, nullptr, 0);
  }
  close(to_);
  close(from_);
}

uint64_t OtherProcess::Read() {
  pollfd ready{from_, POLLIN, 0};
  uint64_t value = 0;
  if (poll(&ready, 1, kPatienceMs) != 1 ||
      read(from_, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) {
    ADD_FAILURE() << "no word from the other process";
  }
  return value;
}

void OtherProcess::Write(uint64_t value) {
  EXPECT_EQ(write(to_, &value, sizeof value), static_cast<ssize_t>(sizeof value));
}

void OtherProcess::Kill() { kill(pid_, SIGKILL); }

int OtherProcess::Join() {
  close(to_);
  to_ = -1;
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

uint64_t ReadFromTest() {
  uint64_t value = 0;
  if (read(kRoleIn, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) _exit(3);
  return value;
}

void WriteToTest(uint64_t value) {
  if (write(kRoleOut, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) _exit(3);
}

bool AddRole(const char* role, int (*function)()) {
  Roles()[role] = function;
  return true;
}

namespace {

std::string StatsText(int gpu) {
  OnlySimulated("it reads the counters of simgpu-ctl");
  const std::string command = std::string(SLUICE_SIMGPU_CTL) + " stats " + getenv("SLUICE_SIMGPU") +
                              " --json --gpu " + std::to_string(gpu);
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  size_t n = 0;
  while ((n = fread(buffer, 1, sizeof buffer, pipe)) > 0) text.append(buffer, n);
  pclose(pipe);
  return text;
}

/// The number behind the first `key` after `*at`, which moves there.
uint64_t NumberAfter(const std::string& text, const std::string& key, size_t* at) {
  *at = text.find("\"" + key + "\": ", *at);
  EXPECT_NE(*at, std::string::npos) << key << " in " << text;
  return *at == std::string::npos ? 0 : strtoull(text.c_str() + *at + key.size() + 4, nullptr, 10);
}

}  // namespace

int Inject(const std::string& rules) {
  const std::string command = std::string(SLUICE_SIMGPU_CTL) + " inject " +
                              getenv("SLUICE_SIMGPU") + " '" + rules + "' 2>/dev/null";
  return WEXITSTATUS(system(command.c_str()));
}

uint64_t Stat(const std::string& key, int gpu) {
  size_t at = 0;
  return NumberAfter(StatsText(gpu), key, &at);
}

Counted CountedBytes(const std::string& family, int pid) {
  const std::string text = StatsText(0);
  size_t at = text.find("\"pid\": " + std::to_string(pid == 0 ? getpid() : pid) + ",");
  EXPECT_NE(at, std::string::npos) << text;
  if (at == std::string::npos) return {};
  NumberAfter(text, family, &at);
  if (at == std::string::npos) return {};
  const uint64_t requested = NumberAfter(text, "requested", &at);
  return {requested, NumberAfter(text, "held", &at)};
}

void ExpectCounted(const std::string& family, const Counted& counted, int pid) {
  if (RealDriver()) return;
  EXPECT_EQ(CountedBytes(family, pid), counted) << family;
}

bool Eventually(bool (*done)(void*), void* argument) {
  // By the clock: what is asked each time takes its time, too.
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!done(argument)) {
    if (std::chrono::steady_clock::now() >= until) return false;
    poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace sluice::contract

/// Without a GPU in the environment, real or simulated, the program starts itself again under
/// `simgpu-ctl run`, which also cleans up when a test crashes.
int main(int argc, char** argv) {
  using namespace sluice::contract;
  if (!RealDriver() && getenv("SLUICE_SIMGPU") == nullptr) {
    std::vector<char*> command;
    for (const char* word : {SLUICE_SIMGPU_CTL, "run", "--gpus", g_gpus, "--memory", g_memory,
                             "--machine", MachineFile(), "--"}) {
      command.push_back(const_cast<char*>(word));
    }
    command.insert(command.end(), argv, argv + argc);
    command.push_back(nullptr);
    execv(command[0], command.data());
    perror(command[0]);
    return 127;
  }
  if (argc == 2 && strncmp(argv[1], "--role=", 7) == 0) {
    const auto role = Roles().find(argv[1] + 7);
    return role == Roles().end() ? 2 : role->second();
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
