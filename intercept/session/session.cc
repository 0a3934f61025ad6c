// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/session.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <type_traits>

#include "intercept/blocks/block.h"
#include "intercept/blocks/free_index.h"

namespace sluice {

using protocol::FrameType;

namespace {

// Between two frames of the handshake. The daemon may have to make the pool first.
constexpr uint64_t kHandshakeTimeoutMs = 30'000;
constexpr int kHandshakes = 3;
bool Complete(const DriverTable& d) {
  return d.cuMemAddressReserve != nullptr && d.cuMemImportFromShareableHandle != nullptr &&
         d.cuMemMap != nullptr && d.cuMemSetAccess != nullptr && d.cuMemRelease != nullptr &&
         d.cuMemUnmap != nullptr && d.cuMemAddressFree != nullptr &&
         d.cuMemHostRegister_v2 != nullptr && d.cuStreamWriteValue64_v2 != nullptr;
}

}  // namespace

// A page of the session must not be smaller than its structure: touching it would be SIGBUS.
bool Session::LargeEnough(int fd, size_t bytes) {
  return lseek(fd, 0, SEEK_END) >= static_cast<off_t>(bytes);  // fstat is glibc 2.33
}

// In the place of the one that was there, in one step: other threads use it all the time.
template <class Page>
bool Session::MapShared(int fd, int protection, Page** page) {
  if (!LargeEnough(fd, sizeof(Page))) return false;
  void* const at = const_cast<std::remove_const_t<Page>*>(*page);
  void* const memory = mmap(at, WholePages(sizeof(Page)), protection,
                            at == nullptr ? MAP_SHARED : MAP_SHARED | MAP_FIXED, fd, 0);
  if (memory == MAP_FAILED) return false;
  *page = static_cast<Page*>(memory);
  return true;
}

bool Session::TakeDaemonPage(int fd) { return MapShared(fd, PROT_READ, &daemon_); }

bool Session::Open(const DriverTable& driver, const char* path, CUdevice device,
                   protocol::Resume* scratch, Line& why) {
  const ErrnoKeeper keeper;
  device_ = device;
  seq_ = 0;
  epoch_ = 0;
  refusal_[0] = 0;
  dismissed_ = declared_ = false;
  given_up_.store(false, std::memory_order_relaxed);
  {
    const LockGuard guard(silence_lock_);
    silence_ = Silence();
  }
  const char* error = Attempt(driver, path);
  // A daemon that dies in the middle may be followed by another one, which begins from the start.
  for (int left = kHandshakes - 1; left > 0 && error != nullptr && socket_.hung_up(); --left) {
    Drop(driver);
    const char* again = Attempt(driver, path);
    if (socket_.open()) error = again;
  }
  if (error != nullptr && refusal_[0] != 0 && ended_) {
    // Our last goodbye may have been in the queue of a daemon that died.
    Drop(driver);
    Part(path, scratch);
    if (AwaitParted(path, scratch, kHandshakeTimeoutMs)) {
      refusal_[0] = 0;
      error = Attempt(driver, path);
    }
  }
  ended_ = false;
  if (error == nullptr) return true;
  Drop(driver);
  why.Text("no GPU memory for this process: ");
  why.Text(refusal_[0] != 0 ? refusal_ : error);
  if (path[0] != 0) why.Text(" (").Text(path).Text(")");
  return false;
}

const char* Session::Attempt(const DriverTable& driver, const char* path) {
  if (!Complete(driver)) {
    return "this driver lacks virtual memory management or 64-bit stream memory operations";
  }
  if (const char* error = socket_.Connect(path)) return error;
  const RelaxedCapture relaxed(driver);
  return Handshake(driver);
}

const char* Session::Handshake(const DriverTable& driver) {
  if (const char* error = SayHello(driver)) return error;
  Frame frame;
  FrameFds fds;
  if (const char* error = ReceiveInOrder(FrameType::kWelcome, &frame, &fds)) return error;
  if (const char* error = TakeWelcome(frame, fds)) return error;
  if (const char* error = MapPool(driver)) return error;
  if (const char* error = RegisterMarks(driver, false)) return error;
  if (!pending_.Reserve(units_)) return "the host is out of memory";
  protocol::Ready ready{MakeHeader(FrameType::kReady, sizeof ready, 0)};
  return Send(&ready.header);
}

bool Session::IdentityOf(const DriverTable& driver, CUdevice device, uint8_t (&uuid)[16]) {
  CUuuid found{};
  const auto get_uuid =
      driver.cuDeviceGetUuid_v2 != nullptr ? driver.cuDeviceGetUuid_v2 : driver.cuDeviceGetUuid;
  if (get_uuid == nullptr || get_uuid(&found, device) != CUDA_SUCCESS) return false;
  memcpy(uuid, found.bytes, sizeof uuid);
  return true;
}

const char* Session::SayHello(const DriverTable& driver) {
  protocol::Hello hello{};
  hello.header = MakeHeader(FrameType::kHello, sizeof hello, 0);
  hello.major = protocol::kMajor;
  hello.minor = protocol::kMinor;
  hello.client_page_bytes = sizeof(protocol::ClientPage);
  hello.daemon_page_bytes = sizeof(protocol::DaemonPage);
  hello.mark_page_bytes = sizeof(protocol::MarkPage);
  hello.device_ordinal = static_cast<uint32_t>(device_);
  if (!IdentityOf(driver, device_, hello.device_uuid)) {
    return "the driver does not tell the GPU's identity";
  }
  return Send(&hello.header);
}

// The next frame must be of this type; notices before it are printed, a refusal is kept.
const char* Session::ReceiveInOrder(FrameType type, Frame* frame, FrameFds* fds) {
  while (true) {
    if (const char* error = socket_.Receive(frame, fds, kHandshakeTimeoutMs)) return error;
    const auto got = static_cast<FrameType>(frame->header.type);
    if (got == type) return nullptr;
    fds->CloseAll();
    if (got == FrameType::kNotice) {
      Line().Text(frame->notice.text).Print();
      continue;
    }
    if (got == FrameType::kDeny) memcpy(refusal_, frame->deny.text, sizeof refusal_);
    if (got == FrameType::kClose) memcpy(refusal_, frame->close.text, sizeof refusal_);
    return "the daemon spoke out of order";
  }
}

const char* Session::TakeWelcome(const Frame& frame, FrameFds& fds) {
  const protocol::Welcome& welcome = frame.welcome;
  unit_bytes_ = welcome.unit_bytes;
  handle_bytes_ = welcome.handle_bytes;
  handle_count_ = welcome.handle_count;
  limit_bytes_ = welcome.limit_bytes;
  session_id_ = welcome.session;
  daemon_minor_ = welcome.minor;
  // Frames carry unit numbers and blocks count granules, both in 31 bits.
  constexpr uint64_t kMaxPool = uint64_t{FreeIndex::kLimit} << kGranuleShift;
  const bool sound = unit_bytes_ >= kPageBytes && (unit_bytes_ & (unit_bytes_ - 1)) == 0 &&
                     handle_bytes_ >= unit_bytes_ && handle_bytes_ % unit_bytes_ == 0 &&
                     handle_count_ > 0 && handle_bytes_ <= kMaxPool / handle_count_;
  if (!sound || welcome.major != protocol::kMajor) {
    fds.CloseAll();
    return sound
               ? "the daemon speaks another protocol version"
               : "the daemon's pool has an impossible shape (units are powers of two, the pool is "
                 "at most 1 TiB)";
  }
  units_ = static_cast<uint32_t>(handle_bytes_ / unit_bytes_ * handle_count_);
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  const bool mapped = MapShared(fds.fd[0], kBoth, &marks_) &&
                      MapShared(fds.fd[1], kBoth, &client_) &&
                      MapShared(fds.fd[2], PROT_READ, &daemon_);
  mark_fd_ = fds.fd[0];
  liveness_fd_ = fds.fd[3];
  CloseFd(fds.fd[1]);
  CloseFd(fds.fd[2]);
  fds.count = 0;
  return mapped ? nullptr : "the daemon's shared pages cannot be mapped";
}

// A driver maps a handle from its start and as a whole, so a unit has to be one.
uint32_t Session::Windows(const DriverTable& driver) const {
  if (unit_bytes_ != handle_bytes_ || daemon_minor_ < protocol::kStitchMinor ||
      driver.cuMemRetainAllocationHandle == nullptr) {
    return 0;
  }
  const uint64_t most = (uint64_t{FreeIndex::kLimit} << kGranuleShift) / handle_bytes_;
  const uint64_t left = most > handle_count_ ? most - 1 - handle_count_ : 0;
  constexpr uint64_t kPools = 4;  // so much address space
  return static_cast<uint32_t>(left < kPools * handle_count_ ? left : kPools * handle_count_);
}

const char* Session::MapPool(const DriverTable& driver) {
  if (const char* error = arena_.Reserve(driver, handle_bytes_, handle_count_, Windows(driver))) {
    return error;
  }
  uint32_t first = 0;
  while (!arena_.complete()) {
    Frame frame;
    FrameFds fds;
    if (const char* error = ReceiveInOrder(FrameType::kHandles, &frame, &fds)) return error;
    const char* error = nullptr;
    if (frame.handles.first != first || fds.count > handle_count_ - first) {
      error = "the daemon sent the pool's handles out of order";
    }
    for (size_t i = 0; i < fds.count && error == nullptr; ++i) {
      error = arena_.MapNext(driver, fds.fd[i]);
    }
    first += static_cast<uint32_t>(fds.count);
    fds.CloseAll();
    if (error != nullptr) return error;
  }
  return arena_.SetAccess(driver, device_);
}

// `same`: the page was registered in a context that is gone.
const char* Session::RegisterMarks(const DriverTable& driver, bool same) {
  const auto ask = [&] {
    return driver.cuMemHostRegister_v2(marks_, WholePages(sizeof(protocol::MarkPage)),
                                       CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  };
  CUresult result = ask();
  // A driver whose registrations outlive their context has it still. That of the last session was
  // at this address, too, and marks would be written there.
  if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED && same) result = CUDA_SUCCESS;
  if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED &&
      driver.cuMemHostUnregister != nullptr && driver.cuMemHostUnregister(marks_) == CUDA_SUCCESS) {
    result = ask();
  }
  if (result != CUDA_SUCCESS) return "the driver does not register the page of stream marks";
  marks_registered_ = true;
  mark_address_ = reinterpret_cast<CUdeviceptr>(marks_);
  CUdeviceptr mapped = 0;
  if (driver.cuPointerGetAttribute != nullptr &&
      driver.cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, mark_address_) ==
          CUDA_SUCCESS &&
      mapped != 0) {
    mark_address_ = mapped;
  }
  return nullptr;
}

