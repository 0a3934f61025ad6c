// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/bounded_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice::page {
namespace {

using Clock = std::chrono::steady_clock;

bool Await(int fd, short what, Clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd ready = {fd, what, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(left));
    if (count > 0) return (ready.revents & what) != 0;
    if (count == 0 || errno != EINTR) return false;
  }
}

/// A connection that gives up rather than exceed the bounds.
class BoundedStream final : public httplib::Stream {
 public:
  BoundedStream(int fd, const BoundedServer::Bounds& bounds)
      : fd_(fd),
        bounds_(bounds),
        left_(bounds.request_bytes),
        deadline_(Clock::now() + bounds.request_time) {}

  bool is_readable() const override { return Await(fd_, POLLIN, deadline_); }
  bool is_writable() const override {
    return Await(fd_, POLLOUT, Clock::now() + bounds_.write_time);
  }

  /// httplib asks for a byte at a time while it reads headers.
  ssize_t read(char* to, size_t size) override {
    if (begin_ == end_ && !Fill()) return -1;
    const size_t count = std::min(size, end_ - begin_);
    std::copy_n(buffer_ + begin_, count, to);
    begin_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* from, size_t size) override {
    size_t done = 0;
    while (done < size) {
      const ssize_t sent = ::send(fd_, from + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) {
        done += static_cast<size_t>(sent);
      } else if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (!is_writable()) return -1;
      } else {
        return -1;
      }
    }
    return static_cast<ssize_t>(size);
  }

  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return fd_; }

 private:
  bool Fill() {
    if (left_ == 0 || !is_readable()) return false;
    const ssize_t count = ::recv(fd_, buffer_, std::min(left_, sizeof buffer_), MSG_DONTWAIT);
    if (count <= 0) return false;
    left_ -= static_cast<size_t>(count);
    begin_ = 0;
    end_ = static_cast<size_t>(count);
    return true;
  }

  const int fd_;
  const BoundedServer::Bounds& bounds_;
  size_t left_;
  const Clock::time_point deadline_;
  char buffer_[4096];
  size_t begin_ = 0;
  size_t end_ = 0;
};

/// As httplib's own pool, but whoever accepts waits while too many wait.
class BoundedQueue final : public httplib::TaskQueue {
 public:
  BoundedQueue(size_t threads, size_t longest) : longest_(longest) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }

  void enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.size() < longest_; });
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !tasks_.empty() || over_; });
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      changed_.notify_all();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  const size_t longest_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

BoundedServer::BoundedServer(const Bounds& bounds) : bounds_(bounds) {
  new_task_queue = [this] { return new BoundedQueue(bounds_.threads, bounds_.queue); };
  set_payload_max_length(bounds_.request_bytes);
  // httplib would share the port with whoever asks for the same.
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

bool BoundedServer::process_and_close_socket(socket_t socket) {
  const int bytes = static_cast<int>(bounds_.send_buffer_bytes);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  BoundedStream stream(socket, bounds_);
  bool closed = false;
  const bool done = process_request(stream, true, closed, nullptr);
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return done;
}

}  // namespace sluice::page
