// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/other_user.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sluice::testing {
namespace {

constexpr unsigned kFirstOutside = 200'000;

void Must(bool done, const std::string& what) {
  if (!done) throw std::runtime_error(what + ": " + std::strerror(errno));
}

void Put(const std::string& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  Must(file.valid() &&
           ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()),
       path);
}

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
  Pipe() {
    int ends[2];
    Must(::pipe2(ends, O_CLOEXEC) == 0, "pipe");
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
};

/// A byte, or the other side's end.
bool Await(const UniqueFd& fd) {
  char byte = 0;
  return ::read(fd.get(), &byte, 1) == 1;
}

/// Says what `act` does in a child. `beside` runs in this process meanwhile, with the child's id.
std::string InChild(const std::function<std::string()>& act,
                    const std::function<void(pid_t)>& beside = nullptr) {
  Pipe said;
  const pid_t child = ::fork();
  Must(child >= 0, "fork");
  if (child == 0) {
    std::string text;
    int code = 0;
    try {
      text = act();
    } catch (const std::exception& error) {
      text = error.what();
      code = 1;
    }
    code |= ::write(said.write_end.get(), text.data(), text.size()) !=
            static_cast<ssize_t>(text.size());
    ::_exit(code);
  }
  said.write_end.reset();
  std::string failed;
  try {
    if (beside != nullptr) beside(child);
  } catch (const std::exception& error) {
    failed = error.what();
  }
  std::string text;
  char part[4096];
  ssize_t got = 0;
  while ((got = ::read(said.read_end.get(), part, sizeof part)) > 0)
    text.append(part, static_cast<size_t>(got));
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!failed.empty() || status != 0) throw std::runtime_error(failed + " " + text);
  return text;
}

void SetCapabilities(uint64_t wanted) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  for (int i = 0; i < 2; ++i) {
    const auto word = static_cast<uint32_t>(wanted >> (32 * i));
    sets[i] = {word, word, word};
  }
  Must(::syscall(SYS_capset, &header, sets) == 0, "capset");
}

void GiveUpMounting() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  Must(::syscall(SYS_capget, &header, sets) == 0, "capget");
  Must(::prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) == 0, "bounding set");
  const uint64_t had = sets[0].permitted | uint64_t{sets[1].permitted} << 32;
  SetCapabilities(had & ~(uint64_t{1} << CAP_SYS_ADMIN));
}

void Become(uid_t user) {
  Must(::syscall(SYS_setgroups, 0, nullptr) == 0 || errno == EPERM, "setgroups");
  Must(::setresgid(user, user, user) == 0, "setresgid");
  Must(::setresuid(user, user, user) == 0, "setresuid");
}

void Mount(const Container& container) {
  if (!container.is_mounted) return;
  const char* target = container.target.c_str();
  Must(::mount(container.source.c_str(), target, nullptr, MS_BIND, nullptr) == 0, "bind");
  if (!container.read_only) return;
  struct statvfs now = {};
  Must(::statvfs(target, &now) == 0, target);
  // What holds for the whole of it must go on to.
  unsigned long flags = MS_BIND | MS_REMOUNT | MS_RDONLY;
  if ((now.f_flag & ST_NOSUID) != 0) flags |= MS_NOSUID;
  if ((now.f_flag & ST_NODEV) != 0) flags |= MS_NODEV;
  if ((now.f_flag & ST_NOEXEC) != 0) flags |= MS_NOEXEC;
  if ((now.f_flag & ST_NOATIME) != 0) flags |= MS_NOATIME;
  if ((now.f_flag & ST_RELATIME) != 0) flags |= MS_RELATIME;
  Must(::mount(nullptr, target, nullptr, flags, nullptr) == 0, "read-only");
}

}  // namespace

std::string AsUser(uid_t user, const std::function<std::string()>& act) {
  return InChild([&] {
    Must(::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0, "keep capabilities");
    Become(user);
    constexpr uint64_t kReads = uint64_t{1} << CAP_DAC_READ_SEARCH;
    SetCapabilities(kReads);
    Must(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0) == 0, "ambient");
    return act();
  });
}

void MakeFolderOf(uid_t user, const std::string& path) {
  Must(::mkdir(path.c_str(), 0755) == 0 && ::chmod(path.c_str(), 0755) == 0 &&
           ::chown(path.c_str(), user, user) == 0,
       path);
}

UniqueFd ListenAs(uid_t user, const std::string& path) {
  UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  Must(listener.valid() && path.size() < sizeof address.sun_path, path);
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  // By root, which may make files anywhere; who listens is asked of the call that does.
  Must(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
           ::chmod(path.c_str(), 0666) == 0,
       path);
  AsUser(user, [&] {
    Must(::listen(listener.get(), 16) == 0, "listen");
    return std::string();
  });
  return listener;
}

Heard WhatCame(const UniqueFd& listener) {
  Heard heard;
  while (true) {
    const UniqueFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) return heard;
    ++heard.connections;
    char frame[4096];
    const ssize_t got = ::recv(client.get(), frame, sizeof frame, MSG_DONTWAIT);
    if (got > 0) heard.bytes += static_cast<size_t>(got);
  }
}

std::string InContainer(const Container& container, const std::function<std::string()>& act) {
  const bool by_root = container.maker == 0;
  Pipe made;
  Pipe mapped;
  const auto inside = [&] {
    made.read_end.reset();
    mapped.write_end.reset();
    if (!container.mounts_inside) {
      Must(::unshare(CLONE_NEWNS) == 0, "mount namespace");
      Must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
      Mount(container);
    }
    if (!by_root) Become(container.maker);
    Must(::unshare(CLONE_NEWUSER | (container.mounts_inside ? CLONE_NEWNS : 0)) == 0,
         "user namespace");
    Must(::write(made.write_end.get(), "1", 1) == 1 && Await(mapped.read_end), "map");
    if (by_root) Become(0);
    if (container.mounts_inside) Mount(container);
    if (!container.may_mount) GiveUpMounting();
    if (container.user != 0) Become(container.user);
    return act();
  };
  return InChild(inside, [&](pid_t child) {
    made.write_end.reset();
    mapped.read_end.reset();
    if (!Await(made.read_end)) return;  // it says why
    const std::string process = "/proc/" + std::to_string(child);
    const std::string map = by_root ? "0 " + std::to_string(kFirstOutside) + " 65536"
                                    : "0 " + std::to_string(container.maker) + " 1";
    Put(process + "/setgroups", "deny");
    Put(process + "/gid_map", map);
    Put(process + "/uid_map", map);
    Must(::write(mapped.write_end.get(), "1", 1) == 1, "map");
  });
}

}  // namespace sluice::testing
