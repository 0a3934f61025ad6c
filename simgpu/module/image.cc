// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/module/image.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "simgpu/module/kernel_abi.h"

namespace sluice::simgpu {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr size_t kLineLength = 100;

constexpr std::array<int8_t, 256> MakeDigits() {
  std::array<int8_t, 256> digits{};
  digits.fill(-1);
  for (int i = 0; i < 64; ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  return digits;
}
constexpr std::array<int8_t, 256> kDigits = MakeDigits();

Status Damaged(const char* what) {
  return Status(StatusCode::kInvalidArgument, std::string("damaged module image: ") + what);
}

}  // namespace

Result<std::string> DecodeImage(const void* image) {
  if (image == nullptr) return Damaged("null pointer");
  const auto* text = static_cast<const char*>(image);
  // An image carries no length. strncmp stops at the first difference, so nothing behind a foreign
  // image's end is read.
  if (strncmp(text, SIMGPU_MODULE_MAGIC, strlen(SIMGPU_MODULE_MAGIC)) != 0) {
    return Status(StatusCode::kFailedPrecondition,
                  "this is code for a real GPU (PTX, cubin or fat binary); the simulated GPU runs "
                  "what its own NVRTC compiles");
  }
  std::string object;
  uint32_t bits = 0;
  int count = 0;
  bool ended = false;
  for (const char* p = text + strlen(SIMGPU_MODULE_MAGIC); *p != 0; ++p) {
    if (*p == '\n' || *p == '\r' || *p == ' ') continue;
    if (*p == '=') {
      ended = true;
      continue;
    }
    const int digit = kDigits[static_cast<unsigned char>(*p)];
    if (digit < 0 || ended) return Damaged("not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (++count < 4) continue;
    object.push_back(static_cast<char>(bits >> 16 & 0xff));
    object.push_back(static_cast<char>(bits >> 8 & 0xff));
    object.push_back(static_cast<char>(bits & 0xff));
    bits = 0;
    count = 0;
  }
  if (count == 1) return Damaged("truncated");
  if (count >= 2) object.push_back(static_cast<char>(bits >> (count * 6 - 8) & 0xff));
  if (count == 3) object.push_back(static_cast<char>(bits >> 2 & 0xff));
  if (object.compare(0, 4,
                     "\x7f"
                     "ELF") != 0)
    return Damaged("no ELF object inside");
  return object;
}

std::string EncodeImage(std::string_view object) {
  std::string text = SIMGPU_MODULE_MAGIC;
  size_t column = 0;
  for (size_t i = 0; i < object.size(); i += 3) {
    uint32_t bits = 0;
    const size_t n = std::min<size_t>(3, object.size() - i);
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < n ? static_cast<unsigned char>(object[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      text.push_back(k <= n ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=');
    }
    column += 4;
    if (column < kLineLength) continue;
    text.push_back('\n');
    column = 0;
  }
  text.push_back('\n');
  return text;
}

}  // namespace sluice::simgpu
