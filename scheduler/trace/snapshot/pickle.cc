// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/pickle.h"

#include <bit>
#include <utility>

#include "scheduler/text/fault.h"
#include "scheduler/trace/snapshot/opcodes.h"
#include "scheduler/trace/snapshot/pickle_text.h"

namespace sluice::scheduler::trace {

namespace {

using text::Fault;

constexpr ValueId kNoValue = UINT32_MAX;
constexpr uint64_t kHighestProtocol = 5;

/// One pass over the opcodes. Each step says what is wrong with it; Run adds where and in what.
class PickleReader {
 public:
  PickleReader(std::string_view bytes, const PickleLimits& limits)
      : bytes_(bytes), limits_(limits) {}

  Result<Pickle> Run() {
    while (!stopped_) {
      const size_t start = at_;
      if (start == bytes_.size()) return Fault(Where(start), "the dump ends without STOP");
      const Opcode opcode = FindOpcode(static_cast<uint8_t>(bytes_[at_++]));
      if (const Wrong wrong = Step(opcode); wrong != nullptr) {
        return Fault(opcode.name.empty() ? "opcode" : opcode.name, wrong).Annotate(Where(start));
      }
    }
    return std::move(pickle_);
  }

 private:
  /// What is wrong, nullptr for nothing.
  using Wrong = const char*;

  static std::string Where(size_t byte) { return "byte " + std::to_string(byte); }

  Wrong Step(const Opcode& opcode) {
    switch (opcode.use) {
      case OpcodeUse::kUnknown:
        return "is not one of pickle's";
      case OpcodeUse::kCode:
        return "refused, it would look up or run code";
      case OpcodeUse::kUnused:
        return "refused, a dump of plain data has none";
      case OpcodeUse::kData:
        break;
    }
    if (const Wrong wrong = Data(opcode.byte); wrong != nullptr) return wrong;
    if (pickle_.values.size() > limits_.values) return "too many values";
    if (stack_.size() + marks_.size() > limits_.stack) return "too much on the stack";
    return nullptr;
  }

  Wrong Data(uint8_t opcode);
  Wrong Number(uint8_t opcode);
  Wrong String(uint8_t opcode);
  Wrong Container(uint8_t opcode);
  Wrong Memo(uint8_t opcode);

  Wrong Push(ValueId value) {
    stack_.push_back(value);
    return nullptr;
  }
  /// What lies above the last mark.
  size_t Above() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  std::span<const ValueId> Top(size_t count) const {
    return std::span(stack_).subspan(stack_.size() - count);
  }
  void Pop(size_t count) { stack_.resize(stack_.size() - count); }

  /// False when fewer bytes are left.
  bool Take(uint64_t count, std::string_view* taken) {
    if (count > bytes_.size() - at_) return false;
    *taken = bytes_.substr(at_, count);
    at_ += count;
    return true;
  }
  /// A little-endian number of `count` bytes.
  bool TakeNumber(size_t count, uint64_t* number) {
    std::string_view taken;
    if (!Take(count, &taken)) return false;
    *number = LittleEndian(taken);
    return true;
  }
  bool TakeLine(std::string_view* line) {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return false;
    *line = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }
  static uint64_t LittleEndian(std::string_view bytes) {
    uint64_t number = 0;
    for (size_t i = bytes.size(); i > 0; --i) {
      number = number << 8U | static_cast<unsigned char>(bytes[i - 1]);
    }
    return number;
  }

  Wrong Frame();
  Wrong Stop();
  Wrong DecimalText(bool python_long);
  Wrong FloatText();
  Wrong LongBytes(size_t size_bytes);
  Wrong Make(ValueKind kind, size_t count);
  Wrong MakeFromMark(ValueKind kind);
  Wrong AddTo(ValueKind kind, size_t count);
  Wrong AddFromMark(ValueKind kind);
  Wrong Put(uint64_t index);
  Wrong Recall(uint64_t index);

  static constexpr Wrong kCut = "the dump ends within it";
  static constexpr Wrong kEmpty = "needs more on the stack than there is";
  static constexpr Wrong kNoMark = "has no MARK before it";

