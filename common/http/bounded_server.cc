// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/http/bounded_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace sluice::http {
namespace {

using Clock = std::chrono::steady_clock;

/// httplib's own is 5: more than that who connect at once would wait for a second or longer.
constexpr int kBacklog = 128;

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

/// A request that is there, and a connection for its answer that gives up rather than exceed the
/// bounds.
class AnswerStream final : public httplib::Stream {
 public:
  AnswerStream(int fd, const std::string& request, const BoundedServer::Bounds& bounds)
      : fd_(fd), request_(request), bounds_(bounds) {}

  bool is_readable() const override { return at_ < request_.size(); }
  bool is_writable() const override {
    return Await(fd_, POLLOUT, Clock::now() + bounds_.write_time);
  }

  /// httplib asks for a byte at a time while it reads headers.
  ssize_t read(char* to, size_t size) override {
    if (!is_readable()) return -1;
    const size_t count = request_.copy(to, size, at_);
    at_ += count;
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
  const int fd_;
  const std::string& request_;
  const BoundedServer::Bounds& bounds_;
  size_t at_ = 0;
};

}  // namespace

/// Where whole requests are served. For httplib it is the queue of what was accepted, which goes to
/// the waiting room at once.
class BoundedServer::Desk final : public httplib::TaskQueue {
 public:
  explicit Desk(BoundedServer* server)
      : server_(server),
        room_(std::in_place, server->bounds_.requests,
              [this](UniqueFd connection, std::string request) {
                Queue(std::move(connection), std::move(request));
              }) {
    for (size_t i = 0; i < server_->bounds_.threads; ++i) threads_.emplace_back([this] { Work(); });
  }

  void Enter(UniqueFd connection) { room_->Enter(std::move(connection)); }

  void enqueue(std::function<void()> task) override { task(); }

  void shutdown() override {
    room_.reset();
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  struct Request {
    UniqueFd connection;
    std::string text;
  };

  void Queue(UniqueFd connection, std::string text) {
    {
      const std::lock_guard lock(mutex_);
      if (requests_.size() >= server_->bounds_.queue) return;
      requests_.push_back({std::move(connection), std::move(text)});
    }
    changed_.notify_one();
  }

  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !requests_.empty() || over_; });
      if (requests_.empty()) return;
      const Request request = std::move(requests_.front());
      requests_.pop_front();
      lock.unlock();
      server_->Serve(request.connection, request.text);
      lock.lock();
    }
  }

  BoundedServer* server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  bool over_ = false;
  std::vector<std::thread> threads_;
  std::optional<WaitingRoom> room_;  // last: its thread uses the others
};

BoundedServer::BoundedServer(const Bounds& bounds) : bounds_(bounds) {
  new_task_queue = [this] { return desk_ = new Desk(this); };
  set_payload_max_length(bounds_.requests.request_bytes);
  // httplib would share the port with whoever asks for the same.
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

BoundedServer::~BoundedServer() { Stop(); }

int BoundedServer::Start(const std::string& host, int port) {
  const int bound = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  if (bound < 0) return -1;
  ::listen(svr_sock_, kBacklog);
  thread_ = std::thread([this] {
    listen_after_bind();
    ended_ = true;
  });
  return bound;
}

void BoundedServer::Stop() {
  if (!thread_.joinable()) return;
  // Before it listens there is nothing to stop.
  while (!is_running() && !ended_) std::this_thread::yield();
  stop();
  thread_.join();
}

/// Called with each connection that was accepted.
bool BoundedServer::process_and_close_socket(socket_t socket) {
  desk_->Enter(UniqueFd(socket));
  return true;
}

void BoundedServer::Serve(const UniqueFd& connection, const std::string& request) {
  const int bytes = static_cast<int>(bounds_.send_buffer_bytes);
  ::setsockopt(connection.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  AnswerStream stream(connection.get(), request, bounds_);
  bool closed = false;
  process_request(stream, true, closed, nullptr);
  ::shutdown(connection.get(), SHUT_RDWR);
}

}  // namespace sluice::http