// Their file is still open: a driver may look for it.
bool Session::RegisterMarksAnew(const DriverTable& driver) {
  const ErrnoKeeper keeper;
  marks_registered_ = false;
  const RelaxedCapture relaxed(driver);
  return RegisterMarks(driver, true) == nullptr;
}

uint64_t Session::LimitBytes() const {
  const uint64_t units = daemon_->limit_units.load(std::memory_order_relaxed);
  const uint64_t limit = units != 0 ? units * unit_bytes_ : limit_bytes_;
  return limit == 0 || limit > pool_bytes() ? pool_bytes() : limit;
}

bool Session::AddGrant(const protocol::Grant& grant, uint64_t epoch) {
  if (grant.epoch != epoch) return false;
  for (uint32_t i = 0; i < grant.extents; ++i) {
    const protocol::Extent extent = grant.extent[i];
    if (extent.length == 0 || extent.offset >= units_ || extent.length > units_ - extent.offset) {
      return false;
    }
    for (uint32_t unit = extent.offset; unit < extent.offset + extent.length; ++unit) {
      if (pending_[unit] != 0) return false;
      pending_[unit] = 1;
    }
  }
  return true;
}

// Of this session: the pages of the last one stay mapped.
bool Session::ShowsBeats() const { return units_ != 0 && daemon_minor_ >= protocol::kBeatMinor; }

