// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/frame_source.h"

#include <pcap/pcap.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

namespace cli {
namespace {

constexpr std::size_t kEthernetHeader = 14;

std::optional<std::string> digits_of(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c == ' ' || c == ':' || c == '.' || c == '-' || c == '\n' || c == '\t') continue;
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
      digits += c;
    else
      return std::nullopt;
  }
  if (digits.size() % 2 != 0) return std::nullopt;
  return digits;
}

std::string digits_of(const u_char* octets, std::size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  digits.reserve(size * 2);
  for (std::size_t i = 0; i < size; ++i) {
    digits += kDigits[octets[i] >> 4];
    digits += kDigits[octets[i] & 15];
  }
  return digits;
}

struct Closer {
  void operator()(pcap_t* capture) const { pcap_close(capture); }
};

std::expected<std::vector<std::string>, std::string> read_file(const std::string& file,
                                                               std::size_t most) {
  char error[PCAP_ERRBUF_SIZE] = {};
  const std::unique_ptr<pcap_t, Closer> capture(pcap_open_offline(file.c_str(), error));
  if (!capture) return std::unexpected(file + ": " + error);
  if (pcap_datalink(capture.get()) != DLT_EN10MB)
    return std::unexpected(file + ": no capture of Ethernet frames");
  std::vector<std::string> frames;
  pcap_pkthdr* header = nullptr;
  const u_char* octets = nullptr;
  int read = 0;
  while (frames.size() < most && (read = pcap_next_ex(capture.get(), &header, &octets)) == 1)
    frames.push_back(digits_of(octets, header->caplen));
  if (read == PCAP_ERROR) return std::unexpected(file + ": " + pcap_geterr(capture.get()));
  if (frames.empty()) return std::unexpected(file + ": no frames");
  return frames;
}

}  // namespace

std::expected<std::vector<std::string>, std::string> frames_of(const std::string& source,
                                                               std::size_t most) {
  std::error_code ignored;
  if (source == "-" || std::filesystem::exists(source, ignored)) return read_file(source, most);
  const auto digits = digits_of(std::string_view(source));
  if (!digits)
    return std::unexpected("\"" + source + "\": neither a file nor octets in hexadecimal digits");
  if (digits->size() < 2 * kEthernetHeader)
    return std::unexpected("a frame has 14 octets at least");
  return std::vector{*digits};
}

}  // namespace cli
