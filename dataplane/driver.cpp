// SPDX-License-Identifier: GPL-2.0-or-later
#include "dataplane/driver.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace dataplane {

std::string driver_of(const std::string& interface) {
  ifreq request{};
  if (interface.size() >= sizeof request.ifr_name) return {};
  std::memcpy(request.ifr_name, interface.data(), interface.size());
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  request.ifr_data = reinterpret_cast<char*>(&info);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  const bool known = ioctl(fd, SIOCETHTOOL, &request) == 0;
  close(fd);
  return known ? std::string(info.driver, strnlen(info.driver, sizeof info.driver)) : std::string();
}

}  // namespace dataplane