void Session::LookForBeats() {
  Silence::Say say = Silence::Say::kNothing;
  {
    const LockGuard guard(silence_lock_);
    say = silence_.Look(daemon_->beats.load(std::memory_order_relaxed), NowNs(),
                        silence_ms_ * 1'000'000);
  }
  if (say == Silence::Say::kBack) Line().Text("the daemon is back").Print();
  if (say != Silence::Say::kSilent) return;
  Line()
      .Text("the daemon has given no sign of life for ")
      .Number((silence_ms_ + 999) / 1000)
      .Text(" s: it is stopped (SIGSTOP, a debugger, a frozen control group) or hangs. This job ")
      .Text("waits for it, keeps what it has, and goes on when the daemon does (kill -CONT) or ")
      .Text("another one takes its place; 'sluice doctor' says more")
      .Print();
}

void Session::SayBack(bool said) {
  {
    const LockGuard guard(silence_lock_);
    said = silence_.Heard() == Silence::Say::kBack || said;
  }
  if (said) Line().Text("the daemon is back").Print();
}

const char* Session::Send(const protocol::Header* header) {
  if (!ShowsBeats()) return socket_.Send(header);
  const char* error = socket_.SendNow(header);
  if (error != FrameSocket::kNotTaken) return error;
  while (error == FrameSocket::kNotTaken) {
    socket_.AwaitRoom(LookMs());
    error = socket_.SendNow(header);
    if (error == FrameSocket::kNotTaken) LookForBeats();
  }
  if (error == nullptr) SayBack(false);
  return error;
}