  const std::string_view bytes_;
  const PickleLimits limits_;
  size_t at_ = 0;
  bool stopped_ = false;
  std::vector<ValueId> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::vector<ValueId> memo_;
  size_t memo_count_ = 0;
  Pickle pickle_;
};

PickleReader::Wrong PickleReader::Data(uint8_t opcode) {
  uint64_t version = 0;
  switch (opcode) {
    case '(':
      marks_.push_back(stack_.size());
      return marks_.size() > limits_.depth ? "too many open marks" : nullptr;
    case '.':
      return Stop();
    case 'N':
      return Push(pickle_.values.AddNone());
    case 0x88:
      return Push(pickle_.values.AddBool(true));
    case 0x89:
      return Push(pickle_.values.AddBool(false));
    case 0x80:
      if (at_ != 1) return "must be the first opcode";
      if (!TakeNumber(1, &version)) return kCut;
      return version > kHighestProtocol ? "an unknown protocol, must be at most 5" : nullptr;
    case 0x95:
      return Frame();
    default:
      break;
  }
  if (std::string_view("FIJKLMG\x8a\x8b").find(static_cast<char>(opcode)) !=
      std::string_view::npos) {
    return Number(opcode);
  }
  if (std::string_view("VXBC\x8c\x8d\x8e").find(static_cast<char>(opcode)) !=
      std::string_view::npos) {
    return String(opcode);
  }
  if (std::string_view("pqrghj\x94").find(static_cast<char>(opcode)) != std::string_view::npos) {
    return Memo(opcode);
  }
  return Container(opcode);
}

PickleReader::Wrong PickleReader::Number(uint8_t opcode) {
  uint64_t number = 0;
  switch (opcode) {
    case 'I':
      return DecimalText(false);
    case 'L':
      return DecimalText(true);
    case 'F':
      return FloatText();
    case 0x8a:
      return LongBytes(1);
    case 0x8b:
      return LongBytes(4);
    case 'J':
      if (!TakeNumber(4, &number)) return kCut;
      return Push(pickle_.values.AddInteger(static_cast<int32_t>(number)));
    case 'K':
    case 'M':
      if (!TakeNumber(opcode == 'K' ? 1 : 2, &number)) return kCut;
      return Push(pickle_.values.AddInteger(static_cast<int64_t>(number)));
    default:
      break;
  }
  // BINFLOAT, the only number whose first byte is its highest.
  std::string_view bytes;
  if (!Take(8, &bytes)) return kCut;
  const std::string reversed(bytes.rbegin(), bytes.rend());
  return Push(pickle_.values.AddFloat(std::bit_cast<double>(LittleEndian(reversed))));
}

PickleReader::Wrong PickleReader::DecimalText(bool python_long) {
  std::string_view line;
  if (!TakeLine(&line)) return kCut;
  if (!python_long && (line == "00" || line == "01")) {
    return Push(pickle_.values.AddBool(line == "01"));
  }
  if (python_long && !line.empty() && line.back() == 'L') line.remove_suffix(1);
  const std::optional<DecimalInteger> read = ReadDecimalInteger(line);
  if (!read.has_value()) return "is not a decimal integer";
  return Push(read->fits ? pickle_.values.AddInteger(read->value)
                         : pickle_.values.AddLargeInteger());
}

PickleReader::Wrong PickleReader::FloatText() {
  std::string_view line;
  if (!TakeLine(&line)) return kCut;
  const std::optional<double> value = ReadDecimalFloat(line);
  return value.has_value() ? Push(pickle_.values.AddFloat(*value)) : "is not a decimal number";
}

PickleReader::Wrong PickleReader::LongBytes(size_t size_bytes) {
  uint64_t count = 0;
  std::string_view bytes;
  if (!TakeNumber(size_bytes, &count) || !Take(count, &bytes)) return kCut;
  if (count > 8) return Push(pickle_.values.AddLargeInteger());
  if (count == 0) return Push(pickle_.values.AddInteger(0));
  // Two's complement: the sign is the highest bit that was written.
  const auto unused = static_cast<unsigned>(64 - 8 * count);
  const auto value = static_cast<int64_t>(LittleEndian(bytes) << unused) >> unused;
  return Push(pickle_.values.AddInteger(value));
}

PickleReader::Wrong PickleReader::String(uint8_t opcode) {
  std::string_view text;
  if (opcode == 'V') {
    if (!TakeLine(&text)) return kCut;
    std::optional<std::string> decoded = DecodeRawUnicode(text);
    if (!decoded.has_value()) return "has an escape that is no character";
    return Push(pickle_.values.AddOwnText(std::move(*decoded)));
  }
  const bool one = opcode == 'C' || opcode == 0x8c;
  const bool eight = opcode == 0x8d || opcode == 0x8e;
  uint64_t count = 0;
  if (!TakeNumber(one ? 1 : eight ? 8 : 4, &count) || !Take(count, &text)) return kCut;
  const bool bytes = opcode == 'B' || opcode == 'C' || opcode == 0x8e;
  return Push(pickle_.values.AddText(bytes ? ValueKind::kBytes : ValueKind::kText, text));
}

PickleReader::Wrong PickleReader::Container(uint8_t opcode) {
  switch (opcode) {
    case ']':
      return Make(ValueKind::kList, 0);
    case '}':
      return Make(ValueKind::kDict, 0);
    case ')':
      return Make(ValueKind::kTuple, 0);
    case 0x85:
      return Make(ValueKind::kTuple, 1);
    case 0x86:
      return Make(ValueKind::kTuple, 2);
    case 0x87:
      return Make(ValueKind::kTuple, 3);
    case 'l':
      return MakeFromMark(ValueKind::kList);
    case 'd':
      return MakeFromMark(ValueKind::kDict);
    case 't':
      return MakeFromMark(ValueKind::kTuple);
    case 'a':
      return AddTo(ValueKind::kList, 1);
    case 's':
      return AddTo(ValueKind::kDict, 2);
    case 'e':
      return AddFromMark(ValueKind::kList);
    case 'u':
      return AddFromMark(ValueKind::kDict);
    default:
      return "is not read";
  }
}

PickleReader::Wrong PickleReader::Make(ValueKind kind, size_t count) {
  if (Above() < count) return kEmpty;
  if (kind == ValueKind::kDict && count % 2 != 0) return "has a key without a value";
  const ValueId made = pickle_.values.AddContainer(kind, Top(count));
  Pop(count);
  if (pickle_.values.depth(made) > limits_.depth) return "containers lie too deep in each other";
  return Push(made);
}

PickleReader::Wrong PickleReader::MakeFromMark(ValueKind kind) {
  if (marks_.empty()) return kNoMark;
  const size_t count = Above();
  marks_.pop_back();
  return Make(kind, count);
}

PickleReader::Wrong PickleReader::AddTo(ValueKind kind, size_t count) {
  if (Above() < count + 1) return kEmpty;
  const ValueId container = stack_[stack_.size() - count - 1];
  if (pickle_.values.kind(container) != kind) {
    return kind == ValueKind::kList ? "adds to what is not a list" : "adds to what is not a dict";
  }
  if (kind == ValueKind::kDict && count % 2 != 0) return "has a key without a value";
  pickle_.values.Append(container, Top(count));
  Pop(count);
  if (pickle_.values.depth(container) > limits_.depth) {
    return "containers lie too deep in each other";
  }
  return nullptr;
}

PickleReader::Wrong PickleReader::AddFromMark(ValueKind kind) {
  if (marks_.empty()) return kNoMark;
  const size_t count = Above();
  marks_.pop_back();
  return AddTo(kind, count);
}

PickleReader::Wrong PickleReader::Memo(uint8_t opcode) {
  if (opcode == 0x94) return Put(memo_count_);
  uint64_t index = 0;
  if (opcode == 'p' || opcode == 'g') {
    std::string_view line;
    if (!TakeLine(&line)) return kCut;
    const std::optional<DecimalInteger> read = ReadDecimalInteger(line);
    if (!read.has_value() || !read->fits || read->value < 0) return "is not a place of the memo";
    index = static_cast<uint64_t>(read->value);
  } else {
    if (!TakeNumber(opcode == 'q' || opcode == 'h' ? 1 : 4, &index)) return kCut;
  }
  return opcode == 'p' || opcode == 'q' || opcode == 'r' ? Put(index) : Recall(index);
}

PickleReader::Wrong PickleReader::Put(uint64_t index) {
  if (Above() == 0) return kEmpty;
  // Writers count from 0, and a put is longer than a byte: this keeps the memo as small as the
  // dump.
  if (index > bytes_.size()) return "a place of the memo beyond the size of the dump";
  if (index >= memo_.size()) memo_.resize(index + 1, kNoValue);
  if (memo_[index] == kNoValue) ++memo_count_;
  memo_[index] = stack_.back();
  return nullptr;
}

PickleReader::Wrong PickleReader::Recall(uint64_t index) {
  if (index >= memo_.size() || memo_[index] == kNoValue) return "a place of the memo without value";
  return Push(memo_[index]);
}

PickleReader::Wrong PickleReader::Frame() {
  uint64_t length = 0;
  if (!TakeNumber(8, &length)) return kCut;
  return length > bytes_.size() - at_ ? "a frame longer than the dump" : nullptr;
}

PickleReader::Wrong PickleReader::Stop() {
  if (!marks_.empty() || stack_.size() != 1) return "must leave one value";
  if (at_ != bytes_.size()) return "must be the last byte";
  pickle_.root = stack_.back();
  stopped_ = true;
  return nullptr;
}

}  // namespace

Result<Pickle> ReadPickle(std::string_view bytes, const PickleLimits& limits) {
  return PickleReader(bytes, limits).Run();
}

}  // namespace sluice::scheduler::trace
