// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/unique_fd.h"

namespace sluice::cli {
namespace {

constexpr uint16_t kMaxSegments = 256;

bool ReadAt(int fd, void* into, size_t bytes, uint64_t offset) {
  return ::pread(fd, into, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

/// Of a program whose file could be understood; else nothing is claimed.
std::string AboutElf(int fd, const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "it is no 64-bit program";
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxSegments) return "";
  bool dynamic = false;
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    if (!ReadAt(fd, &segment, sizeof segment, header.e_phoff + i * sizeof segment)) return "";
    if (segment.p_type != PT_INTERP) continue;
    dynamic = true;
    char loader[256] = {};
    const size_t length = std::min<size_t>(segment.p_filesz, sizeof loader - 1);
    if (!ReadAt(fd, loader, length, segment.p_offset)) return "";
    if (std::strstr(loader, "ld-musl") != nullptr) {
      return "it is linked with musl, and the library needs glibc";
    }
  }
  return dynamic ? "" : "it is linked statically";
}

/// Programs that gain rights are not given libraries by their callers.
bool GainsRights(int fd, const struct stat& info) {
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != ::geteuid()) return true;
  if ((info.st_mode & S_ISGID) != 0 && info.st_gid != ::getegid()) return true;
  return ::geteuid() != 0 && ::fgetxattr(fd, "security.capability", nullptr, 0) > 0;
}

std::string About(const std::string& file, int scripts_left) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info = {};
  // A program may be executable and not readable.
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return "";
  if (GainsRights(fd.get(), info)) return "it runs with rights of its own";
  Elf64_Ehdr header = {};
  char line[256] = {};
  const ssize_t got = ::pread(fd.get(), line, sizeof line - 1, 0);
  if (got >= 2 && line[0] == '#' && line[1] == '!' && scripts_left > 0) {
    std::string_view rest(line + 2);
    rest = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    const std::string interpreter(rest.substr(0, rest.find_first_of(" \t")));
    const std::string why = About(interpreter, scripts_left - 1);
    return why.empty() ? "" : why + " (" + interpreter + ")";
  }
  if (!ReadAt(fd.get(), &header, sizeof header, 0)) return "";
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "";
  return AboutElf(fd.get(), header);
}

}  // namespace

std::string WhyNotPreloaded(const std::string& file) {
  constexpr int kScripts = 4;  // as many as the kernel follows
  return file.empty() ? "" : About(file, kScripts);
}

std::string ProgramFile(const std::string& program, const std::string& path) {
  if (program.find('/') != std::string::npos) return program;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    const std::string file = (end == start ? "." : path.substr(start, end - start)) + '/' + program;
    struct stat info = {};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
    start = end + 1;
  }
  return "";
}

}  // namespace sluice::cli
