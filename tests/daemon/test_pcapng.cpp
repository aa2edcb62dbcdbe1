// SPDX-License-Identifier: GPL-2.0-or-later
// The trace's file format: octets by hand, and what Wireshark's programs read.
#include "daemon/pcapng.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/trace.h"
#include "net/ip_address.h"

using namespace peerland;
using namespace std::chrono_literals;
using testing::HasSubstr;

namespace {

const pcapng::Time kTime{std::chrono::microseconds(1'700'000'000'123'456)};

// An ARP request of 192.0.2.1 for 192.0.2.2, whole.
std::vector<uint8_t> arp() {
  std::vector<uint8_t> f{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0,   1, 8, 6,
                         0,    1,    8,    0,    6,    4,    0, 1, 2, 0, 0,   0, 0, 1,
                         192,  0,    2,    1,    0,    0,    0, 0, 0, 0, 192, 0, 2, 2};
  f.resize(60);
  return f;
}
// A solicitation for 2001:db8:1::2 from 2001:db8:1::1; only what concerns() reads is right.
std::vector<uint8_t> solicitation() {
  std::vector<uint8_t> f(86);
  f[12] = 0x86;
  f[13] = 0xdd;
  f[14] = 0x60;
  f[20] = 58;
  const auto put = [&](std::size_t at, const char* address) {
    const auto parsed = *net::IpAddress::parse(address);
    std::ranges::copy(parsed.bytes(), f.begin() + static_cast<long>(at));
  };
  put(22, "2001:db8:1::1");
  put(38, "ff02::1:ff00:2");
  f[54] = 135;
  put(62, "2001:db8:1::2");
  return f;
}
net::IpAddress ip(const char* text) { return *net::IpAddress::parse(text); }

std::string file() {
  std::string octets = pcapng::section_header("peerland test", "of a test");
  octets += pcapng::interface_description("m1", "m1 (AS64501 Alpha Net)");
  octets += pcapng::interface_description("vx100", "the fabric");
  octets += pcapng::enhanced_packet(0, kTime, arp(), false, "answered");
  octets += pcapng::enhanced_packet(1, kTime + 1ms, solicitation(), true, "sent by the daemon");
  octets += pcapng::interface_statistics(0, kTime + 2s, 1, 3);
  octets += pcapng::interface_statistics(1, kTime + 2s, 1, 0);
  return octets;
}

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe))
    text.append(part.data(), got);
  ::pclose(pipe);
  return text;
}
bool installed(const char* program) {
  return output_of(std::string("command -v ") + program).size() > 1;
}

}  // namespace

TEST(Pcapng, Octets) {
  const std::string block =
      pcapng::enhanced_packet(7, kTime, std::vector<uint8_t>{1, 2, 3}, true, "abc");
  const std::string want(
      "\0\0\0\6\0\0\0\x38"
      "\0\0\0\7"
      "\0\6\x0a\x24\x18\x20\x22\x40"
      "\0\0\0\3\0\0\0\3\1\2\3\0"
      "\0\1\0\3abc\0"
      "\0\2\0\4\0\0\0\2"
      "\0\0\0\0"
      "\0\0\0\x38",
      56);
  ASSERT_EQ(block.size(), want.size());
  EXPECT_EQ(block, want);
}

TEST(Pcapng, EveryBlockSaysItsLengthTwiceAndIsWhole) {
  const std::string octets = file();
  std::size_t at = 0, blocks = 0;
  const auto u32 = [&](std::size_t i) {
    uint32_t value = 0;
    for (std::size_t k = 0; k < 4; ++k) value = value << 8 | static_cast<uint8_t>(octets.at(i + k));
    return value;
  };
  for (; at < octets.size(); ++blocks) {
    const uint32_t length = u32(at + 4);
    ASSERT_EQ(length % 4, 0u);
    ASSERT_GE(length, 12u);
    ASSERT_EQ(u32(at + length - 4), length);
    at += length;
  }
  EXPECT_EQ(at, octets.size());
  EXPECT_EQ(blocks, 7u);
}

TEST(Pcapng, LongTextsAreCut) {
  const std::string block =
      pcapng::enhanced_packet(0, kTime, arp(), false, std::string(70000, 'x'));
  EXPECT_LT(block.size(), 1200u);
}

TEST(Pcapng, WiresharkReadsIt) {
  if (!installed("tshark") || !installed("capinfos")) GTEST_SKIP() << "no tshark";
  const auto path = std::filesystem::temp_directory_path() /
                    ("peerlan-trace-" + std::to_string(::getpid()) + ".pcapng");
  std::ofstream(path, std::ios::binary) << file();
  const std::string info = output_of("capinfos " + path.string());
  EXPECT_THAT(info, HasSubstr("Number of packets:   2"));
  EXPECT_THAT(info, HasSubstr("Name = m1"));
  EXPECT_THAT(info, HasSubstr("Name = vx100"));
  const std::string fields = output_of(
      "tshark -r " + path.string() +
      " -T fields -e frame.interface_name -e frame.packet_flags_direction -e frame.comment -e "
      "frame.time_epoch -e arp.dst.proto_ipv4");
  EXPECT_THAT(fields, HasSubstr("m1\t"));
  EXPECT_THAT(fields, HasSubstr("answered"));
  EXPECT_THAT(fields, HasSubstr("sent by the daemon"));
  EXPECT_THAT(fields, HasSubstr("1700000000.123456"));
  EXPECT_THAT(fields, HasSubstr("192.0.2.2"));
  std::filesystem::remove(path);
}

TEST(Trace, WhatConcernsAnAddress) {
  for (const char* address : {"192.0.2.1", "192.0.2.2"})
    EXPECT_TRUE(concerns(arp(), ip(address))) << address;
  EXPECT_FALSE(concerns(arp(), ip("192.0.2.3")));
  EXPECT_FALSE(concerns(arp(), ip("2001:db8:1::1")));
  for (const char* address : {"2001:db8:1::1", "2001:db8:1::2"})
    EXPECT_TRUE(concerns(solicitation(), ip(address))) << address;
  EXPECT_FALSE(concerns(solicitation(), ip("2001:db8:1::3")));
  auto other = solicitation();
  other[54] = 128;  // an echo
  EXPECT_FALSE(concerns(other, ip("2001:db8:1::2")));
}

TEST(Trace, CutFramesConcernNobody) {
  for (const auto& whole : {arp(), solicitation()})
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<long>(size));
      (void)concerns(cut, ip("192.0.2.2"));
      (void)concerns(cut, ip("2001:db8:1::2"));
    }
}
