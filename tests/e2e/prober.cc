// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A CUDA program for the tests on a cluster, which knows nothing of Sluice: it says how much memory
// it sees, takes as much as it gets, and does what a program should not. One line per fact,
// "key=value".
//
//   prober see              what the driver and NVML call the GPU's memory
//   prober take             takes memory by the MiB until there is none, and gives it back
//   prober hold MIB         holds so much until the file /tmp/go is there, then takes what it gets
//
//   prober fork             takes what it gets; a child of it does the same while it has that
//
//   prober crowd N          N children take what they get, and keep it until all have taken
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Address = unsigned long long;
constexpr size_t kMiB = size_t{1} << 20;

[[noreturn]] void Fail(const char* what, int code) {
  std::printf("failed=%s code=%d\n", what, code);
  std::fflush(stdout);
  std::_Exit(1);
}

template <typename Function>
Function* Find(void* library, const char* name) {
  void* found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) Fail(name, -1);
  return reinterpret_cast<Function*>(found);
}

/// The driver with a context of its own.
class Gpu {
 public:
  Gpu() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
    Do("cuInit", Find<int(unsigned)>(library_, "cuInit")(0));
    int device = 0;
    Do("cuDeviceGet", Find<int(int*, int)>(library_, "cuDeviceGet")(&device, 0));
    void* context = nullptr;
    Do("cuCtxCreate",
       Find<int(void**, unsigned, int)>(library_, "cuCtxCreate_v2")(&context, 0, device));
  }
  void See() {
    size_t free = 0;
    size_t total = 0;
    Do("cuMemGetInfo", Find<int(size_t*, size_t*)>(library_, "cuMemGetInfo_v2")(&free, &total));
    std::printf("driver_total=%zu\n", total);
  }
  /// How many MiB it gets, `most` at most; they stay.
  size_t Take(size_t most) {
    auto* allocate = Find<int(Address*, size_t)>(library_, "cuMemAlloc_v2");
    size_t taken = 0;
    Address block = 0;
    while (taken < most && allocate(&block, kMiB) == 0) ++taken;
    return taken;
  }

 private:
  static void Do(const char* what, int code) {
    if (code != 0) Fail(what, code);
  }
  void* library_;
};

void SeeByNvml() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  struct {
    unsigned long long total, free, used;
  } memory = {};
  void* device = nullptr;
  const bool good =
      Find<int()>(library, "nvmlInit_v2")() == 0 &&
      Find<int(unsigned, void**)>(library, "nvmlDeviceGetHandleByIndex_v2")(0, &device) == 0 &&
      Find<int(void*, void*)>(library, "nvmlDeviceGetMemoryInfo")(device, &memory) == 0;
  if (!good) Fail("nvml", -1);
  std::printf("nvml_total=%llu\n", memory.total);
}

/// The process has it until it ends.
void Take(const char* who) {
  Gpu gpu;
  std::printf("%s=%zu\n", who, gpu.Take(1 << 20));
  std::fflush(stdout);
}

/// Processes that keep what they take until all of them have taken: a pipe reads its end when
/// nobody has the other end open any more.
class Together {
 public:
  Together() {
    if (pipe(taking_) != 0 || pipe(keeping_) != 0) Fail("pipe", -1);
  }
  void Child() {
    const pid_t child = fork();
    if (child > 0) children_.push_back(child);
    if (child != 0) return;
    close(taking_[0]);
    close(keeping_[1]);
    Take("child_mib");
    close(taking_[1]);
    UntilEnd(keeping_[0]);
    std::_Exit(0);
  }
  /// Returns when all children have ended.
  void Release() {
    close(taking_[1]);
    UntilEnd(taking_[0]);
    close(keeping_[1]);
    // Not for any child: who is a container's first process gets those of others, too.
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }

 private:
  static void UntilEnd(int end) {
    char byte = 0;
    while (read(end, &byte, 1) > 0) {
    }
  }
  int taking_[2];
  int keeping_[2];
  std::vector<pid_t> children_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "see") {
    Gpu().See();
    SeeByNvml();
  } else if (what == "take") {
    Take("taken_mib");
  } else if (what == "hold") {
    Gpu gpu;
    std::printf("holding_mib=%zu\n", gpu.Take(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1));
    std::fflush(stdout);
    while (access("/tmp/go", F_OK) != 0) usleep(20'000);
    std::printf("further_mib=%zu\n", gpu.Take(1 << 20));
  } else if (what == "fork") {
    Together together;
    together.Child();
    Take("parent_mib");
    together.Release();
  } else if (what == "crowd") {
    Together together;
    const int count = argc > 2 ? std::atoi(argv[2]) : 2;
    for (int i = 0; i < count; ++i) together.Child();
    together.Release();
  } else {
    std::fprintf(stderr, "prober: unknown '%s'; see, take, hold MIB, fork and crowd N are known\n",
                 what.c_str());
    return 2;
  }
}
