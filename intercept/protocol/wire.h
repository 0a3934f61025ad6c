// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>
#include <stdint.h>

/// The frames between the interception library and sluice-noded: one SOCK_SEQPACKET datagram per
/// frame, native byte order (both ends are on one machine), fixed-width fields, no pointers. Both
/// sides copy a frame before they look at it and treat every index and size in it as hostile.
///
/// Amounts of memory are in lease units, offsets count units from the start of the pool; the unit
/// in bytes is in Welcome. Descriptors travel beside a frame (SCM_RIGHTS).
///
/// A client has at most one request (Lease, Gate or Charge) outstanding; Release, Mismatch,
/// Uncharge, Count and Bye have no answer. The daemon answers a request with zero or more Notice
/// frames and at most one Quiesce, which is answered with Quiet, then either Grant frames (the last
/// one flagged kLastFrame; a client applies all of them at that point), one Charged, or one Deny.
///
/// Versions: a different major is refused. The minor counts additions: a side uses a frame only
/// when the other one's minor knows it. 1: Charge, Charged, Uncharge, Count,
/// Resume, Resumed. 2: Ask, Told. 3: an account that outlives its session (Bye), Uncharge without
/// one, counts of what passes unseen. 4: Quiesce, Quiet. 5: Told::flags, and a Notice before Told.
/// 6: kIfThere, kNoRun; where a unit is a handle the client takes any units for what it asks for.
/// 7: DaemonPage::beats.
namespace sluice::protocol {

inline constexpr uint32_t kMagic = 0x31434c53;  // "SLC1"
inline constexpr uint16_t kMajor = 1;           // differs: the session is refused
inline constexpr uint16_t kMinor = 7;  // larger on one side: that side leaves the newer parts alone
/// The first minor version that resumes a session with a daemon that was started anew.
inline constexpr uint16_t kResumeMinor = 1;
/// The first one in which what a session leaves on its account stays there for the next.
inline constexpr uint16_t kRestMinor = 3;
/// The first one in which a client can be asked to stand still, so that its memory can be moved.
inline constexpr uint16_t kQuietMinor = 4;
/// The first one that understands kLeaveAlone.
inline constexpr uint16_t kLeaveAloneMinor = 5;
/// The first one in which scattered units are put side by side (docs/adr/0031).
inline constexpr uint16_t kStitchMinor = 6;
/// The first one whose daemon shows that it lives (DaemonPage::beats).
inline constexpr uint16_t kBeatMinor = 7;
inline constexpr size_t kMaxFrameBytes = 8192;
inline constexpr size_t kMaxFdsPerFrame = 128;
inline constexpr size_t kMaxFenceTerms = 8;
inline constexpr size_t kMaxExtentsPerFrame = 480;
inline constexpr size_t kMaxTextBytes = 512;  // including the terminating zero
inline constexpr uint32_t kStreamSlots = 256;

enum class FrameType : uint16_t {
  // client to daemon
  kHello = 1,
  kReady = 2,
  kLease = 3,
  kGate = 4,
  kRelease = 5,
  kMismatch = 6,
  kBye = 7,
  kResume = 16,
  kCharge = 17,
  kUncharge = 18,
  kCount = 19,
  kAsk = 20,
  kQuiet = 21,
  // daemon to client
  kWelcome = 32,
  kHandles = 33,
  kGrant = 34,
  kDeny = 35,
  kNotice = 36,
  kClose = 37,
  kResumed = 48,
  kCharged = 49,
  kTold = 50,
  kQuiesce = 51,
  // launcher (`sluice run`) and command line to daemon, on the daemon's own socket
  kRegister = 64,
  kRegistered = 65,
  kStatus = 66,
  kStatusReply = 67,
  kSetPolicy = 68,
  kPolicySet = 69,
  kRecording = 70,
  kRecordingReply = 71,
  kSetBudget = 72,
  kBudgetSet = 73,
  kSetLimit = 74,
  kLimitSet = 75,
  kDrain = 76,
  kDrained = 77,
  kLive = 78,
  kLiveReply = 79,
};

enum FrameFlags : uint16_t {
  kLastFrame = 1,
  /// On a Grant: the job's lane is the high end of the pool. It should fill blocks from its highest
  /// address down, so that the units nearest the middle become free first; without the flag, from
  /// the lowest up. Holds until the next Grant.
  kHighEnd = 2,
  /// On a Status: without what happened to each job lately, which is half of the text. A daemon
  /// that does not know it tells all.
  kWithoutEvents = 4,
  /// On a Lease: what has no run of that length now is denied at once (kNoRun), and nobody comes to
  /// wait for it. The client then asks for what it lacks in pieces.
  kIfThere = 8,
};

struct Header {
  uint32_t magic;
  uint16_t type;   // FrameType
  uint16_t flags;  // FrameFlags
  uint32_t bytes;  // the whole frame, this header included; equals the datagram's length
  uint32_t seq;    // a request's number, repeated in its answers; 0 where there is none
};

struct Extent {
  uint32_t offset;  // units
  uint32_t length;  // units, never 0
};

/// One term of a fence: reached when the mark of `slot` is cyclically >= `value`.
struct FenceTerm {
  uint32_t slot;
  uint32_t reserved;
  uint64_t value;
};

struct Hello {
  Header header;
  uint16_t major;
  uint16_t minor;
  uint32_t
      client_page_bytes;  // sizeof(ClientPage), DaemonPage and MarkPage as this client knows them
  uint32_t daemon_page_bytes;
  uint32_t mark_page_bytes;
  uint32_t device_ordinal;  // as the process sees its devices; 0 unless it uses several
  uint8_t device_uuid[16];
};

/// Comes with exactly four descriptors, in this order: mark page (shared, sealed in size), client
/// page (shared, sealed in size), daemon page (read-only for the client), write end of the liveness
/// pipe. The client never writes to the pipe: that it stays open is the message. Forked children
/// inherit it.
struct Welcome {
  Header header;
  uint16_t major;
  uint16_t minor;
  uint32_t session;
  uint64_t unit_bytes;
  uint64_t handle_bytes;  // a multiple of unit_bytes
  uint32_t handle_count;  // the pool is handle_count * handle_bytes
  uint32_t reserved;
  uint64_t
      limit_bytes;  // most this job may ever hold; 0: not decided yet (see DaemonPage::limit_units)
  uint64_t request_bytes;  // 0: the profiled base
};

/// `count` descriptors, one per handle, in pool order starting with handle `first`. kLastFrame on
/// the last.
struct Handles {
  Header header;
  uint32_t first;
  uint32_t count;
};

/// The arena is mapped and readable; before this the daemon grants nothing.
struct Ready {
  Header header;
};

/// More memory inside the claim (or, for a job without a profile, inside the limit).
struct Lease {
  Header header;
  uint32_t units;       // wanted in all
  uint32_t contiguous;  // at least one run of this many units; <= units
};

/// The client stands at gate `gate` (0: the trough; k: the k-th entry of DaemonPage::gates).
struct Gate {
  Header header;
  uint32_t gate;
  uint32_t profile;     // DaemonPage::profile_id the gate belongs to
  uint64_t iteration;   // counted by the client from its first matched trough
  uint32_t held_units;  // what the client holds leased, for a cross-check
  uint32_t drained;     // 1: every mark of every stream has been reached
};

/// Gives extents back. They stay held until every term of the fence is reached. terms == 0: already
/// done.
struct Release {
  Header header;
  uint32_t terms;
  uint32_t extents;
  FenceTerm fence[kMaxFenceTerms];
  Extent extent[kMaxExtentsPerFrame];  // only the first `extents` are sent
};

enum class MismatchReason : uint32_t { kSequence = 1, kOrder = 2, kOverflow = 3 };

/// The launches no longer follow the published cycle: the job is without a profile from here on.
struct Mismatch {
  Header header;
  uint32_t profile;
  uint32_t reason;  // MismatchReason
};

/// The session is over, and no work is left that could touch its units. What is still charged stays
/// on the job's account, contexts apart, until the process gives it back (Uncharge) or has ended.
/// Its next session begins with it: asked for and given back is the difference alone. (Before 1.3:
/// with something left on its account a process gets no other session.)
struct Bye {
  Header header;
};

/// Memory that the driver gives outside the pool, by what it was asked for.
enum class Family : uint32_t {
  // Charged: against the job's limit (if it was given one) and against what the GPU has beside the
  // pool.
  kArray = 1,     // arrays and mipmapped arrays
  kManaged = 2,   // cuMemAllocManaged
  kPhysical = 3,  // cuMemCreate of the program's own
  kPool = 4,      // driver pools that the arena cannot stand in for (exportable, imported, ...)
  kGraph = 5,     // allocation nodes of graphs
  kContext = 6,   // a further context: `bytes` is ignored, the daemon knows what one costs
  // Counted: somebody else is charged for them, or they are not the GPU's.
  kImported = 16,
  kHostPinned = 17,
  kHostRegistered = 18,
  // Counted, and no memory: driver functions that the library does not know and lets pass. Distinct
  // names, and how often one was looked up.
  kUnseenNames = 19,
  kUnseenLookups = 20,
};
/// From here on a daemon before kRestMinor does not know them.
inline constexpr uint32_t kFirstUnseenFamily = static_cast<uint32_t>(Family::kUnseenNames);

/// Asks for `bytes` more outside the pool. Answered at once: nothing out there is lent.
struct Charge {
  Header header;
  uint32_t family;  // a charged Family
  uint32_t reserved;
  uint64_t bytes;
};

/// `bytes` of what was charged are the driver's again. Between two sessions of a process it may
/// also be the only frame on a connection of its own.
struct Uncharge {
  Header header;
  uint32_t family;  // a charged Family
  uint32_t reserved;
  uint64_t bytes;  // at most what is charged
};

/// What the job has of a counted family now.
struct Count {
  Header header;
  uint32_t family;  // a counted Family
  uint32_t reserved;
  uint64_t bytes;
};

struct Charged {
  Header header;
  uint64_t outside_bytes;  // what the job is charged for in all
};

/// The only frame on a connection of its own, from any process of the job, whether it uses the GPU
/// or not: what may it be told about the GPU's memory? Answered with Told or Close; before that
/// with a Notice where the daemon has to find out first, or ends and another one will know.
struct Ask {
  Header header;
  uint16_t major;
  uint16_t minor;
  uint32_t reserved;
};

struct Told {
  Header header;
  uint8_t device_uuid[16];
  uint64_t total_bytes;  // the most the job may hold, as cuMemGetInfo says it
  uint64_t used_bytes;   // of that
  uint32_t pid;          // of the process that has the session, as the daemon sees it; 0: none
  uint32_t flags;        // ToldFlags; others are ignored
};

enum ToldFlags : uint32_t {
  /// The GPU is this job's alone and has no pool: the library is to do nothing in its processes.
  kLeaveAlone = 1,
};

/// What a Resume frame lists.
enum class ResumePart : uint32_t {
  kHeld = 0,      // extents: leased to the client now
  kReleased = 1,  // extents: given back, and the fence of their release was not reached yet
  kFence = 2,  // terms: all of them reached means that the GPU is done with every released extent
};
inline constexpr size_t kMaxResumeTerms = kStreamSlots;
inline constexpr size_t kMaxOutsideFamilies = 32;

/// The first frame on a new connection of a client whose daemon died: it goes on with its session
/// and says what is true of it now. One or more frames, one part each, all of one client in one
/// row, the last one flagged kLastFrame; what they say beside their part is the same in each. An
/// answer (Grant) that the client has not applied whole never was given; a Release counts from when
/// it was sent. The daemon answers with Resumed or Close. No request may be outstanding: the client
/// asks again afterwards.
struct Resume {
  Header header;
  uint16_t major;
  uint16_t minor;
  uint32_t session;   // Welcome::session
  uint64_t epoch;     // of the last Grant applied
  uint32_t rejected;  // the profile that the client has given up (Mismatch), 0: none
  ResumePart part;
  uint32_t count;  // of extents or terms; may be 0
  uint32_t reserved;
  uint64_t outside_bytes[kMaxOutsideFamilies];  // what the client has outside the pool, by family
  union {
    Extent extent[kMaxExtentsPerFrame];
    FenceTerm term[kMaxResumeTerms];
  };  // only the first `count` are sent
};

/// The session goes on. Comes with one descriptor, the daemon's page, which takes the place of the
/// old one (nobody but its maker can write to that).
struct Resumed {
  Header header;
  uint16_t major;
  uint16_t minor;
  uint32_t session;
};

struct Grant {
  Header header;
  uint32_t gate;  // the gate this answers, or kNoGate for a Lease
  uint32_t profile;
  uint64_t epoch;  // grows with every answer of this session; a repeated epoch is ignored
  uint32_t claim_units;
  uint32_t extents;
  Extent extent[kMaxExtentsPerFrame];  // only the first `extents` are sent
};
inline constexpr uint32_t kNoGate = 0xffffffff;

/// Before the answer to request `seq`: the daemon wants to move what the client has outside its
/// base to host memory, and back. The client issues no work from any thread until it has the
/// answer to its request, waits for what it has issued, and says so. A session that ends before
/// that answer takes what was moved with it.
struct Quiesce {
  Header header;
};

enum class QuietReason : uint32_t {
  kQuiet = 0,      // nothing is under way and nothing will be: the memory may be moved
  kBusy = 1,       // work does not come to an end, or a thread is in the middle of a call
  kCapturing = 2,  // a stream is being captured
  kDebugging = 3,  // the library itself writes to what is freed
};

/// The client's word. Quiet, it keeps still until it has the answer to request `seq`; else it goes
/// on, and nothing is moved.
struct Quiet {
  Header header;
  uint32_t reason;  // QuietReason
  uint32_t reserved;
};

enum class DenyCode : uint32_t {
  kOverLimit = 1,  // the job would hold more than its limit: out of memory at once
  kExhausted = 2,  // waited as long as is allowed: out of memory
  kRefused = 3,    // never admitted (no room for its request, a second process of the same job)
  kShutdown = 4,
  kNoRun = 5,  // to kIfThere; the text is empty
};

struct Deny {
  Header header;
  uint32_t code;  // DenyCode
  uint32_t reserved;
  char text[kMaxTextBytes];  // one line, zero-terminated: who holds what, and what is allowed
};

/// A line for the user's stderr (waiting for more than a second, limit lowered, ...).
struct Notice {
  Header header;
  char text[kMaxTextBytes];
};

/// The daemon ends the session; `text` says why.
struct Close {
  Header header;
  char text[kMaxTextBytes];
};

enum RegisterFlags : uint32_t {
  kObserve = 1,  // an iteration of the job is to be recorded (see Recording)
};

/// Registers a job before it starts. Limit and request come from here alone, never from the job.
struct Register {
  Header header;
  uint64_t limit_bytes;    // 0: not given
  uint64_t request_bytes;  // 0: not given
  uint32_t gpu;            // ordinal
  uint32_t flags;          // RegisterFlags; others are ignored
  char name[128];          // for people: "train --model a"
};

/// status 0: `path` is the job's own socket; else `path` is the reason.
struct Registered {
  Header header;
  uint32_t status;
  uint32_t job;
  char path[kMaxTextBytes];
};

/// Followed by a memfd with the JSON text.
struct Status {
  Header header;
};
struct StatusReply {
  Header header;
  uint64_t json_bytes;
};

/// Another policy from now on, for all jobs; iterations that have begun go on.
struct SetPolicy {
  Header header;
  uint32_t lanes;  // 0: as many as now
  uint32_t reserved;
  char policy[32];
};

/// status 0: `text` says what holds now; else why nothing has changed.
struct PolicySet {
  Header header;
  uint32_t status;
  uint32_t lanes;
  char text[kMaxTextBytes];
};

/// How much of the pool is lent from now on; 0: all of it.
struct SetBudget {
  Header header;
  uint64_t bytes;
};

/// status 0: `bytes` is what was asked for, in whole units, and `in_force` what holds now: more
/// while jobs still hold too much. Else `text` says why nothing has changed.
struct BudgetSet {
  Header header;
  uint32_t status;
  uint32_t reserved;
  uint64_t bytes;
  uint64_t in_force;
  char text[kMaxTextBytes];
};

/// Another limit for a job from now on, also while it runs. 0: what its pod asks for.
struct SetLimit {
  Header header;
  uint32_t job;
  uint32_t reserved;
  uint64_t bytes;
};

/// status 0: `bytes` is the job's limit from now on. Else `text` says why it stays as it was.
struct LimitSet {
  Header header;
  uint32_t status;
  uint32_t job;
  uint64_t bytes;
  char text[kMaxTextBytes];
};

/// Whether new jobs are taken: not while `on` is 1.
struct Drain {
  Header header;
  uint32_t on;  // 0 or 1
  uint32_t reserved;
};

/// status 0: `on` is what holds now, and `jobs` are there. Else `text` says why nothing has
/// changed.
struct Drained {
  Header header;
  uint32_t status;
  uint32_t on;
  uint32_t jobs;
  uint32_t reserved;
  char text[kMaxTextBytes];
};

/// What moves, for who looks ten times a second: steps from `since` on of what each job held (0:
/// all that is kept). Answered with LiveReply and a descriptor of a file with JSON, as Status is. A
/// daemon that does not know the question closes the connection.
struct Live {
  Header header;
  uint64_t since;
};
struct LiveReply {
  Header header;
  uint64_t json_bytes;
};

/// On the connection that registered a job with kObserve: what was recorded of it, while it runs or
/// afterwards? A daemon that does not know the question closes the connection.
struct Recording {
  Header header;
};

/// status 0: followed by a memfd with a trace of one iteration (`sluice-trace 1`); else `text` says
/// why there is none.
struct RecordingReply {
  Header header;
  uint32_t status;
  uint32_t reserved;
  uint64_t trace_bytes;
  char text[kMaxTextBytes];
};

static_assert(sizeof(Live) == 24 && sizeof(LiveReply) == 24);
static_assert(sizeof(RecordingReply) == 32 + kMaxTextBytes);
static_assert(sizeof(SetBudget) == 24 && sizeof(BudgetSet) == 40 + kMaxTextBytes);
static_assert(sizeof(Drain) == 24 && sizeof(Drained) == 32 + kMaxTextBytes);
static_assert(sizeof(SetLimit) == 32 && sizeof(LimitSet) == 32 + kMaxTextBytes);
static_assert(sizeof(SetPolicy) == 56 && sizeof(PolicySet) == 24 + kMaxTextBytes);
static_assert(sizeof(Header) == 16 && sizeof(Extent) == 8 && sizeof(FenceTerm) == 16);
static_assert(sizeof(Hello) == 52 && sizeof(Welcome) == 64 && sizeof(Handles) == 24);
static_assert(sizeof(Lease) == 24 && sizeof(Gate) == 40 && sizeof(Mismatch) == 24);
static_assert(sizeof(Release) == 24 + 16 * kMaxFenceTerms + 8 * kMaxExtentsPerFrame);
static_assert(sizeof(Grant) == 40 + 8 * kMaxExtentsPerFrame);
static_assert(sizeof(Release) <= kMaxFrameBytes && sizeof(Grant) <= kMaxFrameBytes);
static_assert(sizeof(Deny) == 24 + kMaxTextBytes && sizeof(Notice) == 16 + kMaxTextBytes);
static_assert(sizeof(Charge) == 32 && sizeof(Uncharge) == 32 && sizeof(Count) == 32);
static_assert(sizeof(Charged) == 24 && sizeof(Ask) == 24 && sizeof(Told) == 56);
static_assert(sizeof(Quiesce) == 16 && sizeof(Quiet) == 24);
static_assert(sizeof(Resumed) == 24 && offsetof(Resume, extent) == 304);
static_assert(sizeof(Resume) == 304 + 16 * kMaxResumeTerms && sizeof(Resume) <= kMaxFrameBytes);
static_assert(sizeof(Register) == 168 && sizeof(Registered) == 24 + kMaxTextBytes);

}  // namespace sluice::protocol