void Session::Await(uint32_t seq, Answer* answer) {
  Frame frame;
  FrameFds fds;
  uint64_t epoch = 0;  // of the answer whose first frame has come
  const char* error = nullptr;
  answer->text[0] = 0;
  const bool looks = ShowsBeats();
  bool looked = false;
  while (error == nullptr) {
    error = socket_.Receive(&frame, &fds, looks ? LookMs() : FrameSocket::kForever);
    if (error == FrameSocket::kSilent) {
      LookForBeats();
      looked = true;
      error = nullptr;
      continue;
    }
    if (error != nullptr) break;
    if (looked) SayBack(false);
    looked = false;
    switch (static_cast<FrameType>(frame.header.type)) {
      case FrameType::kNotice:
        Line().Text(frame.notice.text).Print();
        break;
      case FrameType::kClose:
        memcpy(answer->text, frame.close.text, sizeof answer->text);
        answer->kind = Answer::kLost;
        dismissed_ = true;
        return;
      case FrameType::kDeny:
        if (frame.header.seq != seq) break;
        TakePending([](const protocol::Extent&) { return true; });
        answer->kind = Answer::kDenied;
        answer->code = static_cast<protocol::DenyCode>(frame.deny.code);
        memcpy(answer->text, frame.deny.text, sizeof answer->text);
        return;
      case FrameType::kQuiesce:
        if (frame.header.seq != seq) break;
        answer->kind = Answer::kQuiesce;
        return;
      case FrameType::kCharged:
        if (frame.header.seq != seq) break;
        answer->kind = Answer::kGranted;
        return;
      case FrameType::kGrant:
        if (frame.grant.epoch <= epoch_ || frame.header.seq != seq) break;  // repeated: ignored
        if (epoch == 0) epoch = frame.grant.epoch;
        if (!AddGrant(frame.grant, epoch)) {
          error = "it granted what does not exist";
        } else if ((frame.header.flags & protocol::kLastFrame) != 0) {
          epoch_ = epoch;
          high_end_ = (frame.header.flags & protocol::kHighEnd) != 0;
          answer->kind = Answer::kGranted;
          return;
        }
        break;
      default:
        fds.CloseAll();
        error = "it spoke out of order";
    }
  }
  TakePending([](const protocol::Extent&) { return true; });
  answer->kind = Answer::kLost;
  // It broke the rules: that is no end of the daemon.
  if (!socket_.hung_up()) dismissed_ = true;
  strncpy(answer->text, error, sizeof answer->text - 1);
  answer->text[sizeof answer->text - 1] = 0;
}

bool Session::Close(const DriverTable& driver, bool clean, const uint64_t* left) {
  memcpy(left_, left, sizeof left_);
  protocol::Bye bye{MakeHeader(FrameType::kBye, sizeof bye, 0)};
  const bool said = socket_.Send(&bye.header) == nullptr;  // the program may be about to end
  ended_ = clean && !dismissed_ && daemon_minor_ >= protocol::kResumeMinor;
  ended_id_ = session_id_;
  ended_epoch_ = epoch_;
  Drop(driver);
  return said;
}

// The pages stay where they are: a thread that looked before whether there is a session may still
// write a record, or read a mark. It finds what was there last, which nobody else reads any more,
// until the next session's pages take their place.
void Session::Drop(const DriverTable& driver) {
  const ErrnoKeeper keeper;
  arena_.Unmap(driver);
  if (marks_registered_ && driver.cuMemHostUnregister != nullptr) {
    static_cast<void>(driver.cuMemHostUnregister(marks_));
  }
  marks_registered_ = false;
  if (mark_fd_ != 0) CloseFd(mark_fd_);
  if (liveness_fd_ != 0) CloseFd(liveness_fd_);
  mark_fd_ = liveness_fd_ = 0;
  pending_.Free();
  units_ = 0;
  socket_.Close();
}

void Session::ForgetInChild() {
  const ErrnoKeeper keeper;
  silence_lock_.ForgetHolder();
  socket_.Close();
  if (mark_fd_ != 0) CloseFd(mark_fd_);
  mark_fd_ = 0;
  ended_ = false;
}

}  // namespace sluice
